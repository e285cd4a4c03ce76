#!/bin/bash
# Every repository rule names the package or folder that is missing: copies third_party/ into
# an empty workspace, points the rules at a folder that does not exist, and reads what Bazel says.
set -euo pipefail

# The checkout itself: the stand-ins of third_party/offline lie outside every package, so no label names them.
checkout=$(dirname "$(dirname "$(readlink -f third_party/repositories.bzl)")")
box=$(mktemp -d "${TEST_TMPDIR:-/tmp}/third_party.XXXXXX")
mkdir -p "$box/ws/tools"
cp -r "$checkout/WORKSPACE" "$checkout/.bazelrc" "$checkout/third_party" "$box/ws"
cp -r "$checkout/tools/build_defs" "$box/ws/tools"
cd "$box/ws"
sed -i '/^try-import/d' .bazelrc
sed -i 's#"/usr/include"#"/nowhere"#' third_party/system/system_repo.bzl
sed -i 's#"/usr/lib/{multiarch}#"/nowhere/{multiarch}#' third_party/repositories.bzl
cat >probe.cc <<<'int main() {}'
cat >tools/BUILD.bazel <<<'exports_files(["mpi_options.sh", "mpi_test.sh"])'
cat >tools/mpi_test.sh <<<'exit 0'
cat >tools/mpi_options.sh <<<''
cat >BUILD.bazel <<'BUILD'
load("//tools/build_defs:cuda.bzl", "CUDA_ONLY")
load("//tools/build_defs:mpi.bzl", "mpi_test")

cc_binary(name = "plain", srcs = ["probe.cc"])
cc_binary(
    name = "cuda",
    srcs = ["probe.cc"],
    target_compatible_with = CUDA_ONLY,
    deps = ["@local_config_cuda//:%s" % lib for lib in ["cudart", "cublas", "cublasLt", "cudnn", "nccl"]],
)
mpi_test(name = "mpi", srcs = ["probe.cc"], np = 2, deps = ["@openmpi//:mpi"])
BUILD

bazel() {
  command bazel --output_user_root="$box/out" --max_idle_secs=20 "$@"
}
# The server's files are read-only folders in part.
trap 'bazel shutdown >/dev/null 2>&1; chmod -R u+w "$box" && rm -rf "$box"' EXIT

failures=0
# expect_error TEXT ARG...: `bazel build ARG...` fails, and says TEXT in one of its lines.
expect_error() {
  local text=$1 out
  shift
  if out=$(bazel build --nobuild "$@" 2>&1); then
    echo "FAILED: build $* passed; expected '$text'"
  elif ! grep -qF -- "$text" <<<"$out"; then
    echo "FAILED: build $* does not say '$text':"
    echo "$out"
  else
    return 0
  fi
  failures=$((failures + 1))
}

expect_error '@com_google_absl: apt-get install -y libabsl-dev' @com_google_absl//absl/status
expect_error '@com_github_google_glog: apt-get install -y libgoogle-glog-dev' @com_github_google_glog//:glog
expect_error '@com_google_googletest: apt-get install -y libgtest-dev libgmock-dev' @com_google_googletest//:gtest
expect_error '@com_github_google_benchmark: apt-get install -y libbenchmark-dev' @com_github_google_benchmark//:benchmark
expect_error '@onednn: apt-get install -y libdnnl-dev' @onednn//:dnnl
expect_error '@com_github_nlohmann_json: apt-get install -y nlohmann-json3-dev' @com_github_nlohmann_json//:json
expect_error '@cpp_httplib: apt-get install -y libcpp-httplib-dev' @cpp_httplib//:httplib
expect_error '@tomlplusplus: apt-get install -y libtomlplusplus-dev' @tomlplusplus//:tomlplusplus
expect_error '@zlib: apt-get install -y zlib1g-dev' @zlib//:zlib
expect_error '@xz: apt-get install -y liblzma-dev' @xz//:lzma
expect_error '@png: apt-get install -y libpng-dev' @png//:png
expect_error '@pugixml: apt-get install -y libpugixml-dev' @pugixml//:pugixml
expect_error '@metis: apt-get install -y libmetis-dev' @metis//:metis
expect_error '--config=mpi needs header <mpi.h>' --config=mpi //:mpi
expect_error '@openmpi: apt-get install -y libopenmpi-dev openmpi-bin' --config=mpi //:mpi
expect_error '--config=cuda needs the CUDA toolkit: no bin/nvcc in CUDA_HOME=/nowhere' \
  --config=cuda --repo_env=CUDA_HOME=/nowhere //:cuda

# A toolkit with parts missing names the part.
mkdir -p "$box/cuda/bin" "$box/cuda/include" "$box/cuda/lib64"
printf '#!/bin/sh\necho 1.0\n' >"$box/cuda/bin/nvcc"
chmod +x "$box/cuda/bin/nvcc"
touch "$box/cuda/include/"{cuda_runtime_api,cublas_v2,cublasLt,nccl}.h
expect_error "--config=cuda needs cudnn: no include/cudnn.h in CUDA_HOME=$box/cuda" \
  --config=cuda --repo_env=CUDA_HOME="$box/cuda" //:cuda

# Without the switches nothing of that is in the way.
if ! out=$(bazel build --nobuild --repo_env=CUDA_HOME=/nowhere //:all 2>&1); then
  echo "FAILED: //:all without CUDA, Open MPI and their switches:"
  echo "$out"
  failures=$((failures + 1))
fi

expect_error 'PIPELAB_SHARED=/nowhere: no such folder' --repo_env=PIPELAB_SHARED=/nowhere @shared_data//...
mkdir -p "$box/inputs/curves"
touch "$box/inputs/curves/a.csv" "$box/inputs/notes.txt"
cat >>BUILD.bazel <<'BUILD'
load("@shared_data//:defs.bzl", "PRESENT", "shared_data")

filegroup(name = "given", srcs = shared_data("curves", "absent"))
filegroup(name = "present_is_%s" % PRESENT)
BUILD
given() { bazel query "$@" 'labels(srcs, @shared_data//:curves) intersect deps(//:given)' 2>/dev/null; }
if [[ $(given --repo_env=PIPELAB_SHARED="$box/inputs") != @shared_data//:shared/curves/a.csv ]] ||
  ! bazel query --repo_env=PIPELAB_SHARED="$box/inputs" //:present_is_True >/dev/null 2>&1; then
  echo 'FAILED: @shared_data does not give curves/a.csv of the folder in PIPELAB_SHARED'
  failures=$((failures + 1))
fi
# Neither the variable nor a folder beside the checkout.
if [[ $(bazel query 'deps(//:given)' 2>/dev/null) != //:given ]]; then
  echo 'FAILED: without a shared folder //:given should be empty'
  failures=$((failures + 1))
fi
# Beside the checkout. A folder that comes later is seen by the next server.
bazel shutdown >/dev/null 2>&1
mkdir -p "$box/shared/curves"
touch "$box/shared/curves/b.csv"
if [[ $(given) != @shared_data//:shared/curves/b.csv ]]; then
  echo 'FAILED: @shared_data does not give curves/b.csv of the folder beside the checkout'
  failures=$((failures + 1))
fi

((failures == 0)) && echo 'all passed'

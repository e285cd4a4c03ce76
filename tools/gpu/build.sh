#!/usr/bin/env bash
# The programs of tools/gpu/suite.sh that need no other library's build, without Bazel:
#
#   tools/gpu/build.sh FOLDER
#
# gpu_info, parity and layer_speed, by nvcc and the C++ compiler (CXX, else g++), for the GPU of this
# machine (or PIPELAB_CUDA_ARCHS=90,...). Needs CUDA 13 with cuBLASLt and cuDNN 9 in CUDA_HOME (else
# /usr/local/cuda), and the headers and libraries of Abseil and glog. The schemes' program and the one of
# several devices come from Bazel alone.
set -eu

[ $# -eq 1 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
cuda=${CUDA_HOME:-/usr/local/cuda}
[ -x "$cuda/bin/nvcc" ] || { echo "build.sh: no nvcc in $cuda/bin (set CUDA_HOME)" >&2; exit 1; }
cd "$(dirname "$0")/../.."

objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
if [ -n "${PIPELAB_CUDA_ARCHS:-}" ]; then
  arch=()
  for a in ${PIPELAB_CUDA_ARCHS//,/ }; do arch+=("-gencode=arch=compute_$a,code=sm_$a"); done
else
  arch=(-arch=native)
fi

flags=(-std=c++17 -O2 -fPIC -DPIPELAB_CUDA -DPIPELAB_NO_NCCL -I. -isystem "$cuda/include")
compile() { # SOURCE
  local object
  object="$objects/$(echo "$1" | tr / _).o"
  case $1 in
    *.cu.cc)
      "$cuda/bin/nvcc" -x cu -c -std=c++17 -O3 -lineinfo --extended-lambda --expt-relaxed-constexpr \
        -diag-suppress=20012 -Xcompiler -fPIC "${arch[@]}" -I. -o "$object" "$1"
      ;;
    *) "${CXX:-g++}" "${flags[@]}" -c -o "$object" "$1" ;;
  esac
}

sources=(
  kernels/cuda/*.cu.cc
  kernels/cuda/{device,block_store,graph_cache,work_list,cuda_device,cuda_blocks,cuda_graph,cublas_products,cudnn_convolutions,devices,device_speed,speed_main,bf16_block,case_runner}.cc
  kernels/cuda/*_kernels.cc kernels/cuda/cuda_backend.cc
  kernels/*_checks.cc kernels/int4_weights.cc
  kernels/tensor/{arena,storage,tensor,host_values}.cc
  kernels/reference/*.cc
  kernels/cases/*_cases.cc kernels/cases/{attention_roundings,kernel_case,image_shapes}.cc
  tools/base/rng.cc tools/base/units.cc
)
programs=(gpu_info parity layer_speed)
echo "compiling ${#sources[@]} files"
pids=()
for source in "${sources[@]}" kernels/cuda/{gpu_info,parity,layer_speed}.cc; do
  while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n || exit 1; done
  compile "$source" &
  pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || exit 1; done

# Everything but the programs' own files.
ar rcs "$objects/all.a" "$objects"/*.o
ar d "$objects/all.a" kernels_cuda_{gpu_info,parity,layer_speed}.cc.o 2>/dev/null || true
absl=(flags_parse flags_usage flags_usage_internal flags flags_internal flags_reflection flags_config
  flags_program_name flags_private_handle_accessor flags_commandlineflag flags_commandlineflag_internal
  flags_marshalling statusor status cord cordz_info cordz_handle cordz_functions cord_internal raw_hash_set
  hashtablez_sampler hash city low_level_hash exponential_biased random_internal_platform str_format_internal
  strings strings_internal strerror symbolize synchronization graphcycles_internal stacktrace debugging_internal
  demangle_internal malloc_internal time civil_time time_zone int128 bad_optional_access bad_variant_access
  throw_delegate base spinlock_wait raw_logging_internal log_severity)
libraries=()
for library in "${absl[@]}"; do
  [ -n "$(find /usr/lib /usr/local/lib -name "libabsl_$library.*" 2>/dev/null | head -n 1)" ] &&
    libraries+=("-labsl_$library")
done
for program in "${programs[@]}"; do
  "${CXX:-g++}" -o "$out/$program" "$objects/kernels_cuda_$program.cc.o" "$objects/all.a" \
    -Wl,--start-group "${libraries[@]}" -Wl,--end-group -lglog -L"$cuda/lib64" -Wl,-rpath,"$cuda/lib64" \
    -lcudart -lcublasLt -lcudnn -lpthread
done
echo "$out: ${programs[*]}"

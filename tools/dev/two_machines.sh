#!/bin/bash
# Do results hang on the machine? Runs //experiments:all --quick twice, as on two machines, and compares the deterministic
# columns of both byte by byte. Measured columns and environments differ and are not looked at.
#
#   tools/dev/two_machines.sh [--out DIR] [OPTION OF all...]     (default: a folder that is removed; about ten minutes)
#
# A is this machine. B has one core, another home (data are fetched again), folder, time zone and locale, and the libm
# and oneDNN kernels of a processor without AVX and FMA. `--only=a,b` and `--skip=a,b` choose studies. Two machines in
# earnest: run `tools/bazel run //experiments:all -- --quick` on both, bring the two results/ together, and call
# `tools/bazel run //experiments:compare -- --deterministic A B`.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

out=
if [[ ${1:-} == --out ]]; then
  out=$(realpath -m "${2:?--out needs a folder}")
  shift 2
fi
if [[ -z $out ]]; then
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
fi
tools/bazel build //experiments:all //experiments:compare
bin=$(tools/bazel info bazel-bin 2>/dev/null)/experiments
mkdir -p "$out/a_folder" "$out/another/folder of B" "$out/home"

german=$(locale -a 2>/dev/null | grep -m 1 '^de_DE' || true) # a comma in numbers, where it is installed
last_core=$(taskset -cp $$ | sed 's/.*[ ,-]//')
# `all` looks for its data beside itself; what it does not put into --out goes to the folder it is in.
run_a() { (cd "$out/a_folder" && "$bin/all/all" --quick --out="$out/a" "$@"); }
run_b() {
  (cd "$out/another/folder of B" && env --unset=LC_ALL HOME="$out/home" XDG_CACHE_HOME="$out/home/.cache" \
    TZ=Asia/Kathmandu LANG="${german:-C}" ONEDNN_MAX_CPU_ISA=SSE41 DNNL_MAX_CPU_ISA=SSE41 \
    GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-AVX512F,-ERMS \
    taskset -c "$last_core" "$bin/all/all" --quick --out="$out/b" "$@")
}
for machine in a b; do
  echo "=== machine $machine"
  "run_$machine" "$@"
done
"$bin/compare/compare" --deterministic "$out/a" "$out/b"

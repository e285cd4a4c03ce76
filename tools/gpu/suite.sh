#!/usr/bin/env bash
# Everything that only a GPU can show, in one command and with one report:
#
#   tools/gpu/suite.sh BINARIES RESULTS        a folder made by tools/gpu/bundle.sh; results go to RESULTS
#   tools/gpu/suite.sh --build RESULTS         builds with nvcc what needs no library but CUDA's (no Bazel)
#
# Parity and gradients of every kernel, compute-sanitizer on the small cases, every scheme against
# serial training, the speed of 52B-shaped layers beside PyTorch's where python3 has it, and four
# pipeline devices on one GPU against one. The machine needs the driver, CUDA 13's libraries
# (cudart, cuBLASLt, cuDNN 9) and a C++ runtime. Writes RESULTS/gpu-DATE-DEVICE.json, which belongs
# into experiments/results/gpu.
#
# Exit status: 0, all is right; 1, something is not, and the report says what; 2, usage; 3, no CUDA
# device.
set -u

usage() {
  sed -n '2,16s/^# \{0,1\}//p' "$0" >&2
  exit 2
}

[ $# -eq 2 ] || usage
here=$(cd "$(dirname "$0")" && pwd)
results=$2
mkdir -p "$results" || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

if [ "$1" = --build ]; then
  bin="$work/bin"
  "$here/build.sh" "$bin" || exit 1
else
  bin=$1
  [ -d "$bin" ] || { echo "suite.sh: no folder $bin" >&2; exit 2; }
fi
for library_folder in "$bin/lib" /usr/local/cuda/lib64 ${CUDA_HOME:+"$CUDA_HOME/lib64"}; do
  [ -d "$library_folder" ] && LD_LIBRARY_PATH="$library_folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
done
export LD_LIBRARY_PATH

# The one program that every folder has says whether there is a GPU, and which.
"$bin/gpu_info" >"$work/device" 2>"$work/why"
status=$?
if [ $status -eq 3 ]; then
  echo "$(head -n 1 "$work/why"): nothing was run, nothing is claimed"
  exit 3
elif [ $status -ne 0 ]; then
  echo "suite.sh: gpu_info failed: $(head -n 1 "$work/why")" >&2
  exit 1
fi
device=$(sed -n 's/.*"name": "\([^"]*\)".*/\1/p' "$work/device")
date=$(date -u +%Y-%m-%d)
echo "device: $device ($date)"

failed=0
parts=()
# part NAME PROGRAM ARGUMENTS...: runs it, keeps its JSON (written to the file behind --json), and says how
# it went. A program that the folder does not have is left out by name.
part() {
  local name=$1 program=$2 began status outcome
  shift 2
  if [ ! -x "$bin/$program" ]; then
    echo "$name: skipped: the folder has no $program"
    parts+=("\"$name\": {\"outcome\": \"skipped: not in the folder\"}")
    return
  fi
  began=$(date +%s)
  "$bin/$program" --json="$work/$name.json" "$@" >"$work/$name.log" 2>&1
  status=$?
  outcome=ok
  if [ $status -ne 0 ]; then
    outcome="failed with status $status"
    failed=1
    grep -E 'WRONG|rror' "$work/$name.log" | head -n 20
  fi
  tail -n 12 "$work/$name.log"
  echo "$name: $outcome, $(($(date +%s) - began)) s"
  cp "$work/$name.log" "$results/$name.log"
  if [ -s "$work/$name.json" ]; then
    parts+=("\"$name\": {\"outcome\": \"$outcome\", \"results\": $(cat "$work/$name.json")}")
  else
    parts+=("\"$name\": {\"outcome\": \"$outcome\"}")
  fi
}

sanitize() {
  local tool name status own outcome
  if ! command -v compute-sanitizer >/dev/null 2>&1; then
    echo "sanitizer: skipped: no compute-sanitizer here"
    parts+=('"sanitizer": {"outcome": "skipped: no compute-sanitizer"}')
    return
  fi
  for tool in memcheck racecheck initcheck; do
    name=sanitizer_$tool
    if [ ! -x "$bin/parity" ]; then
      echo "$name: skipped: the folder has no parity"
      parts+=("\"$name\": {\"outcome\": \"skipped: not in the folder\"}")
      continue
    fi
    timeout 900 compute-sanitizer --tool "$tool" --print-limit 100000 --error-exitcode 9 "$bin/parity" \
      --small >"$results/$name.log" 2>&1
    status=$?
    # What kernels of libraries are blamed for is theirs; ours are instances of these two.
    own=$(grep -cE '(ElementKernel|BlockKernel)' "$results/$name.log")
    outcome="failed with status $status"
    [ $status -eq 0 ] && outcome=ok
    if [ $status -eq 9 ] && [ "$own" -eq 0 ] && grep -qE 'SUMMARY: [0-9]+ (errors|hazards)' "$results/$name.log"; then
      outcome="ok: only kernels of libraries are blamed, $(grep -oE 'SUMMARY: [0-9]+ (errors|hazards)' \
        "$results/$name.log" | tail -n 1 | cut -d ' ' -f 2-)"
    fi
    echo "$name: $outcome"
    case $outcome in
      ok*) ;;
      *)
        grep -m 5 '=====' "$results/$name.log"
        failed=1
        ;;
    esac
    parts+=("\"$name\": {\"outcome\": \"$outcome\"}")
  done
}

pytorch() {
  if ! env -u LD_LIBRARY_PATH python3 -c 'import torch; assert torch.cuda.is_available()' >/dev/null 2>&1; then
    echo "pytorch: skipped: python3 has no torch with CUDA"
    parts+=('"pytorch": {"outcome": "skipped: no torch with CUDA"}')
    return
  fi
  # With libraries of its own, which ours must not stand before.
  if env -u LD_LIBRARY_PATH python3 "$here/torch_layers.py" "$work/pytorch.json" >"$results/pytorch.log" 2>&1; then
    cat "$results/pytorch.log"
    parts+=("\"pytorch\": {\"outcome\": \"ok\", \"results\": $(cat "$work/pytorch.json")}")
  else
    echo "pytorch: failed"
    tail -n 3 "$results/pytorch.log"
    parts+=('"pytorch": {"outcome": "failed"}')
  fi
}

part parity parity
part parity_graphs parity --graphs
part schemes device_schemes
part schemes_graphs device_schemes --graphs
sanitize
part layers layer_speed
pytorch
part operations operation_speed
part int4 int4_speed
part one_gpu one_gpu_speed
part one_gpu_bf16 one_gpu_speed --dtype=bf16

name=$(echo "$device" | tr ' /' '--' | tr -cd 'A-Za-z0-9-')
report="$results/gpu-$date-$name.json"
{
  printf '{"date": "%s",\n"device": %s' "$date" "$(cat "$work/device")"
  for p in "${parts[@]}"; do printf ',\n%s' "$p"; done
  printf '}\n'
} >"$report"
echo "written: $report"
exit $failed

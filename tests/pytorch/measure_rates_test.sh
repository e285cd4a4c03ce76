#!/bin/bash
# What measure_rates.py writes on this machine is what a cluster's file takes, as tables and as exact shapes.
set -euo pipefail
if [[ -z ${PIPELAB_TORCH:-} ]]; then
  echo "skipped: no PyTorch; PIPELAB_TORCH is the folder of a virtual environment that has it"
  exit 0
fi
for way in --quick "--quick --by_pass"; do
  # shellcheck disable=SC2086  # two words
  "$PIPELAB_TORCH/bin/python" tools/pytorch/measure_rates.py --device=cpu $way --out="$TEST_TMPDIR/rates.json"
  cat >"$TEST_TMPDIR/here.json" <<END
{"name": "here", "levels": [{"size": 1, "sharing": "device", "bandwidth": "1 GB/s"}],
 "device": {"class": "gpu", "peaks": {"bf16": "1 TFLOPS", "fp8": "1 TFLOPS"}, "memory": "8 GB",
            "memory_bandwidth": "10 GB/s", "rates": $(<"$TEST_TMPDIR/rates.json")}}
END
  experiments/pipelab machine "$TEST_TMPDIR/here.json" >"$TEST_TMPDIR/values"
  for kind in matmul attention; do
    grep -E "^rates.$kind.bf16 .* measured " "$TEST_TMPDIR/values" ||
      { echo "$way: no measured rates of $kind"; cat "$TEST_TMPDIR/values"; exit 1; }
  done
done

#!/bin/bash
# PyTorch runs our schedules, and from_torch reads its networks, in the environment that PIPELAB_TORCH names.
set -euo pipefail
if [[ -z ${PIPELAB_TORCH:-} ]]; then
  echo "skipped: no PyTorch; PIPELAB_TORCH is the folder of a virtual environment that has it"
  exit 0
fi
root=$PWD
"$root/tests/pytorch/export_networks" --network=gpt --output="$TEST_TMPDIR/networks.safetensors" >/dev/null
wheel=$(python/wheel.sh "--out=$TEST_TMPDIR/dist")
"$PIPELAB_TORCH/bin/python" -m pip install --no-index --no-deps --quiet --target="$TEST_TMPDIR/site" "$wheel"
export PYTHONPATH=$TEST_TMPDIR/site
cd "$TEST_TMPDIR"
"$PIPELAB_TORCH/bin/python" "$root/python/tests/from_torch_test.py"
"$PIPELAB_TORCH/bin/python" "$root/python/tests/to_torch_test.py" "$TEST_TMPDIR/networks.safetensors" \
  "$root/tests/pytorch/losses.csv" "$root/tools/pytorch"

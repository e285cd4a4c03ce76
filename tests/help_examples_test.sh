#!/bin/bash
# Every command of `pipelab --help` has an example there, and it works: in the order of the help, in one folder
# that is empty but for the rows of runs that `predict` reads, the command line that `evaluate` reads and the weights of `logits`.
set -euo pipefail
pipelab=$PWD/$1
source tests/tiny_llama.sh
box=$(mktemp -d "${TEST_TMPDIR:-/tmp}/help.XXXXXX")
trap 'rm -rf "$box"' EXIT
cd "$box"
cat >runs.csv <<'ROWS'
# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,data parallelism,pipeline parallelism,iteration time (ms)
2,16,8,1024,16,24,1024,1,1,2,372.25
ROWS
cat >run.sh <<'FLAGS'
torchrun pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 \
  --max-position-embeddings 2048 --vocab-size 50257 --bf16 --micro-batch-size 1 --global-batch-size 64 \
  --pipeline-model-parallel-size 4 --use-distributed-optimizer
FLAGS
tiny_llama llama
"$pipelab" --help >help.txt || true
mapfile -t commands < <(sed -n 's/^  \([a-z_]*\): .*/\1/p' help.txt)
mapfile -t examples < <(sed -n 's/^      pipelab \(.*\)/\1/p' help.txt)
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
((${#commands[@]} >= 10)) || fail "the help lists ${#commands[@]} commands: this test no longer reads it"
((${#commands[@]} == ${#examples[@]})) || fail "${#commands[@]} commands and ${#examples[@]} examples"
for i in "${!examples[@]}"; do
  read -r -a words <<<"${examples[i]}"
  [[ ${words[0]} == "${commands[i]}" ]] || fail "${commands[i]}: its example is of ${words[0]}"
  run=("$pipelab" "${words[@]}")
  # A server runs until Ctrl-C, which a shell's background jobs ignore but for --default-signal.
  [[ ${words[0]} != serve ]] || run=(timeout --preserve-status --signal=INT 10 env --default-signal=INT "$pipelab" serve --port=0)
  if "${run[@]}" >out 2>err; then
    echo "ok: pipelab ${examples[i]}"
  else
    fail "pipelab ${examples[i]}: exit $?: $(tail -n 1 err)"
  fi
done
exit $((failures > 0))

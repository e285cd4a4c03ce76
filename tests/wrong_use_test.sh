#!/bin/bash
# Kinds of wrong use: each ends with the exit code and the one line on stderr that testdata/wrong_use.txt has for it
# (a last "..." stands for a list), and prints nothing but the figures of a step that does not fit. And a machine of
# eight 4090s is described in one round, from what the message says. Then kinds of wrong recipes, in
# testdata/wrong_recipes.txt: a file that is right, a sed expression that spoils it, and what is said.
set -euo pipefail
table=$PWD/tests/testdata/wrong_use.txt
recipes=$PWD/tests/testdata/wrong_recipes.txt
source tests/shell_checks.sh
source tests/tiny_llama.sh
source tests/pipelab_checks.sh

# says CODE LINE ARG...
says() {
  local code=$1 expected=$2 line
  shift 2
  one_line_error "$code" "" "$pipelab" "$@" || return 1
  line=$(<stderr)
  [[ $code == 3 || ! -s stdout ]] || { echo "on stdout:"; cat stdout; return 1; }
  if [[ $expected == *... ]]; then [[ $line == "${expected%...}"?* ]] && return; fi
  [[ $line == "$expected" ]] || { echo "said:     $line"; echo "expected: $expected"; return 1; }
}

tiny_llama llama
echo '{}' >empty.json
echo '{"name": ' >broken.json
cat >wrong.json <<'FILE'
{"name": "wrong", "device": {"class": "cpu", "peaks": {"fp32": "82 TFLOPS"}, "memory": "24",
 "memory_bandwith": "1 TB/s"}, "levels": [{"size": 0, "sharing": "paired", "bandwidth": "25 GB/s"}]}
FILE
# Two stages, each before the other, one gradient a micro-batch late.
cat >cycle.json <<'FILE'
{"micro_batches": 2, "edges": [[0, 1], [1, 0, 1]],
 "order": [[["F", 0, 0], ["B", 0, 0], ["F", 0, 1], ["B", 0, 1]], [["F", 1, 0], ["B", 1, 0], ["F", 1, 1], ["B", 1, 1]]]}
FILE
count=0
while IFS='|' read -r code line arguments; do
  read -r -a words <<<"$arguments"
  count=$((count + 1))
  check "$code: $arguments" says "$code" "$line" "${words[@]}" </dev/null
done <"$table"
check "a hundred kinds" test "$count" -ge 100

cat >flags.right <<'FILE'
--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention \
--num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192 --position-embedding-type rope \
--rotary-base 500000 --normalization RMSNorm --swiglu --disable-bias-linear --vocab-size 128256 \
--untie-embeddings-and-output-weights --hidden-dropout 0 --attention-dropout 0 --bf16 --sequence-parallel \
--tensor-model-parallel-size 8 --pipeline-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 64
FILE
cat >toml.right <<'FILE'
[model]
name = "llama3"
flavor = "70B"
[training]
local_batch_size = 8
seq_len = 8192
[parallelism]
tensor_parallel_degree = 8
pipeline_parallel_degree = 2
pipeline_parallel_schedule = "1F1B"
[activation_checkpoint]
mode = "full"
FILE
cat >config.right <<'FILE'
{"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
 "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_act": "silu", "vocab_size": 128256,
 "max_position_embeddings": 8192, "rope_theta": 500000.0}
FILE
# with KIND: runs the command that reads KIND.file.
with() {
  case $1 in
    flags) "$pipelab" evaluate --flags=flags.file --cluster=dgx-h100 --devices=64 --top=0 ;;
    toml) "$pipelab" evaluate --toml=toml.file --cluster=dgx-h100 --devices=64 --top=0 ;;
    config) "$pipelab" simulate 1f1b:P=2,T=8,M=4 --model=config.file.json@8192 --cluster=dgx-h100 ;;
  esac
}
# spoiled KIND SED LINE
spoiled() {
  sed "$2" "$1.right" >"$1.file"
  cmp -s "$1.right" "$1.file" && { echo "changes nothing: $2"; return 1; }
  [[ $1 == config ]] && mv config.file config.file.json
  local code=1
  [[ $3 == *"give at most @"* ]] && code=2  # the option's part
  one_line_error "$code" "" with "$1" || return 1
  [[ ! -s stdout && $(<stderr) == "$3" ]] || { echo "said:     $(<stderr)"; echo "expected: $3"; return 1; }
}
for kind in flags toml config; do
  cp "$kind.right" "$kind.file"
  cp config.right config.file.json
  check "the right $kind" with "$kind" >right.out 2>&1
done
count=0
while read -r kind expression && IFS= read -r line; do
  count=$((count + 1))
  check "$kind: $expression" spoiled "$kind" "$expression" "${line#  }"
done <"$recipes"
check "fifty-five kinds" test "$count" -ge 55

# Options that are unknown are listed together, or refused together.
lists_unknown() {
  cp flags.right flags.file
  echo "--brand-new 3 --qk-layernormm --sft" >>flags.file
  with flags >stdout && grep -qx "  --brand-new 3: unknown" stdout &&
    grep -qx "  --qk-layernormm: unknown; did you mean --qk-layernorm?" stdout && grep -q "^  --sft: samples" stdout
}
refuses_unknown() {
  one_line_error 1 "" "$pipelab" evaluate --flags=flags.file --cluster=dgx-h100 --devices=64 --top=0 --strict || return 1
  grep -qx -- "--flags=flags.file: --brand-new 3: unknown; --qk-layernormm: unknown; did you mean --qk-layernorm?" stderr
}
check "unknown options are listed" lists_unknown
check "--strict refuses them" refuses_unknown

# The first file has only a name. Its message has an example of each thing that is missing; with the numbers of the
# data sheet in them that is the machine.
prices_4090s() {
  local device levels
  echo '{"name": "eight 4090s"}' >cards.json
  "$pipelab" simulate 1f1b --model=gpt-small --cluster=cards.json >stdout 2>stderr && return 1
  device=$(sed -n 's/.*device: missing, such as \(.*\); levels: .*/\1/p' stderr)
  levels=$(sed -n 's/.*levels: missing, such as \(.*\)/\1/p' stderr)
  device=${device/80 TFLOPS/82.6 TFLOPS} device=${device/1 TB/1008 GB}
  printf '{"name": "eight 4090s",\n "device": %s,\n "levels": %s}\n' "$device" "$levels" >cards.json
  prints '"fits": true' simulate 1f1b:P=8,M=8 --model=gpt-small --cluster=cards.json --json_out=-
}
check "eight 4090s in one round" prices_4090s
exit $((failures > 0))

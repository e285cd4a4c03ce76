#!/bin/bash
# A network that is trained writes on from prompts: gpt_train's checkpoint and `pipelab generate`. Arguments: both
# programs.
set -euo pipefail
source tests/shell_checks.sh

train=$PWD/$1 pipelab=$PWD/$2
work=$TEST_TMPDIR/generate
mkdir -p "$work"
cd "$work"
export PIPELAB_DATA=$work/no_data
"$train" --synthetic --compare_steps=0 --steps=4 --rate_decay=constant --warmup_steps=0 --layers=2 --hidden=32 \
  --heads=2 --tokens=32 --out="$work/out" --checkpoint="$work/gpt.safetensors" >stdout 2>stderr || { cat stderr; exit 1; }

generate() { "$pipelab" generate --resume="$work/gpt.safetensors" "$@"; }

# The texts alone; the last line has times.
texts() { generate --prompt='the|a|of the' --new_tokens=12 "$@" | sed '$d'; }

the_same_tokens() {
  texts --devices=1 >one || return 1
  [[ $(wc -l <one) == 6 ]] || { cat one; return 1; }
  for sizes in "--devices=2" "--devices=4" "--devices=2 --groups=1 --slots=2" "--devices=3 --chunk=2 --cache=20"; do
    # shellcheck disable=SC2086
    texts $sizes >many || return 1
    diff one many || { echo "$sizes"; return 1; }
  done
}
drawn_by_seed() {
  texts --devices=1 --temperature=1 --seed=3 >a && texts --devices=2 --temperature=1 --seed=3 >b || return 1
  texts --devices=2 --temperature=1 --seed=4 >c || return 1
  diff a b && ! cmp -s b c
}
as_json() {
  generate --prompt=the --new_tokens=3 --devices=2 --json_out=- >made.json || return 1
  python3 - <<'PY'
import json
made = json.load(open('made.json'))
assert len(made['requests'][0]['tokens']) == 3, made
# Two blocks of 32 keys and 32 values in 4 bytes, for 2 groups and 32 tokens.
assert sum(made['cache_bytes']) == 2 * 64 * 4 * 2 * 32, made
PY
}
refused() { one_line_error 2 "$1" "$pipelab" generate "${@:2}"; }

check "the same tokens on any devices" the_same_tokens
check "drawn by the seed" drawn_by_seed
check "as JSON" as_json
checkpoint=--resume=$work/gpt.safetensors
check "no prompt" refused "--prompt: missing" "$checkpoint"
check "an unknown byte" refused "is not in the vocabulary" "$checkpoint" --prompt=$'\x01'
check "a long prompt" refused "the model's context has 32" "$checkpoint" --prompt='the the the the the the the the the'
check "a small cache" refused "--cache=8: request 0 needs 14" "$checkpoint" --prompt='the' --new_tokens=12 --cache=8
check "too many stages" refused "--devices=64: " "$checkpoint" --prompt=the --new_tokens=2 --devices=64
check "no model" refused "give --resume=FILE" --prompt=the
check "no checkpoint" one_line_error 1 "none.safetensors" "$pipelab" generate --resume="$work/none.safetensors" --prompt=the
exit $((failures > 0))

#!/bin/bash
# A network in 4 bits, as a user writes and reads it: gpt_train's --save_int4 and --load_int4. Argument: the program.
set -euo pipefail
source tests/shell_checks.sh

program=$PWD/$1
work=$TEST_TMPDIR/int4
mkdir -p "$work"
cd "$work"
export PIPELAB_DATA=$work/no_data
small=(--synthetic --compare_steps=0 --steps=4 --rate_decay=constant --warmup_steps=0 --layers=2 --hidden=32
  --heads=2 --tokens=32)

run() {
  local name=$1
  shift
  "$program" "${small[@]}" --out="$work/$name" "$@" >stdout 2>stderr || { echo "exit $?: $*"; cat stderr; return 1; }
}

# loss FOLDER MODEL: of the table of what networks are worth.
loss() { grep "^\"*$2" "$1/table_quality.csv" | grep -o '[0-9][0-9.]*,[0-9.]*$'; }

written_and_read() {
  run trained --save_int4="$work/net.safetensors" || return 1
  run loaded --load_int4="$work/net.safetensors" || return 1
  local want got
  want=$(loss trained "the same, int4 by GPTQ") got=$(loss loaded "GPT, ")
  [[ -n $want && $want == "$got" ]] || { echo "$want, $got"; cat trained/table_quality.csv loaded/table_quality.csv; return 1; }
  ! grep -q "training_loss\|int4 to nearest" loaded/records.csv || { cat loaded/records.csv; return 1; }
  # Blocks take 4 bits a weight, and all else stays.
  (($(stat -c %s net.safetensors) * 2 < $(stat -c %s trained/gpt_train.safetensors))) || { ls -l . trained; return 1; }
}

refused() { one_line_error 2 "$1" "$program" "${small[@]}" --out="$work/out" "${@:2}"; }
damaged() {
  head -c 3000 net.safetensors >cut.safetensors
  one_line_error 1 "cut.safetensors: " "$program" "${small[@]}" --out="$work/out" --load_int4="$work/cut.safetensors"
}
a_checkpoint() {
  one_line_error 1 "gpt_train.safetensors: no network in 4 bits: " "$program" "${small[@]}" --out="$work/out" \
    --load_int4="$work/trained/gpt_train.safetensors"
}

check "a network that was written is read" written_and_read
check "another model" refused "net.safetensors: has no parameter \"block2/" --layers=3 --load_int4="$work/net.safetensors"
check "another width" refused "net.safetensors: parameter \"embedding/" --hidden=64 --load_int4="$work/net.safetensors"
check "a training's checkpoint" a_checkpoint
check "a part of a file" damaged
check "both at once" refused "only what was trained is written" --save_int4="$work/a" --load_int4="$work/net.safetensors"
check "a file that cannot be" refused "--save_int4" --save_int4=/proc/x/a.safetensors
exit $((failures > 0))

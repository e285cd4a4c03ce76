#!/bin/bash
# A training experiment as a user calls it, on generated data and for a few steps: a whole report, a checkpoint that
# goes on elsewhere with the same bits, and one line for what cannot be. Arguments: the program, and options of it.
set -euo pipefail
source tests/shell_checks.sh

program=$PWD/$1
shift
work=$TEST_TMPDIR/train
mkdir -p "$work"
cd "$work"
export PIPELAB_DATA=$work/no_data
small=(--synthetic --compare_steps=0 --steps=4 "$@")

# refused CODE TEXT ARG...: the command ends with CODE, one line on stderr that has TEXT, and nothing on the disk.
refused() {
  local code=$1 text=$2
  shift 2
  rm -rf out
  one_line_error "$code" "$text" "$program" "${small[@]}" --out="$work/out" --checkpoint="$work/out.safetensors" "$@" || return 1
  if compgen -G "$work/out*" >/dev/null; then echo "left behind by $*:"; ls -la "$work"; return 1; fi
}

# run NAME ARG...: NAME is of the report's folder and of the checkpoints.
run() {
  local name=$1
  shift
  "$program" "${small[@]}" --out="$work/$name" --checkpoint="$work/$name.safetensors" "$@" >stdout 2>stderr ||
    { echo "exit $?: $*"; cat stderr; return 1; }
}

whole_report() {
  run report --compare_steps=2 --checkpoint_every=2 || return 1
  local file
  for file in records.csv config.json env.json report.md report.html table_quality.csv table_training.csv \
    table_schemes.csv table_memory.csv; do
    [[ -s report/$file ]] || { echo "no $file"; ls report; return 1; }
  done
  compgen -G "report/curves_loss*.svg" >/dev/null || { echo "no loss curve"; return 1; }
  grep -q "the data are synthetic" stdout || { cat stdout; return 1; }
  local scheme
  for scheme in serial gpipe 1f1b breadth_first; do
    grep -q "^$scheme " stdout || { echo "no row for $scheme"; cat stdout; return 1; }
  done
  if grep -q "DIFFERS" stdout; then cat stdout; return 1; fi
  grep -q "bit-equal" stdout || { cat stdout; return 1; }
}

# What the parts' files of a run are worth: name and sum.
sums() { for file in "$1".*; do echo "${file#"$1"} $(sha256sum <"$file")"; done; }

goes_on_elsewhere() {
  run whole || return 1
  run half --steps=2 --scheme=1f1b --devices=2 || return 1
  run rest --resume="$work/half.safetensors" --scheme=gpipe --devices=1 || return 1
  [[ -n $(sums whole) && $(sums whole | cut -d' ' -f1) == "$(sums rest | cut -d' ' -f1)" ]] || { ls; return 1; }
  # The losses so far come from the file, which has them as floats; so they are the same bits again.
  [[ $(sums whole) == "$(sums rest)" ]] || { echo "the checkpoints differ"; sums whole; sums rest; return 1; }
}

# Stopped in the middle: the message is a command that goes on.
interrupted() {
  rm -rf stopped*
  "$program" "${small[@]}" --steps=1000000 --evaluate_every=1000000 --out="$work/stopped" \
    --checkpoint="$work/stopped.safetensors" --checkpoint_every=1 >stdout 2>stderr &
  local pid=$! tries status=0
  for ((tries = 0; tries < 600; ++tries)); do
    ! compgen -G "stopped.*" >/dev/null || break
    sleep 0.1
  done
  kill -INT "$pid"
  wait "$pid" || status=$?
  [[ $status == 130 ]] || { echo "exit $status"; cat stderr; return 1; }
  grep -q "interrupted after step [0-9]* of 1000000.*--resume=$work/stopped.safetensors" stderr || { cat stderr; return 1; }
  [[ ! -e stopped ]] || { echo "a report of half a run"; return 1; }
  local step
  step=$(sed -n 's/.*interrupted after step \([0-9]*\) of.*/\1/p' stderr)
  run stopped --resume="$work/stopped.safetensors" --steps="$step"
}

damaged_checkpoint() {
  run good --steps=1 || return 1
  local file
  for file in good.*; do head -c 1000 "$file" >"bad${file#good}"; done
  refused 1 "bad." --resume="$work/bad.safetensors"
}

no_data() {
  local status=0
  rm -rf out
  PATH=/nonexistent "$program" --out="$work/out" --checkpoint="$work/out.safetensors" >stdout 2>stderr || status=$?
  [[ $status == 1 && $(wc -l <stderr) == 1 ]] || { echo "exit $status"; cat stderr; return 1; }
  grep -q "models/data:fetch.*--synthetic" stderr || { cat stderr; return 1; }
  [[ ! -e out ]] || { ls -la out; return 1; }
}

# Without --checkpoint the file is in --out, and nothing is anywhere else.
checkpoint_in_out() {
  local name
  mkdir -p empty
  name=$(basename "$program")
  (cd empty && "$program" "${small[@]}" --out="$work/only" >../stdout 2>../stderr) || { cat stderr; return 1; }
  compgen -G "only/$name*.safetensors" >/dev/null || { ls only; return 1; }
  [[ -s only/report.html && -z $(ls -A empty) ]] || { ls -A only empty; return 1; }
}

check "a small run leaves a whole report" whole_report
check "the checkpoint is in --out" checkpoint_in_out
check "goes on elsewhere" goes_on_elsewhere
check "stopped in the middle" interrupted
check "a damaged checkpoint" damaged_checkpoint
check "no data" no_data
check "another batch than the checkpoint's" refused 2 "trained with --micro_batch_size = " \
  --resume="$work/good.safetensors" --micro_batch_size=3
check "another seed than the checkpoint's" refused 2 "trained with seed 1, not 2" \
  --resume="$work/good.safetensors" --seed=2
check "no such checkpoint" refused 2 "--resume=" --resume="$work/none.safetensors"
check "fewer steps than were done" refused 2 "has done 4 already" --resume="$work/whole.safetensors" --steps=3
check "unknown scheme" refused 2 "--scheme=zigzag" --scheme=zigzag
check "unknown scheme to compare" refused 2 "--compare_schemes=zigzag" --compare_steps=1 --compare_schemes=zigzag
check "more stages than layers" refused 2 "stages" --scheme=1f1b --devices=900
check "copies that do not divide" refused 2 "--data_parallel=3: must be at least 1 and divide the 4 samples" \
  --data_parallel=3 --micro_batch_size=4
check "copies that share in sets" run sets --scheme=1f1b --devices=1 --data_parallel=4 --micro_batch_size=4 \
  --sharding=fully --shards=2 --steps=2
check "sets that do not divide" refused 2 "shards=3: must be at least 2 and divide the 4" \
  --data_parallel=4 --micro_batch_size=4 --sharding=fully --shards=3
check "no steps" refused 2 "--steps=0" --steps=0
check "no samples" refused 2 "--micro_batch_size=0" --micro_batch_size=0
check "a learning rate that is no number" refused 2 "--learning_rate=nan" --learning_rate=nan
check "unknown option" refused 2 "--device: unknown option" --device=4
check "an output folder that cannot be" refused 2 "/proc/x" --out=/proc/x
check "a checkpoint that cannot be" refused 2 "--checkpoint" --checkpoint=/proc/x/a.safetensors
exit $((failures > 0))

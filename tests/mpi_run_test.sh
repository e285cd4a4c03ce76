#!/bin/bash
# `mpirun pipelab run` as a user calls it: what devices in one process print, from 2 and 4 processes; errors in one
# line, with the rank and the action; a killed process ends the others within 5 s, and leaves none behind.
set -euo pipefail
source tests/shell_checks.sh

pipelab=$PWD/$1
# What pipelab becomes: the program beside it that trains.
trainer=$(readlink -f "$pipelab")_train
quickstart=$PWD/$2
work=$TEST_TMPDIR/mpi_run
mkdir -p "$work"
cd "$work"
source "$OLDPWD/tools/mpi_options.sh"
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

# of N COMMAND...: as N processes; stdout and stderr in the files of these names.
of() {
  local n=$1 status=0
  shift
  timeout 120 mpirun "${mpi_options[@]}" -np "$n" "$@" >stdout 2>stderr || status=$?
  return $status
}

# same NAME ARG...: `pipelab run ARG...` prints the same from 2 and 4 processes, but for their number and for what
# was measured.
same() {
  local n
  "$pipelab" run "$@" >alone || { echo "alone: $*"; return 1; }
  for n in 2 4; do
    of "$n" "$pipelab" run "$@" || { echo "exit $? of $n processes: $*"; cat stderr; return 1; }
    [[ ! -s stderr ]] || { echo "on stderr of $n processes:"; cat stderr; return 1; }
    diff <(sed '/^step time, /d' alone) <(sed "s/ in $n processes,/,/; /^step time, /d" stdout) ||
      { echo "$n processes differ: $*"; return 1; }
  done
}

schemes() {
  local scheme
  for scheme in gpipe 1f1b interleaved breadth_first chimera zb_h1 pipedream; do
    same "$scheme" --devices=4 --micro_batches=8 --steps=3 || return 1
  done
}

# Exit 2 and one line of the program's own, whatever mpirun adds.
refused() {
  local text=$1
  shift
  local status=0
  "$@" || status=$?
  [[ $status == 2 ]] || { echo "exit $status instead of 2"; cat stderr; return 1; }
  [[ $(grep -cF -- "$text" stderr) == 1 ]] || { echo "not once '$text':"; cat stderr; return 1; }
  [[ ! -s stdout ]] || { echo "on stdout:"; cat stdout; return 1; }
}

three_processes() {
  refused "3 processes cannot share 4 devices equally" of 3 "$pipelab" run 1f1b --devices=4 --micro_batches=8
}
bad_option() { refused "--steps=0: must be at least 1" of 4 "$pipelab" run 1f1b --devices=4 --steps=0; }
# Only one process has it: it tells, after a while in which the first one would have told.
other_words() {
  mkdir -p other && cd other &&
    refused "rank 1 of 2: --device: unknown option" of 1 "$pipelab" run 1f1b --devices=4 : -np 1 "$pipelab" run 1f1b --device=4
}
unknown_option() { refused "--device: unknown option" of 4 "$pipelab" run 1f1b --device=4; }

# A process that stands still: the one that waits for it says what for, and all end.
stopped_process() {
  timeout 60 mpirun "${mpi_options[@]}" -np 4 "$pipelab" run 1f1b --devices=4 --micro_batches=8 --steps=1000000 \
    --wait_limit_s=1 >stdout 2>stderr &
  local job=$! status=0 victim
  victim=$(rank_of 2) || return 1
  kill -STOP "$victim"
  wait "$job" || status=$?
  kill -CONT "$victim" 2>/dev/null || true
  [[ $status != 0 && $status != 124 ]] || { echo "exit $status"; cat stderr; return 1; }
  grep -qE '^device [0-9]( \(rank [0-9]\))? waited 1 s for ' stderr ||
    { echo "no line with a rank and an action:"; cat stderr; return 1; }
  nobody_left
}

# How long a process needs to be in the middle of training depends on what else the machine does: what depends on
# that is tried again with more time.
pause=1
patiently() {
  for pause in 1 5 15; do
    "$@" && return 0
    echo "(after $pause s)"
  done
  return 1
}

# rank_of R: the process id of rank R, once it trains.
rank_of() {
  local tries pid
  for ((tries = 0; tries < 300; ++tries)); do
    for pid in $(processes_of "$trainer"); do
      if tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$1"; then
        sleep "$pause"  # it has met the others, and trains
        echo "$pid"
        return 0
      fi
    done
    sleep 0.1
  done
  echo "rank $1 did not start" >&2
  return 1
}

nobody_left() {
  local tries
  for ((tries = 0; tries < 50; ++tries)); do
    [[ -n $(processes_of "$trainer") ]] || return 0
    sleep 0.1
  done
  echo "still there:" "$(processes_of "$trainer")"
  return 1
}

# killed R: kills rank R with SIGKILL while all train.
killed() {
  local rank=$1 job victim begin took status=0
  timeout 60 mpirun "${mpi_options[@]}" -np 4 "$pipelab" run 1f1b --devices=4 --micro_batches=400 --steps=1000000 \
    >stdout 2>stderr &
  job=$!
  victim=$(rank_of "$rank") || return 1
  begin=$(date +%s%N)
  kill -KILL "$victim"
  wait "$job" || status=$?
  took=$((($(date +%s%N) - begin) / 1000000))
  [[ $status != 0 && $status != 124 ]] || { echo "exit $status"; return 1; }
  local line="^rank $rank of 4 is gone \(.*\): device $rank is (in|between) "
  [[ $(grep -cE "$line" stderr) == 1 ]] || { echo "not one line like '$line':"; cat stderr; return 1; }
  ((took < 5000)) || { echo "$took ms"; return 1; }
  echo "rank $rank killed: over after $took ms: $(grep -E "$line" stderr)"
  nobody_left
}
each_rank_killed() {
  local rank actions=0
  for rank in 0 1 3; do
    killed "$rank" || return 1
    if grep -qE ": device $rank is in [0-9]+[FB][0-9]+" stderr; then actions=$((actions + 1)); fi
  done
  # With 400 micro-batches a step there is hardly anything else to be in.
  ((actions > 0)) || { echo "no action was named"; return 1; }
}

# mpirun itself is killed: its processes do not go on.
launcher_killed() {
  mpirun "${mpi_options[@]}" -np 4 "$pipelab" run 1f1b --devices=4 --micro_batches=8 --steps=1000000 \
    >stdout 2>stderr &
  local job=$!
  rank_of 3 >/dev/null || return 1
  kill -KILL "$job"
  wait "$job" 2>/dev/null || true
  nobody_left
}

# The quickstart's report is that of one process: the same losses.
quickstart_report() {
  local small=(--synthetic --steps=3 --devices=4 --micro_batches=4 --layers=6 --hidden=32 --heads=2 --tokens=16)
  "$quickstart" "${small[@]}" --out="$work/alone_report" >alone 2>/dev/null
  of 4 "$quickstart" "${small[@]}" --out="$work/report" || { cat stderr; return 1; }
  local file
  for file in run.json records.csv config.json env.json report.md report.html; do
    [[ -s report/$file ]] || { echo "no $file"; return 1; }
  done
  grep '_loss\|,loss' alone_report/records.csv >alone_losses
  grep '_loss\|,loss' report/records.csv >losses
  [[ -s losses ]] || { echo "no losses in records.csv:"; head report/records.csv; return 1; }
  diff alone_losses losses || { echo "losses differ"; return 1; }
}

# Written by 4 processes and gone on from in one, and the other way round: the same files, the same losses.
checkpoints() {
  local four=(1f1b --devices=4 --micro_batches=8) file
  "$pipelab" run "${four[@]}" --steps=5 --checkpoint=whole.safetensors >whole || return 1
  "$pipelab" run "${four[@]}" --steps=3 --checkpoint=one.safetensors >/dev/null || return 1
  of 4 "$pipelab" run "${four[@]}" --steps=3 --checkpoint=four.safetensors || { cat stderr; return 1; }
  cmp one.safetensors four.safetensors || return 1
  "$pipelab" run "${four[@]}" --steps=5 --resume=four.safetensors --checkpoint=a.safetensors >alone || return 1
  of 2 "$pipelab" run "${four[@]}" --steps=5 --resume=one.safetensors --checkpoint=b.safetensors ||
    { cat stderr; return 1; }
  for file in a b; do cmp whole.safetensors $file.safetensors || return 1; done
  grep -E '^ +[45] .* equal$' whole >losses && [[ $(wc -l <losses) == 2 ]] || { cat whole; return 1; }
  for file in alone stdout; do grep ' equal$' $file | diff losses - || return 1; done
}

# A process is killed while each step is written: the file is a whole one.
killed_while_writing() {
  rm -f often.safetensors
  timeout 60 mpirun "${mpi_options[@]}" -np 4 "$pipelab" run 1f1b --devices=4 --micro_batches=8 --steps=1000000 \
    --checkpoint=often.safetensors --checkpoint_every=1 >stdout 2>stderr &
  local job=$! victim
  victim=$(rank_of 2) || return 1
  kill -KILL "$victim"
  wait "$job" && return 1
  grep -qE "^rank 2 of 4 is gone .*: " stderr || { cat stderr; return 1; }
  nobody_left || return 1
  one_line_error 2 "often.safetensors has done" "$pipelab" run 1f1b --devices=4 --micro_batches=8 --steps=1 \
    --resume=often.safetensors
}

no_checkpoint() {
  local status=0
  of 4 "$pipelab" run 1f1b --devices=4 --resume=none.safetensors || status=$?
  [[ $status == 1 ]] || { echo "exit $status"; cat stderr; return 1; }
  [[ $(grep -cE "^rank 0 of 4: .*none.safetensors" stderr) == 1 ]] || { cat stderr; return 1; }
}

(other_words) >other_words 2>&1 &  # it takes 10 s in which it does nothing
other=$!
check schemes schemes
check checkpoints checkpoints
check killed_while_writing patiently killed_while_writing
check no_checkpoint no_checkpoint
check no_folder refused "rank 0 of 4: --checkpoint=/proc/x" of 4 "$pipelab" run 1f1b --devices=4 \
  --checkpoint=/proc/x/a.safetensors
check sharded same breadth_first --devices=2 --micro_batches=8 --data_parallel=2 --sharding=fully --steps=3
check sharded_in_sets same 1f1b:P=1,D=4,M=4,sharding=fully,shards=2 --steps=3
check tensor_parallel same 1f1b --devices=2 --micro_batches=4 --tensor_parallel=2 --sequence_parallel --steps=3
check context_parallel same 1f1b --devices=2 --micro_batches=4 --context_parallel=2 --steps=3
for exchange in ring heads; do
  check context_$exchange same 1f1b --devices=2 --micro_batches=4 --context_parallel=2 --context_exchange=$exchange --steps=3
done
check divided_experts same 1f1b:P=2,D=2,E=2,M=4 --model=mixtral-small --steps=2
check three_processes three_processes
check bad_option bad_option
check unknown_option unknown_option
check other_words wait "$other"
cat other_words
check stopped_process patiently stopped_process
check each_rank_killed patiently each_rank_killed
check launcher_killed launcher_killed
check quickstart_report quickstart_report
exit $((failures > 0))

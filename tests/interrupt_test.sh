#!/bin/bash
# Ctrl-C on commands that take long: they end within a second, with one line and exit code 130, and leave nothing
# that is not whole. A study, and all of them, alike.
set -euo pipefail
source tests/shell_checks.sh
pipelab=$PWD/$1 quickstart=$PWD/$2 all=$PWD/$3
mkdir -p "$TEST_TMPDIR/interrupt"
cd "$TEST_TMPDIR/interrupt"

# interrupted WHEN TEXT PROGRAM...: a SIGINT once the shell command WHEN succeeds. A shell's background jobs ignore
# SIGINT but for --default-signal.
interrupted() {
  local when=$1 text=$2 status=0 tries begin
  shift 2
  rm -f stderr
  env --default-signal=INT "$@" >stdout 2>stderr &
  local pid=$!
  for ((tries = 0; tries < 6000; ++tries)); do
    if eval "$when" || ! kill -0 "$pid" 2>/dev/null; then break; fi
    sleep 0.01
  done
  begin=$(date +%s%N)
  kill -INT "$pid" || { echo "ended by itself:"; cat stderr; return 1; }
  wait "$pid" || status=$?
  local took=$((($(date +%s%N) - begin) / 1000000))
  [[ $status == 130 ]] || { echo "exit $status instead of 130"; cat stderr; return 1; }
  # A second on a machine that does nothing else.
  ((took < 5000)) || { echo "took $took ms"; return 1; }
  tail -n 1 stderr | grep -q -- "$text" || { echo "no '$text' in:"; cat stderr; return 1; }
  [[ ! -s stdout ]] || { echo "on stdout:"; cat stdout; return 1; }
}

# Threads beside the main one: the command has begun.
begun='[[ $(ls /proc/$pid/task 2>/dev/null | wc -l) -gt 1 ]]'

search() {
  # The second where it has not begun to look.
  interrupted "$begun" '^search: \(stopped before it found anything\|interrupted after [0-9]* s; no result is kept\)$' \
    "$pipelab" search --model=gpt-52b --systems=none --cluster=dgx-a100 --devices=512 --batch=4096 --json=out.json || return 1
  [[ ! -e out.json ]] || { echo "out.json is there"; return 1; }
}

plan() {
  interrupted "$begun" '^plan: interrupted after [0-9]* s; no result is kept$' \
    "$pipelab" plan --planner=best --model=gpt-52b --cluster=dgx-a100 --devices=64 --micro_batches=512 --json_out=p.json ||
    return 1
  [[ ! -e p.json ]] || { echo "p.json is there"; return 1; }
}

training() {
  interrupted '[[ -e c.safetensors ]]' '^run: interrupted after [0-9]* s; kept .*c.safetensors, for --resume$' \
    "$pipelab" run 1f1b:P=2,M=2 --steps=1000000 --checkpoint=c.safetensors --checkpoint_every=1 || return 1
  [[ $(find . -name 'c.safetensors*' | wc -l) == 1 ]] || { ls -a; return 1; }
}

# A coordinator says what its checkpoint has, also before its own first step; a trainer keeps nothing.
swarm() {
  local nothing='^swarm: interrupted after [0-9]* s; no result is kept$'
  local kept='^swarm: interrupted after [0-9]* s; kept s.safetensors at step [1-9][0-9]*; the same --checkpoint resumes it$'
  local coordinate=(bash -c 'exec "$@" >>said' _ "$pipelab" swarm coordinate --local_peers=3 --context=8 --hidden=8
    --steps=1000000 --token_file=token)
  local file=(--checkpoint=s.safetensors --log=log)
  interrupted 'grep -q "A peer joins" said' "$nothing" "${coordinate[@]}" || return 1
  interrupted '[[ -e s.safetensors ]]' "$kept" "${coordinate[@]}" "${file[@]}" --checkpoint_every=1 || return 1
  interrupted '[[ $(grep -c ^start log) == 2 ]] && tac log | sed "/^start/q" | grep -q ^save' "$kept" \
    "${coordinate[@]}" "${file[@]}" --checkpoint_every=1000000 || return 1
  [[ $(find . -name 's.safetensors*' | wc -l) == 1 ]] || { ls -a; return 1; }
  : >said
  "${coordinate[@]}" &
  local swarm=$! status=0
  while ! grep -q coordinator= said; do sleep 0.1; done
  interrupted "$begun" "$nothing" "$pipelab" swarm train --context=8 --token_file=token \
    "$(grep -o -- '--coordinator=[^ ]*' said)" || status=1
  kill -KILL "$swarm"
  return $status
}

study() {
  interrupted '[[ -s stderr ]]' '^quickstart: interrupted after [0-9]* s; no result is kept$' \
    "$quickstart" --synthetic --steps=1000000 --layers=2 --hidden=16 --devices=2 --out="$PWD/study" || return 1
  [[ ! -e study && -z $(find . -name '*incomplete*') ]] || { ls -a; return 1; }
}

all_studies() {
  interrupted '[[ -s stderr ]]' '^all: interrupted after [0-9]* s; no result is kept$' \
    "$all" --only=quickstart --out="$PWD/all" || return 1
  sleep 1
  [[ -z $(processes_of "$quickstart") ]] || { echo "the study goes on"; return 1; }
  [[ ! -e all/quickstart && ! -e all/RESULTS.md ]] || { ls -a all; return 1; }
}

check "search" search
check "plan" plan
check "training with checkpoints" training
check "a swarm" swarm
check "a study" study
check "all studies" all_studies
exit $((failures > 0))

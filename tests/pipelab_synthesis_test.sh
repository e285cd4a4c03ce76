#!/bin/bash
# pipelab synthesize as other programs call it: the promise is what simulate says, and errors with their exit codes.
set -euo pipefail
source tests/shell_checks.sh
source tests/pipelab_checks.sh

# By hand: three activations a device are less than 1F1B's four, and 31 is proven.
by_hand() {
  prints 'no order of this placement less than 31: gap 0.00 %' synthesize 1f1b:P=4,M=8 --memory=3 || return 1
  prints 'no schedule of the catalogue fits' synthesize 1f1b:P=4,M=8 --memory=3 --schedule_out=mine.csv || return 1
  makespan 31.0 --csv=mine.csv
}

# promised CONFIGURATION OPTION...: of a model, as simulate says. stdout and mine.txt are what
# synthesize wrote.
promised() {
  local on=(--model=llama-3-8b --cluster=dgx-h100) promised said
  "$pipelab" synthesize "$1" "${on[@]}" --time_limit=5s --schedule_out=mine.txt --json_out=found.json "${@:2}" >stdout 2>stderr || return 1
  promised=$(sed -n 's/^ *"step": \([0-9.]*\),*$/\1/p' found.json)
  said=$("$pipelab" simulate mine.txt:T=2 "${on[@]}" | sed -n 's/.*makespan \([0-9.]*\) ms.*/\1/p')
  [[ -n $promised ]] && awk -v a="$promised" -v b="$said" 'BEGIN { exit !(a / b > 0.999999999 && a / b < 1.000000001) }' ||
    { echo "promised $promised, simulated $said"; return 1; }
}

of_model() {
  promised 1f1b:P=4,T=2,M=8 || return 1
  grep -q 'best of the catalogue' stdout || { cat stdout; return 1; }
}

# Where nothing else fits, with copies to the host and back, which the runtime makes, too.
with_copies() {
  promised 1f1b:P=4,T=2,M=8 --memory=20GiB --freedoms=offload,stages || return 1
  grep -q 'may offload' stdout && grep -q ' 0O0 .* 0L0 ' mine.txt || { cat stdout mine.txt; return 1; }
  "$pipelab" run mine.txt --steps=2 >stdout || return 1
  [[ $(grep -c ' equal$' stdout) == 2 ]] || { cat stdout; return 1; }
  # One of a stage's micro-batches stays, the others go.
  sed 's/ 0[OL]0\b//g' mine.txt >stays.txt
  grep -q ' 0O[1-7] ' stays.txt && ! grep -q ' 0[OL]0 ' stays.txt || { cat stays.txt; return 1; }
  "$pipelab" run stays.txt --steps=2 >stdout || return 1
  [[ $(grep -c ' equal$' stdout) == 2 ]] || { cat stdout; return 1; }
}

# Token slices: halves and quarters of a micro-batch begin earlier; simulated and trained as they
# are. Of a model, later slices take longer, and a zigzag of slices is shorter than what the
# catalogue has.
with_slices() {
  prints 'synthesized, looped V=1, 4 slices' synthesize 1f1b:P=2,M=3 --memory=2 --freedoms=split,slices --schedule_out=mine.txt --json_out=found.json || return 1
  makespan "$(sed -n 's/^ *"step": \([0-9.]*\),*$/\1/p' found.json)" mine.txt || return 1
  "$pipelab" run mine.txt --steps=2 >stdout || return 1
  grep -q '^losses: within .*; bit-equal by slice$' stdout && grep -q 'as predicted to the byte' stdout || { cat stdout; return 1; }
  promised 1f1b:P=4,T=2,M=2 --memory=30GiB --freedoms=split,stages,slices || return 1
  grep -q '^slices 2$' mine.txt && grep -q 'best of the catalogue: .*slices=2 (+' stdout || { cat stdout; return 1; }
}

# Slices of a micro-batch that go to the host: simulated as promised, within the memory, and trained.
with_copies_of_slices() {
  promised 1f1b:P=4,T=2,M=2 --memory=24GiB --freedoms=split,stages,slices,offload || return 1
  grep -q 'slices, . stages may offload' stdout && grep -Eq ' ([0-9]+)O([0-9.]+) .* \1L\2 ' mine.txt || { cat stdout mine.txt; return 1; }
  "$pipelab" simulate mine.txt:T=2 --model=llama-3-8b --cluster=dgx-h100 | awk '$1 == "mine.txt:T=2" && NF > 8 { ++rows; if ($(NF - 1) > 24) exit 1 } END { exit rows != 4 }' || return 1
  "$pipelab" run mine.txt --steps=2 >stdout || return 1
  grep -q '^losses: within .*; bit-equal by slice$' stdout && grep -q 'as predicted to the byte' stdout || { cat stdout; return 1; }
}

# The times of a run: a drawn timeline is one. Its token slices are told apart.
of_trace() {
  "$pipelab" show seq1f1b --devices=2 --micro_batches=4 --slices=2 --trace_out=trace.json >/dev/null || return 1
  prints 'synthesized, looped V=1, 2 slices, whole backwards: passes take' synthesize 1f1b:P=2,M=4 --times=trace.json --memory=2 || return 1
  "$pipelab" show zb_h1 --devices=4 --micro_batches=8 --backward_weight=2 --trace_out=trace.json >/dev/null || return 1
  prints 'gap 0.00 %' synthesize 1f1b:P=4,M=8 --times=trace.json --memory=4
}

wrong_inputs() {
  refused 2 '--time_limit=0: must be a time above 0' synthesize 1f1b:P=4,M=8 --time_limit=0 || return 1
  refused 1 '--memory=2047: memory of device 0: 2047 bytes are free for activations; one micro-batch of stage 0 needs 2048' synthesize 1f1b:P=4,M=8 --memory=2047 --activation_bytes=2KiB || return 1
  echo '{"stages": [{"forward": "1 s", "backward_input": "1 s", "backward_weight": "1 s"}]}' >one.json
  refused 2 '--times=one.json: has 1 stages; the configuration has P x V = 4' synthesize 1f1b:P=4,M=8 --times=one.json || return 1
  refused 2 '--slow_device=4:0.5: must be DEVICE:SPEED' synthesize 1f1b:P=4,M=8 --slow_device=4:0.5 || return 1
  refused 2 "--freedoms=split,all: 'all' is none of" synthesize 1f1b:P=4,M=8 --freedoms=split,all || return 1
  refused 2 '--schedule_out=mine.csv: CSV says no token slices' synthesize 1f1b:P=4,M=8 --freedoms=slices --schedule_out=mine.csv || return 1
  refused 2 '--schedule_out=mine: must end with' synthesize 1f1b:P=4,M=8 --schedule_out=mine
}

# Ctrl-C: the best so far, and no failure.
interrupted() {
  "$pipelab" synthesize v_min:P=8,M=32 --memory=8 --time_limit=300s >stdout 2>stderr &
  local process=$!
  sleep 3
  kill -INT "$process"
  wait "$process" || { echo "exit $?"; cat stderr; return 1; }
  grep -q 'Ctrl-C ended the search' stdout || { cat stdout stderr; return 1; }
}

check "times by hand" by_hand
check "times of a model" of_model
check "copies to the host" with_copies
check "token slices" with_slices
check "copies of token slices" with_copies_of_slices
check "times of a run" of_trace
check "wrong inputs" wrong_inputs
check "Ctrl-C" interrupted
exit $((failures > 0))

#!/bin/bash
# pipelab as other programs call it: schedules that go from one form to another and back, judged and drawn, and the
# errors of the words themselves, with their exit codes.
set -euo pipefail
source tests/shell_checks.sh
source tests/pipelab_checks.sh

# csv -> json -> csv, and json -> json, of every scheme of the catalogue that serves the size.
round_trips() {
  local scheme served=0
  while read -r scheme; do
    "$pipelab" schedule "$scheme" --devices=4 --micro_batches=8 --format=csv >a.csv 2>stderr || continue
    served=$((served + 1))
    "$pipelab" schedule --csv=a.csv --format=json >a.json
    "$pipelab" schedule --json=a.json --format=csv >b.csv
    cmp a.csv b.csv || { echo "csv -> json -> csv changes $scheme"; return 1; }
    "$pipelab" schedule "$scheme" --devices=4 --micro_batches=8 --format=json --out=c.json
    "$pipelab" schedule --json=c.json --format=json >d.json
    cmp c.json d.json || { echo "json -> json changes $scheme"; return 1; }
    "$pipelab" schedule "$scheme" --devices=4 --micro_batches=8 --out=e.txt
    "$pipelab" schedule --text=e.txt --out=f.txt
    cmp e.txt f.txt || { echo "text -> text changes $scheme"; return 1; }
    "$pipelab" check --text=e.txt >stdout || { echo "check --text refuses $scheme"; return 1; }
    "$pipelab" check --csv=a.csv >stdout || { echo "check refuses $scheme"; return 1; }
    # A name, its CSV and its JSON are the same on paper.
    "$pipelab" simulate "$scheme" --devices=4 --micro_batches=8 --p2p_latency=0.25 --json_out=- >name.out
    "$pipelab" simulate --csv=a.csv --p2p_latency=0.25 --json_out=- >csv.out
    "$pipelab" simulate --json=- --p2p_latency=0.25 --json_out=- <c.json >json.out
    "$pipelab" simulate --text=e.txt --p2p_latency=0.25 --json_out=- >text.out
    cmp name.out csv.out && cmp name.out json.out && cmp name.out text.out || return 1
  done < <("$pipelab" list --json | sed -n 's/.*"name": "\(.*\)",.*/\1/p')
  [[ $served -ge 5 ]] || { echo "only $served schemes were tried"; return 1; }
}

# What PyTorch's runtime writes: messages and gathers are left out, and said so; pairs are read.
lowered_csv() {
  printf '0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,0RECV_B0,0B0,0B1,0B2,0REDUCE_GRAD,,\r\n' >lowered.csv
  printf '1F0,1F1,1B0,(1F2;1B1)OVERLAP_F_B,1B2\r\n' >>lowered.csv
  prints 'valid: 2 devices, 2 stages, 3 micro-batches, 1 replicas; 6 cells of messages (4), parameter gathers (1) and gradient reductions (1) left out' \
    check --csv=lowered.csv || return 1
  "$pipelab" schedule --csv=lowered.csv --format=csv >stdout 2>stderr || return 1
  [[ $(cat stdout) == $'0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1F1,1B0,1F2,1B1,1B2' ]] || { cat stdout; return 1; }
  [[ $(wc -l <stderr) == 1 ]] && grep -qF -- '--csv=lowered.csv: 6 cells' stderr || { cat stderr; return 1; }
  "$pipelab" simulate --csv=lowered.csv --json_out=- >stdout 2>stderr && grep -q '"skipped_cells": 6' stdout
}

# A full disk behind stdout is a failure of every command.
full_stdout() {
  local args status
  for args in "simulate 1f1b" "simulate 1f1b --json_out=-" "check --csv=ok.csv" "show 1f1b" "list" "schedule 1f1b" \
      "check --json=good.json" "--help"; do
    status=0
    "$pipelab" $args >/dev/full 2>stderr || status=$?
    [[ $status == 1 && $(wc -l <stderr) == 1 ]] || { echo "exit $status: $args"; cat stderr; return 1; }
    grep -q 'No space left' stderr || { cat stderr; return 1; }
  done
}

json_verdict() {
  "$pipelab" schedule 1f1b --devices=2 --micro_batches=2 --format=json >good.json
  "$pipelab" check --json=good.json >stdout 2>stderr || return 1
  [[ $(cat stdout) == '{"schema":1,"valid":true}' && ! -s stderr ]] || { cat stdout stderr; return 1; }
  sed 's/\["B", 1, 0, 0\], \["F", 1, 1, 0\], \["B", 1, 1, 0\]/["B", 1, 0, 0], ["B", 1, 1, 0], ["F", 1, 1, 0]/' \
    good.json >bad.json
  local status=0
  "$pipelab" check --json=bad.json >stdout 2>stderr || status=$?
  [[ $status == 1 && $(wc -l <stdout) == 1 && ! -s stderr ]] || { echo "exit $status"; cat stdout stderr; return 1; }
  grep -qF '"action":"1B1","device":1,"position":2' stdout || { cat stdout; return 1; }
  grep -qF 'device 1, position 2: 1B1 comes before its forward 1F1 (position 3)' stdout || { cat stdout; return 1; }
}

drawings() {
  prints 'device 0 |abcd......AA' show 1f1b --devices=4 --micro_batches=4 || return 1
  "$pipelab" show chimera --devices=4 --micro_batches=8 --svg_out=a.svg --trace_out=trace.json >stdout
  grep -q '^<svg' a.svg && grep -q '</svg>' a.svg || return 1
  local event
  for event in '"ph":"X"' '"ph":"s"' '"ph":"f"' '"ph":"C"'; do
    grep -qF "$event" trace.json || { echo "no $event in the trace"; return 1; }
  done
  "$pipelab" show 1f1b --bytes=64MiB --trace_out=trace.json >stdout
  grep -qF '"messages":67108864' trace.json || { echo "no memory in the trace"; return 1; }
  "$pipelab" show 1f1b --bytes=64MiB --activation_bytes=1GiB --memory_out=memory.svg >stdout
  grep -q '^<svg' memory.svg && grep -qF '>4160.00 MiB at 0F3<' memory.svg || { echo "no memory drawn"; return 1; }
  "$pipelab" show gpipe --svg_out=- >stdout
  [[ $(head -c 4 stdout) == '<svg' ]] || { head -c 100 stdout; return 1; }
}

# A token pipeline: JSON and back, its closed form, and training. The CSV form has no slices.
slices() {
  "$pipelab" schedule terapipe --devices=2 --micro_batches=2 --slices=3 --format=json --out=sliced.json
  grep -qF '"slices": 3' sliced.json && grep -qF '["F", 0, 0, 0, 2]' sliced.json || { cat sliced.json; return 1; }
  "$pipelab" schedule --json=sliced.json --format=json >again.json
  cmp sliced.json again.json || return 1
  # A slice costs a third, exactly: (M S + P - 1) / S times F + B = 3.
  prints 'makespan 7,' simulate --json=sliced.json || return 1
  prints 'makespan 7.1,' simulate terapipe --devices=2 --micro_batches=2 --slices=3 --p2p_latency=0.05 || return 1
  prints '0B0.2 0B0.1 0B0 0B1.2' schedule --json=sliced.json --format=text || return 1
  prints '{"schema":1,"valid":true}' check --json=sliced.json || return 1
  prints 'bit-equal by slice' run --json=sliced.json --steps=3
}

check "round trips" round_trips
check "verdict of a JSON file" json_verdict
check "PyTorch's lowered CSV" lowered_csv
check "drawings" drawings
check "slices" slices
check "text form" prints 'device 1: 1F0 1B0' schedule 1f1b --devices=2 --micro_batches=2
check "recompute" prints '0R0,0B0' schedule 1f1b --devices=2 --micro_batches=2 --recompute --format=csv
check "list" prints 'Huang et al.' list
check "list as JSON" prints '"name": "1f1b"' list --json
check "list of models" prints 'gpt-6.6b' list models
check "list of clusters as JSON" prints '"name": "dgx-a100"' list clusters --json
check "machines in one line each" prints 'rates b200-sxm' machine
check "values of a machine" prints 'published   data sheet, SXM' machine dgx-h100
check "roofline of a machine" prints 'products of n x n by n x n; fp8; peak 4500 Tflop/s' machine dgx-b200
check "curves of a machine, drawn" prints 'roof: peak 312 Tflop/s' machine dgx-a100 --svg_out=-
check "version" prints 'pipelab 0.' --version
check "help of search has its defaults" prints '--devices (default all of the cluster)' help search
for command in schedule simulate check show run list help; do
  check "help of $command" prints "pipelab $command" --help
done
check "valid CSV" eval 'printf "0F0,,0B0\n,1F0,1B0\n" >ok.csv; prints "valid: 2 devices" check --csv=ok.csv'
check "full stdout" full_stdout
check "deadlock" refused 1 \
  "deadlock: device 0 position 1 (0B0) waits for device 1 position 2 (1B0), which comes after device 1 position 1 (1F1), which waits for device 0 position 2 (0F1)" \
  check --csv="$testdata/deadlock.csv"
check "deadlock is not shown" refused 1 "deadlock: " show --csv="$testdata/deadlock.csv"
printf '0F0,0B0\n1F0,1B0,1F0\n' >twice.csv
check "an action twice" refused 1 "device 1, position 2: 1F0 comes a second time" check --csv=twice.csv
printf '0F0,0F1,0B0,0B1\n1F0,1B0,1B1\n' >dropped.csv
check "an action missing" refused 1 "--csv=dropped.csv: device 1, position 2: 1F1 is missing; 1B1 here needs it" check --csv=dropped.csv
printf '0F0,0F1,0B0,0B1\n1F0,1B0\n' >shorter.csv
check "a micro-batch missing" refused 1 "--csv=shorter.csv: device 1, position 2: 1F1 is missing; the list ends here" \
  check --csv=shorter.csv
printf '0F0,UNSHARD\n' >word.csv
check "a cell that is none" refused 1 "--csv=word.csv: line 1, column 5: expected a stage" check --csv=word.csv
echo '{"order": [], "ordre": 1}' >key.json
check "an unknown key" refused 1 "--json=key.json: field 'ordre': unknown" check --json=key.json
echo '{' >broken.json
check "no JSON" refused 1 "--json=broken.json:2:1: not JSON" simulate --json=broken.json
echo 'schedule x' >short.txt
check "a text that ends" refused 1 "--text=short.txt: line 2, column 1: expected" check --text=short.txt
check "memory without sizes" refused 2 "--memory_out=m.svg: needs sizes" show 1f1b --memory_out=m.svg
check "no file" refused 1 "--csv=none.csv" check --csv=none.csv
check "no command" refused 2 "a command is missing"
check "unknown command" refused 2 "'draw': no such command" draw
check "unknown scheme" refused 2 "scheme=zigzag" schedule zigzag
check "no scheme" refused 2 "needs a scheme's name" simulate
check "scheme and file" refused 2 "not both" show gpipe --csv=ok.csv
check "two files" refused 2 "give one of them" check --csv=ok.csv --json=good.json
check "bad size" refused 2 "--devices=0" schedule 1f1b --devices=0
check "another scheme's option" refused 2 "1f1b --replicas=4: only for chimera" schedule 1f1b --replicas=4
check "slices of another scheme" refused 2 "gpipe --slices=2: only for terapipe" schedule gpipe --slices=2
check "no slices in CSV" refused 2 "--format=csv: the CSV form cannot say token slices" schedule terapipe --format=csv
check "bad group" refused 2 "--group_size=3: a group is back" schedule interleaved --devices=4 --group_size=3
check "bad concatenation" refused 2 "--concatenation=half: must be one of direct" schedule chimera --concatenation=half
check "groups" prints "0F0,0F1,0F2,2F0,2F1,2F2" \
  schedule interleaved --devices=2 --micro_batches=6 --group_size=3 --format=csv
check "halves" prints "0F0,0F1,1F2,1F3,1B2,0B0,1B3,0B1" \
  schedule chimera --devices=2 --micro_batches=2 --concatenation=backward_halving --format=csv
check "a graph" prints "0F0,0F1,0B0,0F2,0B1,0B2" schedule graph --devices=2 --micro_batches=3 --format=csv
check "a join of two branches" prints "device 2: 2F0 2B0 2F1 2B1" \
  schedule graph --devices=3 --micro_batches=2 --edges=0-2,1-2 --format=text
check "larger micro-batches" prints '"stage_micro_batches": [4, 4, 2]' \
  schedule graph --devices=3 --micro_batches=4 --edges=0-2,1-2 --stage_micro_batches=4,4,2 --format=json
check "devices of a stage" prints "replica 0: 0 1+2" \
  schedule graph --devices=3 --stage_devices=1,2 --format=text
check "a graph has no CSV" refused 2 "the CSV form cannot say a stage graph that is not a chain" \
  schedule graph --devices=3 --edges=0-2,1-2 --format=csv
check "edges of another scheme" refused 2 "1f1b --edges: only for graph, vocab_1f1b, vocab_interlaced, vocab_v_half" \
  schedule 1f1b --devices=3 --edges=0-2,1-2
check "no edge" refused 2 "--edges=0-1,2: '2' is not an edge" schedule graph --devices=3 --edges=0-1,2
check "an edge too far" refused 2 "--edges=0-3: stage 3 does not exist; stages are 0 to 2" \
  schedule graph --devices=3 --edges=0-3
check "a ring" refused 2 "--edges: the stage graph has a cycle" schedule graph --devices=2 --edges=0-1,1-0
check "no number" refused 2 "--stage_micro_batches=8,x: 'x' is not a number from 1" \
  schedule graph --devices=2 --stage_micro_batches=8,x
check "too many devices" refused 2 "--stage_devices=1,2: has 3 devices, and --devices=4" \
  schedule graph --stage_devices=1,2
check "bad format" refused 2 "--format=xml: must be csv, text, json, megatron" schedule 1f1b --format=xml
check "unused option" refused 2 "--p2p_latency=1: check does not use it" check --csv=ok.csv --p2p_latency=1
check "unknown option" refused 2 "--device: unknown option" schedule 1f1b --device=4
printf '\xEF\xBB\xBF0F0,0B0\r\n1F0,1B0\r\n' >marked.csv
check "a spreadsheet's CSV" prints "valid: 2 devices" check --csv=marked.csv
check "stdout by name" prints "device 1: 1F0" schedule 1f1b --out=/dev/stdout
check "no output" refused 2 "--out=: is empty; give a file, or - for stdout" schedule 1f1b --out=
check "samples without a plan" refused 2 "--micro_batch_size=2: requires --plan" schedule 1f1b --micro_batch_size=2
check "one place for two drawings" refused 2 "--svg_out=a and --trace_out=a: only one of them can go there" \
  show 1f1b --svg_out=a --trace_out=a
check "no drawing before an error" refused 2 "--memory_out=m.svg: needs sizes" \
  show 1f1b --svg_out=early.svg --memory_out=m.svg
check "so no file of it" test ! -e early.svg
check "too much memory to draw" refused 1 "64000 actions are too many to draw; the limit is 50000" \
  show gpipe --devices=8 --micro_batches=4000 --bytes=1 --memory_out=m.svg
one_help() {
  prints "--svg_out" show --help && ! grep -q -- --planner stdout
}
check "help of one command" one_help

# Each topic is short, and what it shows as a command's beginning is one.
topics() {
  local topic name
  "$pipelab" --help | sed -n '/^Topics:/,/^`/s/^  \([a-z]*\)  .*/\1/p' >topics.txt
  [[ $(paste -sd, topics.txt) == schemes,models,clusters,planners,configuration,units,memory,files ]] ||
    { cat topics.txt; return 1; }
  while read -r topic; do
    prints "" help "$topic" || return 1
    [[ $(wc -l <stdout) -le 24 && $(wc -l <stdout) -ge 6 && $(wc -L <stdout) -le 100 ]] || { cat stdout; return 1; }
  done <topics.txt
  for name in zb_h1,schemes gpt-52b,models dgx-a100,clusters graphpipe,planners; do
    prints "${name%,*}" help "${name#*,}" || return 1
  done
}
check "help topics" topics
check "help of a mistyped topic" refused 2 "'scheme': no such command or topic; did you mean schemes?" help scheme
# The commands that topics show work.
topic_commands() {
  "$pipelab" help planners | sed -n 's/^  pipelab //p' >commands
  "$pipelab" help configuration | sed -n 's/^  pipelab //p' >>commands
  [[ $(wc -l <commands) == 3 ]] || { cat commands; return 1; }
  local -a words
  while read -r -a words; do
    "$pipelab" "${words[@]}" >stdout 2>stderr </dev/null || { echo "${words[*]}"; cat stderr; return 1; }
  done <commands
}
check "commands in topics" topic_commands
exit $((failures > 0))

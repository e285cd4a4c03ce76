#!/bin/bash
# Kinds of wrong use: each ends with the exit code and the one line on stderr that testdata/wrong_use.txt has for it
# (a last "..." stands for a list), and prints nothing but the figures of a step that does not fit. And a machine of
# eight 4090s is described in one round, from what the message says.
set -euo pipefail
table=$PWD/tests/testdata/wrong_use.txt
source tests/shell_checks.sh
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

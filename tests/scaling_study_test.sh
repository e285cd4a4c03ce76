#!/bin/bash
# A scaling study as a user calls it: it leaves a whole report, and a bad specification gives one line with file, key
# and reason, exit code 2, and nothing on the disk.
set -euo pipefail
source tests/shell_checks.sh

study=$PWD/$1
spec=$PWD/pipelines/cluster/specs/tpu-v2.json
work=$TEST_TMPDIR/scaling
mkdir -p "$work"
cd "$work"

whole_report() {
  "$study" --out="$work/report" >stdout 2>stderr || { cat stderr; return 1; }
  local table
  for table in largest_models throughput_table_2 throughput_table_3 schemes speed_up specifications; do
    [[ -s report/table_$table.csv ]] || { echo "no table $table"; ls report; return 1; }
  done
  grep -q "tpu-v2" stdout && grep -q "p100-pcie" stdout || { echo "the report does not say its specifications"; return 1; }
}

# The same machine from a file of the user's is the same study.
own_file() {
  cp "$spec" ours.json
  "$study" --cluster="$work/ours.json" --out="$work/ours" >/dev/null 2>stderr || { cat stderr; return 1; }
  cmp report/table_throughput_table_2.csv ours/table_throughput_table_2.csv
}

# refused CODE TEXT SED: the specification changed by SED.
refused() {
  local code=$1 text=$2
  sed "$3" "$spec" >bad.json
  if cmp -s bad.json "$spec"; then echo "$3 changed nothing"; return 1; fi
  one_line_error "$code" "$text" "$study" --cluster="$work/bad.json" --out="$work/out" || return 1
  [[ ! -e out ]] || { echo "left behind:"; ls -la out; return 1; }
}

check "whole report" whole_report
check "own file" own_file
check "negative bandwidth" refused 1 'bad.json: device.memory_bandwidth.value: "-350 GB/s": must be finite and not negative' \
  's/"350 GB\/s"/"-350 GB\/s"/'
check "missing unit" refused 1 'bad.json: device.memory.value: "8": the unit is missing' 's/"8 GiB"/"8"/'
check "unknown key" refused 1 'bad.json: levels[0].colour: unknown' 's/"sharing": "pair"/"colour": 1, "sharing": "pair"/'
check "unknown device" one_line_error 2 '--cluster=tpu-v9' "$study" --cluster=tpu-v9 --out="$work/out"
check "a word" one_line_error 2 "'x': not an option" "$study" x
exit $((failures > 0))

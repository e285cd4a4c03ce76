#!/bin/bash
# Calibration as a user calls it: a quick one leaves a file that other tools take as --cluster; what cannot become a
# file is refused in one line before anything is measured, and an old file stays as it was.
set -euo pipefail
source tests/shell_checks.sh

calibrate=$PWD/$1
study=$PWD/$2
work=$TEST_TMPDIR/calibrate
mkdir -p "$work"
cd "$work"

quick_file_is_taken() {
  "$calibrate" --quick --out="$work/new/here.json" >stdout 2>stderr || { cat stderr; return 1; }
  grep -q "specification: $work/new/here.json" stdout || { cat stdout; return 1; }
  grep -q matmul stdout || { cat stdout; return 1; }
  grep -q '"source": "measured: ' new/here.json || { cat new/here.json; return 1; }
  [[ $(ls -A new) == here.json ]] || { echo "more than the file is left:"; ls -la new; return 1; }
  "$study" --cluster="$work/new/here.json" --out="$work/report" >stdout 2>stderr || { cat stderr; return 1; }
  grep -q "measured" stdout || { cat stdout; return 1; }
}

file_beside_the_shell() {
  "$calibrate" --quick --out=near.json >stdout 2>stderr || { cat stderr; return 1; }
  [[ -s near.json ]]
}

# refused TEXT ARG...
refused() {
  local text=$1
  shift
  one_line_error 2 "$text" "$calibrate" --quick "$@"
}

old_file_stays() {
  echo old >old.json
  refused "--rounds=0" --rounds=0 --out="$work/old.json" || return 1
  [[ $(cat old.json) == old ]] || { cat old.json; return 1; }
}

check "a quick file is taken as --cluster" quick_file_is_taken
check "a file beside the shell" file_beside_the_shell
check "an old file stays" old_file_stays
mkdir -p folder.json
check "a folder" refused "--out=$work/folder.json: not a file; give one that ends in .json" --out="$work/folder.json"
check "another name" refused "--out=$work/here.txt: not a file; give one that ends in .json" --out="$work/here.txt"
check "no such place" refused "--out=/proc/none/: cannot be created" --out=/proc/none/here.json
check "a word" refused "'now': not an option" now
check "seconds" refused "--seconds=0" --seconds=0 --out="$work/x.json"
exit $((failures > 0))

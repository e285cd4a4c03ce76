#!/bin/bash
# //experiments:all as a user calls it, over a few studies: results twice with the same deterministic columns,
# RESULTS.md, and //experiments:compare of the two. Arguments: all, compare.
set -euo pipefail
source tests/shell_checks.sh

all=$PWD/$1 compare=$PWD/$2
work=$TEST_TMPDIR/results
mkdir -p "$work"
cd "$work"
few=(--quick '--only=schedule_formulas,cost_model_validation,terapipe_comparison')

runs_twice() {
  local run
  for run in a b; do
    "$all" "${few[@]}" --out="$work/$run" >"$work/$run.out" 2>"$work/$run.err" || { cat "$work/$run.err"; return 1; }
  done
  local study
  for study in schedule_formulas cost_model_validation terapipe_comparison; do
    cmp "$work/a/$study/deterministic.csv" "$work/b/$study/deterministic.csv" || return 1
    [[ $(wc -l <"$work/a/$study/deterministic.csv") -gt 20 ]] || { echo "few lines: $study"; return 1; }
    grep -q "$study: .*deterministic columns equal" "$work/a.err" || { cat "$work/a.err"; return 1; }
  done
}

page_has_misses_first() {
  local page=$work/a/RESULTS.md
  grep -q "^## Studies that fail, or have a claim that does not hold" "$page" || return 1
  grep -q "| depends on (see below) |" "$page" || { cat "$page"; return 1; }
  local missed met
  missed=$(grep -n "^### terapipe_comparison" "$page" | cut -d: -f1)
  met=$(grep -n "^### cost_model_validation" "$page" | cut -d: -f1)
  [[ $missed -lt $met ]] || { echo "terapipe at $missed, validation at $met"; return 1; }
  grep -q "tools/bazel run //experiments:terapipe_comparison -- --quick" "$page" || return 1
  grep -q "GPipe (arXiv 1811.06965) | Table 1, AmoebaNet.*not run" "$page" || return 1
  grep -q "not covered: " "$page" || return 1
}

compare_says_equal() {
  "$compare" "$work/a" "$work/b" --check >"$work/text" || { cat "$work/text"; return 1; }
  grep -q "Nothing differs beyond noise." "$work/text" || { cat "$work/text"; return 1; }
  "$compare" "$work/a" "$work/b" --deterministic >"$work/text" || { cat "$work/text"; return 1; }
  grep -q "byte for byte, in 3 of 3 studies" "$work/text" || { cat "$work/text"; return 1; }
  one_line_error 1 "deterministic columns differ" "$compare" --deterministic "$work/a" "$work/a/terapipe_comparison" >/dev/null || return 1
  "$compare" "$work/a" "$work/b" --json | python3 -c 'import json, sys; r = json.load(sys.stdin); assert r["same"] and len(r["studies"]) == 3, r' || return 1
  one_line_error 1 "the results differ" "$compare" --check "$work/a" "$work/a/terapipe_comparison" >/dev/null || return 1
}

usage() {
  one_line_error 2 "--only=x: 'x' is not one of quickstart" "$all" --only=x --out="$work/x" || return 1
  one_line_error 2 "compare takes two folders" "$compare" "$work/a" || return 1
  one_line_error 1 "none: there is no such folder" "$compare" "$work/none" "$work/a" || return 1
}

check "two runs have the same deterministic columns" runs_twice
check "RESULTS.md begins with what is missed" page_has_misses_first
check "compare finds no difference" compare_says_equal
check "what cannot be" usage
exit $((failures > 0))

#!/bin/bash
# --help, shell completion and the manual page say the same options.
set -euo pipefail
source tests/shell_checks.sh
source tests/pipelab_checks.sh

# shellcheck disable=SC1090
source <("$pipelab" completion bash)

# completes EXPECTED WORD...: what bash offers for the last word; EXPECTED is all of it, or begins with '*' and is
# one of the words.
completes() {
  local expected=$1
  shift
  # shellcheck disable=SC2034  # read by _pipelab
  COMP_WORDS=(pipelab "$@") COMP_CWORD=$# COMPREPLY=()
  _pipelab
  local all=" ${COMPREPLY[*]} "
  [[ $all == " $expected " || ($expected == \** && $all == *" ${expected#\*} "*) ]] || { echo "offered:$all"; return 1; }
}

# options_of COMMAND: their names, by its help.
options_of() { "$pipelab" help "$1" | sed -n 's/^  --\([a-z0-9_]*\).*/\1/p'; }

# is_everywhere COMMAND: all of its options are offered, and on the manual page.
is_everywhere() {
  local option
  for option in $(options_of "$1"); do
    completes "*--$option=" "$1" "--$option" >not_offered || completes "*--$option" "$1" "--$option" || return 1
    grep -qF "\\fB\\-\\-$option\\fR" <(sed -n "/^\.SS $1\$/,/^\.S[SH] /p" man.1) || { echo "no --$option in man"; return 1; }
  done
}

# syntax SHELL: where it is installed.
syntax() {
  command -v "$1" >/dev/null || { echo "skipped: $1 is not installed"; return 0; }
  "$pipelab" completion "$1" >script && "$1" -n script
}

"$pipelab" help --man >man.1
mapfile -t commands < <("$pipelab" --help | sed -n 's/^  \([a-z_]*\): .*/\1/p')
check "all commands" test "${#commands[@]}" -ge 13
for command in "${commands[@]}"; do
  check "options of $command" is_everywhere "$command"
done
check "a command" completes "simulate" sim
check "two commands" completes "check compare check_plan completion" c
check "a scheme" completes "chimera" simulate chim
check "an option" completes "--model= --model_time_unit=" simulate --mod
check "a switch has no value" completes "--atomic_pairs" simulate --atomic
check "the value of an option" completes "dgx-a100" simulate 1f1b --cluster = dgx-a
check "all values of an option" completes "*tpu-v3" simulate 1f1b --cluster =
check "a planner" completes "pipedream piper" plan --planner = pip
check "a listing" completes "*schemes models clusters" list ""
check "a part of a listing" completes "models" list mo
check "a machine" completes "dgx-b200 dgx-b300" machine dgx-b
check "nothing" completes "" simulate zzz
touch mine.csv
check "a file" completes "mine.csv" check --csv = mi
for shell in bash zsh fish; do check "$shell reads it" syntax "$shell"; done
check "another shell" refused 2 "'tcsh': completion takes bash, zsh or fish" completion tcsh
check "no shell" refused 2 "completion requires bash, zsh or fish" completion
exit $((failures > 0))

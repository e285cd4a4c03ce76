# shellcheck shell=bash
# What the shell tests have in common; they source it.
#
#   source tests/shell_checks.sh                                   # in the runfiles' root
#   check "unknown option" one_line_error 2 "--device" "$program" --device=4
#   exit $((failures > 0))

failures=0

# check NAME TEST...: runs the test, counts and reports.
check() {
  local name=$1
  shift
  if "$@"; then echo "ok: $name"; else echo "FAILED: $name"; failures=$((failures + 1)); fi
}

# one_line_error CODE TEXT COMMAND...: the command ends with CODE, and one line on stderr that has TEXT. What it
# wrote is in the files stdout and stderr of the current folder.
one_line_error() {
  local code=$1 text=$2 status=0
  shift 2
  "$@" >stdout 2>stderr || status=$?
  if [[ $status != "$code" ]]; then echo "exit $status instead of $code: $*"; cat stderr; return 1; fi
  if [[ $(wc -l <stderr) != 1 ]]; then echo "not one line: $*"; cat stderr; return 1; fi
  if ! grep -qF -- "$text" stderr; then echo "no '$text' in:"; cat stderr; return 1; fi
}

# processes_of PROGRAM: the ids of the processes that run this file.
processes_of() {
  local folder program
  for folder in /proc/[0-9]*; do
    if IFS= read -r -d '' program <"$folder/cmdline" && [[ $program == "$1" ]]; then echo "${folder#/proc/}"; fi
  done 2>/dev/null
  return 0
}

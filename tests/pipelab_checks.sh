# shellcheck shell=bash
# What the tests of the command line have in common; they source it after shell_checks.sh, with pipelab's path as
# their first argument. They then stand in a folder of their own.

pipelab=$PWD/$1
# shellcheck disable=SC2034  # for those who source this
testdata=$PWD/tests/testdata
# shellcheck disable=SC2034
examples=$PWD/models/files/examples
mkdir -p "$TEST_TMPDIR/cli"
cd "$TEST_TMPDIR/cli" || exit 1

# prints TEXT ARG...: exit 0, nothing on stderr, and TEXT on stdout.
prints() {
  local text=$1
  shift
  "$pipelab" "$@" >stdout 2>stderr || { echo "exit $?: $*"; cat stderr; return 1; }
  [[ ! -s stderr ]] || { echo "on stderr of $*:"; cat stderr; return 1; }
  grep -qF -- "$text" stdout || { echo "no '$text' in the output of $*:"; cat stdout; return 1; }
}

# refused CODE TEXT ARG...: exit CODE, one line on stderr that has TEXT, nothing on stdout.
refused() {
  local code=$1 text=$2
  shift 2
  one_line_error "$code" "$text" "$pipelab" "$@" || return 1
  [[ ! -s stdout ]] || { echo "on stdout of $*:"; cat stdout; return 1; }
}

# makespan NUMBER ARG...: what simulate says.
makespan() {
  local expected=$1
  shift
  "$pipelab" simulate "$@" --json_out=- >stdout 2>stderr || { echo "exit $?: $*"; cat stderr; return 1; }
  grep -q "\"makespan\": $expected,\?\$" stdout || { echo "not $expected: $*"; cat stdout; return 1; }
}

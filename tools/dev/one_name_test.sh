#!/bin/bash
# one_name.py finds a type that two headers define, and a type beside a function of its name.
set -euo pipefail
one_name=$PWD/tools/dev/one_name.py
cd "$(mktemp -d "${TEST_TMPDIR:-/tmp}/one_name.XXXXXX")"
failures=0

header() { printf 'namespace pipelab {\n%s\n}  // namespace pipelab\n' "$2" >"$1"; }
header a.h $'struct Pass {\n  int Run();\n};\nclass Later;\nint Sum(int a);'
header same.h 'class Pass final : public Base {'
header function.h 'const Thing& Pass(int p);'
header apart.h $'struct Other {\nclass Later;'
printf 'namespace pipelab {\nnamespace gpu {\nstruct Pass {\n}  // namespace gpu\n}  // namespace pipelab\n' >nested.h

# finds EXPECTED HEADER...: what one_name.py prints of the headers, and whether it fails.
finds() {
  local expected=$1 rc=0 wanted=0
  shift
  "$one_name" "$@" >out || rc=$?
  if [[ $expected ]]; then wanted=1; fi
  if [[ $(cat out) != "$expected" || $rc != "$wanted" ]]; then
    echo "FAILED: $*: exit code $rc"
    diff <(echo "$expected") out || true
    failures=$((failures + 1))
  fi
}
finds '' a.h apart.h nested.h
finds 'pipelab::Pass: a type in a.h and in same.h; rename one' a.h same.h
finds 'pipelab::Pass: a type in a.h and a function in function.h; rename one' a.h function.h
exit $((failures > 0))

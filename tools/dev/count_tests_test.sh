#!/bin/bash
# Tests count_tests.py on a log and test.xml files with every way a target can end.
set -euo pipefail
counter=$PWD/tools/dev/count_tests.py
cd "$(mktemp -d "${TEST_TMPDIR:-/tmp}/count.XXXXXX")"

cat >log <<'LOG'
//a:passes is a line of a test's own output, no status
//a:good                                                        (cached) PASSED in 0.0s
//a:shell                                                                PASSED in 0.1s
//a:sharded                                                              PASSED in 0.1s
//a:bad                                                                  FAILED in 0.3s
  /somewhere/testlogs/a/bad/test.log
//a/b:crash                                                              FAILED in 0.3s
//a/b:slow                                                              TIMEOUT in 60.0s
//a/b:flaky                                              FLAKY, failed in 1 out of 2 in 0.3s
//a/b:gpu                                                               SKIPPED
//a/b:broken                                                    FAILED TO BUILD
//a/b:unreached                                                       NO STATUS
LOG
xml() {  # xml TARGET: test.xml of that target; cases from stdin
  mkdir -p "logs/$1"
  { echo '<testsuites><testsuite name="S">'; cat; echo '</testsuite></testsuites>'; } >"logs/$1/test.xml"
}
xml a/good <<'XML'
<testcase name="A" status="run" result="completed" classname="S"/>
<testcase name="B" status="run" result="skipped" classname="S"><skipped message="x.cc:6&#x0A;no GPU"/></testcase>
<testcase name="DISABLED_C" status="notrun" result="suppressed" classname="S"/>
XML
xml a/shell <<<'<testcase name="a/shell" status="run"/>'
xml a/sharded/shard_1_of_2 <<<'<testcase name="A" classname="S"/>'
xml a/sharded/shard_2_of_2 <<<'<testcase name="B" classname="S"/>'
xml a/bad <<<'<testcase name="A" classname="S"/><testcase name="B" classname="S"><failure message="no"/></testcase>'
xml a/b/crash <<<'<testcase name="A" classname="S"/>'
xml a/b/flaky <<<'<testcase name="A" classname="S"/>'
xml a/stale <<<'<testcase name="A" classname="S"/>'
mkdir -p logs/a/b/slow && echo '<testsuites><cut' >logs/a/b/slow/test.xml

got=$(python3 "$counter" log logs 2>names)
want='7 5 3'  # good 1, shell 1, sharded 2, bad 1, crash 1, flaky 1 | bad, crash, slow, broken, unreached
[[ $got == "$want" ]] || { echo "counted '$got', expected '$want'"; cat names; exit 1; }
for line in 'skipped: //a:good S.B (no GPU)' 'skipped: //a:good S.DISABLED_C (disabled)' 'failed: //a:bad S.B' \
  'skipped: //a/b:gpu (needs a --config that is off)' 'failed: //a/b:crash (failed)' \
  'failed: //a/b:broken (failed to build)' 'failed: //a/b:unreached (no status)'; do
  grep -qxF "$line" names || { echo "'$line' is not in:"; cat names; exit 1; }
done
: >empty
[[ $(python3 "$counter" empty logs) == '0 0 0' ]] || { echo 'an empty log must count nothing'; exit 1; }
echo 'all passed'

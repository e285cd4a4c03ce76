#!/bin/bash
# Makes the wheel, installs it into a fresh environment without network, and runs package_test.py there:
# the same figures as the command line's, its errors, arrays, drawings, interrupts.
set -euo pipefail
pipelab=$PWD/$1
if nm -D python/pipelab/_core.so | grep -q __asan_init; then
  echo "skipped: the interpreter has no AddressSanitizer"
  exit 0
fi
wheel=$(python/wheel.sh "--out=$TEST_TMPDIR/dist")
again=$(python/wheel.sh "--out=$TEST_TMPDIR/again")
cmp "$wheel" "$again" || { echo "two wheels of the same sources differ"; exit 1; }
venv=$TEST_TMPDIR/venv
/usr/bin/python3 -m venv "$venv"
"$venv/bin/pip" install --no-index --quiet "$wheel"
# It brings its libraries, so that it runs where none of Debian's are installed.
installed=$(echo "$venv"/lib/python3*/site-packages/pipelab)
foreign=$(env -i ldd "$installed"/_core*.so | awk '$2 == "=>" { print $3 }' | grep -v "^$installed/libs/" |
  grep -vE '/(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s))\.so') || true
[[ -z $foreign ]] || { echo "the wheel's extension loads $foreign"; exit 1; }
cd "$TEST_TMPDIR" # not where the sources are
"$venv/bin/python" - <<'EOT'
import pipelab
schedule = pipelab.Schedule("1f1b", devices=2, micro_batches=2)
try:
    schedule.actions()
    raise SystemExit("an array without numpy")
except pipelab.Error as error:
    assert str(error) == "numpy: missing; arrays need it (pip install numpy)", error
EOT
sed -i 's/^include-system-site-packages = false/include-system-site-packages = true/' "$venv/pyvenv.cfg"
tests=$OLDPWD/python/tests
"$venv/bin/python" "$tests/package_test.py" "$pipelab"
"$venv/bin/python" "$tests/wrong_use_test.py" "$pipelab"
"$venv/bin/python" "$tests/run_notebook.py" "$tests/../story.ipynb"
"$venv/bin/python" "$tests/run_notebook.py" "$tests/../../docs/python.md"

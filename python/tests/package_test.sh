#!/bin/bash
# Makes the wheel, installs it into a fresh environment without network, and runs its command and package_test.py
# there: the same figures as the command line's, its errors, arrays, drawings, interrupts.
set -euo pipefail
pipelab=$PWD/$1
if [[ $(nm -D python/pipelab/_core.so) == *__asan_init* ]]; then
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
for binary in "$installed"/_core*.so "$installed/bin/pipelab"; do
  foreign=$(env -i ldd "$binary" | awk '$2 == "=>" { print $3 }' | grep -vE "^$installed/(bin/../)?lib/pipelab/" |
    grep -vE '/(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s))\.so') || true
  [[ -z $foreign ]] || { echo "the wheel's $binary loads $foreign"; exit 1; }
done
cd "$TEST_TMPDIR" # not where the sources are
# The command of the environment, with nothing of this shell's; by a link, too.
ln -s "$venv/bin/pipelab" linked
# shellcheck disable=SC2054  # a list of schemes
search=(search --model=gpt-6.6b --cluster=dgx-a100 --devices=8 --batch=32 --top=3 --schemes=1f1b,gpipe)
"$pipelab" "${search[@]}" >expected
env -i "$venv/bin/pipelab" "${search[@]}" | diff -u expected - || { echo "the wheel's search prints something else"; exit 1; }
[[ $(env -i ./linked --version) == "$("$pipelab" --version)" ]] || { echo "the wheel's command has another version"; exit 1; }
# What it has not, it says in one line: training, its own program, the package.
# says LINE COMMAND...
says() {
  local line=$1 out rc=0
  shift
  out=$("$@" 2>&1) || rc=$?
  # shellcheck disable=SC2053  # a pattern
  [[ $rc == 1 && $out == $line && $out != *$'\n'* ]] || { echo "$*: exit code $rc, $out"; exit 1; }
}
says '*/pipelab_train: no such program, and trainings need it*' "$venv/bin/pipelab" run 1f1b
mv "$installed/bin" "$installed/gone"
says "$installed/bin/pipelab: No such file or directory; install the wheel again" "$venv/bin/pipelab" list
mv "$installed" "$installed.gone"
says 'pipelab: this Python has no package of that name; install the wheel again' "$venv/bin/pipelab" list
mv "$installed.gone" "$installed" && mv "$installed/gone" "$installed/bin"
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

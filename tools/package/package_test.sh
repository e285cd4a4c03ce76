#!/bin/bash
# Installs, and makes a release: a .deb, a tarball, a wheel and their checksums. A program outside of the tree is
# compiled against what is installed or unpacked, by pkg-config and by CMake, and prints what the installed command
# prints, which trains and starts studies, too; what is wrong is refused. The wheel's own test is
# //python:package_test.
set -euo pipefail
root=$PWD
symbols=$(nm -D experiments/pipelab_plan)
if [[ $symbols == *__asan_init* || $symbols == *__tsan_init* || $symbols == *__ubsan_handle* ]]; then
  echo "skipped: a sanitizer's runtime is no part of a package"
  exit 0
fi
export PIPELAB_QUICK_PACKAGE=1 # what is packed is shown, and not how small
box=$(mktemp -d "$TEST_TMPDIR/package.XXXXXX")
package() { (cd "$box" && "$root/tools/package/package.sh" "$@"); }
fail() {
  echo "package_test: $*" >&2
  exit 1
}
version() { "$1" --version | sed 's/^pipelab \([^ :]*\).*/\1/'; }
# The page's program, its makefile of CMake, and what it prints.
block() { awk -v name="$1" '$0 == "```" { on = 0 } on { print } $0 ~ "^```[a-z]+ " name "$" { on = 1 }' docs/packages.md; }
mkdir "$box/mine"
block step.cc >"$box/mine/step.cc"
block CMakeLists.txt >"$box/mine/CMakeLists.txt"
block output >"$box/mine/expected"
for file in step.cc CMakeLists.txt expected; do
  [[ -s $box/mine/$file ]] || fail "docs/packages.md has no block named $file"
done

# try PREFIX LIBRARY_PATH: the command, the program and the headers of what is installed in PREFIX.
try() {
  local prefix=$1 out
  [[ $("$prefix/bin/pipelab" --version) == "$(experiments/pipelab_plan --version)" ]] || fail "$prefix: another version"
  [[ $("$prefix/bin/pipelab" simulate 1f1b:P=4,M=8) == "$(experiments/pipelab_plan simulate 1f1b:P=4,M=8)" ]] ||
    fail "$prefix: another step"
  # By a link elsewhere: the programs that it starts lie beside the file that the link leads to.
  ln -sf "$prefix/bin/pipelab" "$box/linked"
  out=$("$box/linked" run 1f1b:P=2,M=2 --steps=1 2>&1) || fail "$prefix: pipelab run: $out"
  [[ $out == *bit-equal* ]] || fail "$prefix: pipelab run printed: $out"
  out=$("$box/linked" study schedule_formulas --help 2>&1) || fail "$prefix: pipelab study: $out"
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  # shellcheck disable=SC2046  # words
  g++ "$box/mine/step.cc" $(pkg-config --cflags --libs pipelab) -o "$box/mine/step"
  out=$(LD_LIBRARY_PATH=$2 "$box/mine/step")
  [[ $out == "$(cat "$box/mine/expected")" ]] || fail "$prefix: the page's program printed: $out"
  [[ $(pkg-config --modversion pipelab) == "$(version "$prefix/bin/pipelab")" ]] ||
    fail "$prefix: pkg-config has another version"
}

package install "--prefix=$box/installed"
package install "--prefix=$box/installed" # again, over it
try "$box/installed" "$box/installed/lib"
if grep -rlF -e "$root" -e "$box" "$box/installed"; then fail "these name the build's folders"; fi
# Headers that a program begins with, each alone, and all of them together.
(cd "$box/installed/include/pipelab" && find . -name '*.h' | sed 's/.*/#include "&"/' >"$box/all.cc")
while read -r line; do
  echo "$line" >"$box/one.cc"
  # shellcheck disable=SC2046
  g++ -fsyntax-only $(pkg-config --cflags pipelab) "$box/one.cc" || fail "$line does not compile alone"
done < <(grep -E '/(ir/schedule|schedules/catalog|search/search|sim/simulate|step/step)\.h"' "$box/all.cc")
# shellcheck disable=SC2046
g++ -fsyntax-only $(pkg-config --cflags pipelab) "$box/all.cc" || fail "the headers do not compile together"
if command -v cmake >/dev/null; then
  CMAKE_PREFIX_PATH=$box/installed cmake -S "$box/mine" -B "$box/made" >"$box/cmake.log"
  cmake --build "$box/made" >>"$box/cmake.log" || { cat "$box/cmake.log"; fail "CMake"; }
  [[ $("$box/made/step") == "$(cat "$box/mine/expected")" ]] || fail "CMake's program printed something else"
  sed 's/pipelab 0\.[0-9]*/pipelab 0.1/' "$box/mine/CMakeLists.txt" >"$box/wrong.txt"
  mkdir "$box/wrong" && cp "$box/mine/step.cc" "$box/wrong/" && mv "$box/wrong.txt" "$box/wrong/CMakeLists.txt"
  if CMAKE_PREFIX_PATH=$box/installed cmake -S "$box/wrong" -B "$box/wrong/made" &>"$box/cmake.log"; then
    fail "CMake took another version of the surface"
  fi
else
  echo "skipped: no cmake, so pipelabConfig.cmake is not tried"
fi

# A release: each line is a file, and the checksums are those of the files.
package release --out=dist >"$box/release.txt"
{ read -r deb && read -r tarball && read -r wheel && read -r sums; } <"$box/release.txt" || fail "release printed: $(cat "$box/release.txt")"
(cd "$box/dist" && sha256sum --check --strict --quiet "$sums") || fail "the checksums"
[[ $(awk '{ print $2 }' "$sums") == "$(basename -a "$deb" "$tarball" "$wheel")" ]] || fail "SHA256SUMS: $(cat "$sums")"
[[ $(find "$box/dist" -type f | wc -l) == 4 ]] || fail "a release has $(ls "$box/dist")"
number=$(version experiments/pipelab_plan)
[[ $deb == */pipelab_${number/-/"~"}_*.deb && $tarball == */pipelab-$number-linux-* && $wheel == */pipelab-${number/-/.}*-cp3*.whl ]] ||
  fail "names without the version $number: $(cat "$box/release.txt")"

# The .deb: what it says, and what is in it, unpacked and not installed.
[[ $(dpkg-deb --field "$deb" Depends) == *libabsl*libc6*python3* ]] || fail "Depends: $(dpkg-deb --field "$deb" Depends)"
[[ $(dpkg-deb --field "$deb" Version) == "${number/-/"~"}" ]] || fail "the .deb's version"
[[ $(dpkg-deb --contents "$deb" | awk '$6 ~ "/bin/." { print $1, $2, $6 }') == \
"-rwxr-xr-x root/root ./usr/bin/pipelab
-rwxr-xr-x root/root ./usr/bin/pipelab_study
-rwxr-xr-x root/root ./usr/bin/pipelab_train" ]] || fail "the .deb's programs: $(dpkg-deb --contents "$deb")"
dpkg-deb --extract "$deb" "$box/unpacked"
try "$box/unpacked/usr" "$box/unpacked/usr/lib"
PYTHONPATH=$box/unpacked/usr/lib/python3/dist-packages /usr/bin/python3 -c '
import pipelab
assert pipelab.simulate("1f1b", devices=4, micro_batches=8).makespan > 0'

# The tarball, unpacked elsewhere and with nothing of this shell's: its own libraries are the ones that load.
mkdir "$box/elsewhere" && tar -C "$box/elsewhere" -xzf "$tarball"
rm -r "$box/dist"
moved=$(echo "$box"/elsewhere/*)
try "$moved" "$moved/lib"
for program in pipelab pipelab_study pipelab_train; do
  foreign=$(env -i ldd "$moved/bin/$program" | awk '$2 == "=>" { print $3 }' | grep -v "^$moved/" |
    grep -vE '/(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s))\.so') || true
  [[ -z $foreign ]] || fail "the tarball's $program loads $foreign"
done

# refused CODE LINE WORD...: what package.sh says to a wrong use.
refused() {
  local code=$1 line=$2 out rc=0
  shift 2
  out=$(package "$@" 2>&1) || rc=$?
  # shellcheck disable=SC2053  # a pattern
  [[ $rc == "$code" && $out == $line ]] || fail "$*: exit code $rc, $out"
}
touch "$box/file"
refused 2 '--prefix: missing; *' install
refused 2 '--out=x: install takes --prefix=DIR alone' install --out=x
refused 2 'dist: deb takes --out=DIR alone' deb dist
refused 2 '--out=: tarball takes --out=DIR alone' tarball --out=
refused 2 '--prefix=x: release takes --out=DIR alone' release --prefix=x
refused 1 '--prefix=*/file: *; name a folder that you may write' install --prefix=file
refused 1 '--out=*/file: *; name a folder that you may write' deb --out=file

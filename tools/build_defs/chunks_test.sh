#!/bin/bash
# chunks.sh: every file once, in order, at most 1,500 lines a chunk; what is left over is empty, too few is an error.
set -euo pipefail
chunks=$PWD/tools/build_defs/chunks.sh
cd "$(mktemp -d "${TEST_TMPDIR:-/tmp}/chunks.XXXXXX")"
fail() { echo "FAILED: $*"; exit 1; }

lines() { yes '// a line' | head -n "$1" || true; }
for name in a b c d; do lines 600 >$name.cc; done
lines 10 >x_fuzz.cc
"$chunks" out 4 a.cc b.cc c.cc d.cc x_fuzz.cc
[[ $(cat out/*.cc | grep include) == "$(printf '#include "%s.cc"\n' a b c d x_fuzz)" ]] || fail "the files: $(cat out/*.cc)"
[[ $(cat out/1.cc) == $'#include "a.cc"\n#include "b.cc"' ]] || fail "the first chunk: $(cat out/1.cc)"
[[ -e out/4.cc && ! -s out/3.cc && ! -s out/4.cc ]] || fail "chunks that are left over are empty"
grep -q '^#define LLVMFuzzerTestOneInput x_fuzz$' out/2.cc || fail "an entry has a name of its own: $(cat out/2.cc)"
grep -q '^#undef LLVMFuzzerTestOneInput$' out/2.cc || fail "and gives the name back"
if "$chunks" few 1 a.cc b.cc c.cc 2>error; then fail "two chunks in the place of one"; fi
grep -q 'few: 2 chunks of 1,500 lines, and 1 are foreseen' error || fail "the error: $(cat error)"

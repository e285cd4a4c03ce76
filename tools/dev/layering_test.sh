#!/bin/bash
# layering.py finds an #include that no direct dependency offers, and a header that nobody does.
set -euo pipefail
layering=$PWD/tools/dev/layering.py
cd "$(mktemp -d "${TEST_TMPDIR:-/tmp}/layering.XXXXXX")"
failures=0

mkdir a b
echo '#include "b/b.h"' | tee a/a.h >a/wrong.cc
printf '#include <vector>\n#include "gtest/gtest.h"\n#include "a/a.h"\n  #  include "b/made.h"\n' >a/a.cc
echo '#include "a/lost.h"' >a/lost.cc
touch b/b.h b/private.h a/lost.h
echo '#include "b/private.h"' | tee b/b.cc >a/private.cc

# target CLASS NAME ATTRIBUTE LABEL,...: a rule of the query's answer.
target() {
  local class=$1 name=$2 label
  shift 2
  echo "<rule class='$class' name='$name'>"
  while (($#)); do
    echo "<list name='$1'>"
    for label in ${2//,/ }; do echo "<label value='$label'/>"; done
    echo '</list>'
    shift 2
  done
  echo '</rule>'
}
b=$(target cc_library //b:b srcs //b:b.cc,//b:private.h hdrs //b:b.h,//b:made.h)

# finds NAME EXPECTED RULES: what layering.py prints, and whether it fails.
finds() {
  local rc=0 expected=0
  echo "<query>$b$3</query>" >query.xml
  "$layering" query.xml >out || rc=$?
  if [[ $2 ]]; then expected=1; fi
  if [[ $(cat out) != "$2" || $rc != "$expected" ]]; then
    echo "FAILED: $1: exit code $rc"
    diff <(echo "$2") out || true
    failures=$((failures + 1))
  fi
}

finds "a direct dependency" '' "$(target cc_library //a:a srcs //a:a.cc hdrs //a:a.h deps //b:b)"
finds "by an alias" '' "$(target cc_library //a:a srcs //a:a.cc hdrs //a:a.h deps //a:alias)
<rule class='alias' name='//a:alias'><rule-input name='//b:b'/></rule>"
finds "no dependency" '//a:a: a/a.h includes b/b.h; add //b:b to deps
//a:wrong: a/wrong.cc includes b/b.h; add //b:b to deps' \
  "$(target cc_library //a:a hdrs //a:a.h)$(target cc_test //a:wrong srcs //a:wrong.cc deps //a:a)"
finds "another target's own header" '//a:a: a/private.cc includes b/private.h, which is in no target'"'"'s hdrs' \
  "$(target cc_library //a:a srcs //a:private.cc deps //b:b)"
finds "a header that no target has" '//a:a: a/lost.cc includes a/lost.h, which is in no target'"'"'s hdrs' \
  "$(target cc_binary //a:a srcs //a:lost.cc)"

if ((failures)); then exit 1; fi
echo PASS

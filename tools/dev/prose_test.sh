#!/bin/bash
# prose.py finds what it is for, with the line, and nothing in code, tables' cells or made text; and comments of C++
# that begin without a subject.
set -euo pipefail
prose=$PWD/tools/dev/prose.py
cd "$(mktemp -d "${TEST_TMPDIR:-/tmp}/prose.XXXXXX")"
failures=0

# found NAME EXPECTED [FILE]: what prose.py prints about the page on stdin, and whether it fails.
found() {
  local rc=0 expected=0 page=${3:-page.md}
  cat >"$page"
  "$prose" "$page" >out || rc=$?
  if [[ $2 ]]; then expected=1; fi
  if [[ $(cat out) != "$2" || $rc != "$expected" ]]; then
    echo "FAILED: $1: exit code $rc"
    diff <(echo "$2") out || true
    failures=$((failures + 1))
  fi
}
words() { printf 'w%.0s ' $(seq "$1"); }

found "a clean page" '' <<PAGE
# A page

One row per device.
$(words 39)end.
PAGE
found "a sentence may end with a number" '' <<PAGE
$(words 30)16. $(words 9)
$(words 30)end.
PAGE
found "a long line" 'page.md:2: 101 columns, at most 100' <<PAGE

a $(printf 'x%.0s' {1..99})
$(printf 'x%.0s' {1..120})
PAGE
found "a long sentence" 'page.md:3: a sentence of 41 words, at most 40' <<PAGE
Short. This one begins here and is not long.

* $(words 9)
$(words 10)
$(words 11)
$(words 10)end.
PAGE
found "what looks like a sentence's end is none" 'page.md:1: a sentence of 41 words, at most 40' <<PAGE
$(words 9)(\`a. b\` is code)
$(words 9)version 1.5
$(words 17)end.
PAGE
found "phrases" "page.md:1: 'a row a device': write 'one ... per ...'
page.md:1: 'of which': write a new sentence
page.md:4: 'on paper': write 'in simulation'; 'in print' of a page that is printed" <<PAGE
A file with a row a device, of which more below.

| x |
It is known on
paper.
PAGE
found "translated phrases" "page.md:1: 'of its own': write 'its own ...'
page.md:2: ''s begin': write 'start'
page.md:2: 'is not over': write 'has (not) finished'
page.md:3: 'in turns': write 'alternately'
page.md:3: 'learned of': write 'says about', 'learns from'
page.md:3: 'must be the file's': write 'must match the ...'" <<PAGE
Each stage has a loss of its own. It has the use of its own rows.
A run's begin is measured if the run is not over. What is over the limit is refused.
Runs are measured in turns. What is learned of them, and the seed, must be the file's.
PAGE
found "phrases in a table" "page.md:1: 'nobody': write which device, process or person" <<PAGE
| what | nobody says about a table's row of some ninety words that it is too long, since it scrolls anyway |
PAGE
found "code and made text" '' <<PAGE
    a row a device

\`\`\`text
a row a device, which is longer than a line may be, because a program prints it like that, whatever one says
\`\`\`

<!-- x: made by y -->
a row a device
<!-- end -->
PAGE
echo "## A heading: \`x\`" >other.md
found "links" 'page.md:1: link to none.md: no such file
page.md:2: link to other.md#heading: no such heading' <<PAGE
[a](other.md#a-heading-x) [b](https://x.example/y) [c](none.md)
[d](other.md#heading)
PAGE
found "comments without a subject" "page.h:2: a comment begins 'Of ...': write what it describes
page.h:3: a comment begins 'Those of ...': write what it describes
page.h:5: a comment begins 'That of ...': write what it describes" page.h <<PAGE
// The first of all. What follows is a sentence inside of a comment, or none of these.
int b = 0;  // Of the stages.
// Those of a device.
//
// That of the first.
int a = 0;  // of the stages
// Often asked for.
// Of several it takes the first.
PAGE
if ((failures == 0)); then echo "prose.py: all as expected"; fi
exit $((failures > 0))

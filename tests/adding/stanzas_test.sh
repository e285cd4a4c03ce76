#!/bin/bash
# The BUILD stanzas of docs/adding.md are those of their siblings in the tree, but for the name.
set -euo pipefail
failures=0
# same FILE BLOCK NAME SIBLING: the page's block, with the sibling's name, stands in the file.
same() {
  local file=$1 block=$2 name=$3 sibling=$4 stanza
  stanza=$(awk -v want="$block" '/^```/ { if (on) exit; info = $0; sub(/^```[a-z]* /, "", info); on = (info == want); next } on' docs/adding.md)
  stanza=${stanza//$name/$sibling}
  if [[ -z $stanza || $(<"$file") != *"$stanza"* ]]; then
    echo "FAILED: $file has no such stanza as docs/adding.md's $block, of $sibling:"
    echo "$stanza"
    failures=$((failures + 1))
  fi
}
same pipelines/schedules/BUILD.bazel pipelines/schedules/BUILD.bazel rounds gpipe
same pipelines/schedules/BUILD.bazel 'pipelines/schedules/BUILD.bazel test' rounds gpipe
same pipelines/planners/BUILD.bazel pipelines/planners/BUILD.bazel halves_plan uniform_plan
for list in 'name = "modules"' 'name = "planner_modules"'; do
  grep -qF "$list" pipelines/schedules/BUILD.bazel pipelines/planners/BUILD.bazel || { echo "FAILED: no $list"; failures=$((failures + 1)); }
done
exit $((failures > 0))

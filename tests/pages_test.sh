#!/bin/bash
# What a user wants to do is within two clicks of the README: it links to the page of tasks, which has a section
# with a command or a link for each, and every page of docs/ is linked from one of the two.
set -euo pipefail
failures=0
fail() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
# section TITLE: the lines of docs/README.md under that heading.
section() { awk -v title="## $1" '/^## / { inside = $0 == title; next } inside' docs/README.md; }

grep -q '(docs/README.md)' README.md || fail "README.md does not link to docs/README.md"
for task in "Choose a schedule" "Evaluate my flags" "See how much memory it needs" "Price my own model" \
  "Describe my own machine" "Try a schedule of my own" "Compare two configurations" "Export to Megatron-LM, torchtitan, DeepSpeed or PyTorch" \
  "Find out why it is slow" "Know what is measured and what is simulated" \
  "Add a scheme, a model, a planner or a cluster" "Train, also on a cluster or GPUs" "Reproduce a paper"; do
  section "$task" | grep -qE '^(pipelab|    tools/bazel) |\]\([a-z]+\.md' || fail "docs/README.md: nothing to do under '$task'"
done
for page in docs/*.md; do
  name=${page#docs/}
  if [[ $name != README.md ]]; then
    grep -qF -e "($name)" -e "($name#" docs/README.md || fail "docs/README.md does not link to $name"
  fi
done
echo "$(find docs/ -name '*.md' | wc -l) pages, $failures faults"
exit $((failures > 0))

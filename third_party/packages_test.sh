#!/bin/bash
# Holds third_party/packages.txt, from which the launcher installs, to repositories.bzl, whose rules name
# the packages again when one is missing: what a rule needs must be in the list, under the same config.
set -euo pipefail
list=third_party/packages.txt

# "PACKAGE CONFIG" ("-": always) of every rule. system_absl keeps its packages in the rule's own file.
needed() {
  awk -F'"' '
    /^ *system_library\(/ { apt = ""; config = "-" }
    /^ *apt = /    { apt = $2 }
    /^ *switch = / { config = $2 }
    /^ *\)$/ && apt   { n = split(apt, names, " "); for (i = 1; i <= n; i++) print names[i], config; apt = "" }
  ' third_party/repositories.bzl
  awk -F'"' '/^ *apt = "libabsl-dev/ { n = split($2, names, " "); for (i = 1; i <= n; i++) print names[i], "-" }' \
    third_party/system/system_repo.bzl
}
listed() { awk '!/^#/ && NF { print $1, ($2 ~ /^#/ || NF == 1) ? "-" : $2 }' "$list"; }

count=$(needed | wc -l)
((count >= 12)) || { echo "found only $count packages in repositories.bzl: this test no longer reads it"; exit 1; }
absent=$(comm -23 <(needed | sort -u) <(listed | sort -u))
if [[ -n $absent ]]; then
  echo "repositories.bzl needs what $list does not have (package, config):"
  echo "$absent"
  exit 1
fi
unexplained=$(awk '!/^#/ && NF && !/# [^ ]/ { print $1 }' "$list")
[[ -z $unexplained ]] || { echo "$list: no reason after '#' for: $unexplained"; exit 1; }
twice=$(listed | awk '{ print $1 }' | sort | uniq -d)
[[ -z $twice ]] || { echo "$list: named twice: $twice"; exit 1; }
echo "all $count packages of repositories.bzl are listed"

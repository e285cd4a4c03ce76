#!/bin/bash
# Holds third_party/packages.txt, from which the launcher installs, to repositories.bzl, whose rules name
# the packages again when one is missing: what a rule needs must be in the list, under the same config.
# And holds each rule to Debian: its packages bring the headers and programs that it asks for.
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
# What is for targets and not for a config (kernels, rest) every rule may need.
listed() { awk '!/^#/ && NF { print $1, ($2 ~ /^(#.*|kernels|rest)$/ || NF == 1) ? "-" : $2 }' "$list"; }

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

# "PACKAGES|FILE" for every header and program that a rule asks for.
asked() {
  awk -F'"' '
    /^ *system_library\(/ { apt = ""; on = 0 }
    /^ *apt = / { apt = $2; next }
    /^ *probe_headers = / { on = 1; folder = "/include/*" }
    /^ *programs = / { on = 1; folder = "*/bin/" }
    on { for (i = 2; i <= NF; i += 2) print apt "|" folder $i }
    on && /\]/ { on = 0 }
  ' third_party/repositories.bzl
}
# with_depends PACKAGE...: them and all that they depend on, without what they only recommend.
with_depends() {
  local all='' new="$*"
  while [[ -n $new ]]; do
    all+=" $new"
    # shellcheck disable=SC2086  # words
    new=$(dpkg-query -W -f '${Depends}, ${Pre-Depends}\n' $new 2>/dev/null | tr ',|' '\n' | awk 'NF { sub(/:.*/, "", $1); print $1 }' |
      sort -u | comm -23 - <(tr ' ' '\n' <<<"$all" | sort -u) | tr '\n' ' ') || true
    new=${new% }
  done
  echo "$all"
}
if ! command -v dpkg-query >/dev/null; then
  echo "skipped: no dpkg-query, so the packages of headers and programs are not looked up"
  exit 0
fi
held=0
while IFS='|' read -r packages file; do
  # A program may be a link of another name in the package that has it.
  owners=$(dpkg-query -S "*$file" 2>/dev/null | awk -F: '{ print $1 }' | tr -d ',' | sort -u) || true
  # Nothing of it is installed: it belongs to a switch.
  [[ -n $owners ]] || continue
  # shellcheck disable=SC2086,SC2027  # words
  if [[ -z $(comm -12 <(echo "$owners") <(with_depends $packages | tr ' ' '\n' | sort -u)) ]]; then
    echo "repositories.bzl: ${file##*\*} is in" $owners", which '$packages' does not bring"
    exit 1
  fi
  held=$((held + 1))
done < <(asked)
((held >= 15)) || { echo "found only $held headers and programs: this test no longer reads repositories.bzl"; exit 1; }
echo "$held headers and programs come with the packages of their rules"

#!/bin/bash
# clang that reads a source, warns, and makes nothing of it: its object files are empty. The compiler of
# --config=lint where presubmit.sh calls it, for which code generation would be half of the time.
set -euo pipefail
output='' dependencies='' reads='' previous=''
arguments=()
for argument in "$@"; do
  if [[ $previous == -o ]]; then output=$argument; fi
  if [[ $previous == -MF ]]; then dependencies=$argument; fi
  previous=$argument
  if [[ $argument == -c ]]; then
    reads=1
    argument=-fsyntax-only
  fi
  arguments+=("$argument")
done
# By its full name, from which it finds its own headers: /bin is a link that Bazel does not follow.
/usr/bin/clang "${arguments[@]}"
if [[ -z $reads || -z $output ]]; then exit 0; fi
: >"$output"
# Without code to make, clang counts module maps among what it read; Bazel takes these for headers.
sed -i '/\.\(cppmap\|modulemap\) /d' "$dependencies"

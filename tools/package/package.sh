#!/bin/bash
# What `tools/bazel run //:install`, `//:deb`, `//:tarball` and `//:release` start; package.py says what they take.
set -euo pipefail
kind=$1
shift
root=
for folder in "$PWD" "${BASH_SOURCE[0]}.runfiles/pipelab" "$(dirname "${BASH_SOURCE[0]}")/../.."; do
  if [[ -z $root && -f $folder/tools/package/package.py ]]; then root=$(cd "$folder" && pwd); fi
done
cd "${BUILD_WORKING_DIRECTORY:-.}"
# `pipelab` prints its manual page here, and in a checkout it would have Bazel build the programs beside it first.
unset BUILD_WORKSPACE_DIRECTORY
exec /usr/bin/python3 "$root/tools/package/package.py" "$root" "$kind" "$@"

#!/bin/bash
# Makes a wheel of the package for this machine's Python version, in DIR (default: dist), and prints its path.
#
#   tools/bazel run //python:wheel -- --out=DIR
set -euo pipefail
out=dist
for word in "$@"; do
  case $word in
    --out=?*) out=${word#--out=} ;;
    *)
      echo "$word: wheel takes --out=DIR alone" >&2
      exit 2
      ;;
  esac
done
root=$PWD
if [[ ! -f python/make_wheel.py ]]; then root=${BASH_SOURCE[0]}.runfiles/pipelab; fi
[[ $out == /* ]] || out=${BUILD_WORKING_DIRECTORY:-$PWD}/$out
exec /usr/bin/python3 "$root/python/make_wheel.py" "$root" "$out"

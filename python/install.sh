#!/bin/bash
# Installs `import pipelab` into a virtual environment of Debian's Python, which it makes if there is
# none, without network. It sees Debian's numpy.
#
#   tools/bazel run //python:install -- --venv=DIR
set -euo pipefail
venv=
for word in "$@"; do
  case $word in
    --venv=?*) venv=${word#--venv=} ;;
    *)
      echo "$word: install takes --venv=DIR alone" >&2
      exit 2
      ;;
  esac
done
if [[ -z $venv ]]; then
  echo "--venv: missing; the folder of a virtual environment, which is made if it is not there" >&2
  exit 2
fi
root=$PWD
if [[ ! -f python/wheel.sh ]]; then root=${BASH_SOURCE[0]}.runfiles/pipelab; fi
[[ $venv == /* ]] || venv=${BUILD_WORKING_DIRECTORY:-$PWD}/$venv
[[ -x $venv/bin/python ]] || /usr/bin/python3 -m venv --system-site-packages "$venv"
dist=$(mktemp -d)
trap 'rm -rf "$dist"' EXIT
wheel=$(cd "$root" && python/wheel.sh "--out=$dist")
"$venv/bin/python" -m pip install --no-index --no-deps --force-reinstall --quiet "$wheel"
"$venv/bin/python" -c 'import pipelab; print("pipelab", pipelab.__version__, "in", pipelab.__path__[0])'

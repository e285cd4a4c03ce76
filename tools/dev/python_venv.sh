#!/bin/bash
# Makes a virtual environment for a script of tools/pytorch, with the versions of its requirements. No build and no
# test needs it.
#
#   tools/dev/python_venv.sh venv tools/pytorch/transformers_requirements.txt
set -euo pipefail
venv=${1:?give a folder for the environment}
requirements=${2:?give a file with requirements}
python3 -m venv "$venv"
"$venv/bin/pip" install --requirement "$requirements"
# What is compiled against the packages above, one a line, named in the file's comments.
sed -n 's/^# then: //p' "$requirements" | while read -r package; do
  "$venv/bin/pip" install --no-build-isolation "$package"
done

#!/bin/bash
# Makes a virtual environment for tools/pytorch/hugging_face_logits.py, with the versions that made its file. No build
# and no test needs it.
#
#   tools/dev/transformers_venv.sh venv
set -euo pipefail
venv=${1:?give a folder for the environment}
requirements=$(dirname "$0")/../pytorch/transformers_requirements.txt
python3 -m venv "$venv"
"$venv/bin/pip" install --requirement "$requirements"

#!/usr/bin/env bash
# Two environments in a folder: `without` has the libraries and Triton, `with` has PyTorch (for the CPU) besides.
# The libraries require PyTorch and more that their kernels do not need: of each only its own wheel is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:?the folder}
python=${2:-python3}
libraries=$("$python" -c 'import tomllib; print("\n".join(tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["kernels"]))')
mkdir -p "$folder"
for name in without with; do
    "$python" -m venv "$folder/$name"
    echo "$libraries" | grep -E '^(fla|flash|flag|liger)' | xargs "$folder/$name/bin/python" -m pip install --quiet --no-deps
    echo "$libraries" | grep -vE '^(fla|flash|flag|liger)' | xargs "$folder/$name/bin/python" -m pip install --quiet numpy ml_dtypes
done
"$folder/with/bin/python" -m pip install --quiet --index-url https://download.pytorch.org/whl/cpu torch

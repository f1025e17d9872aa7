#!/usr/bin/env bash
# Two environments in a folder: `without` has the libraries and tritensor, `with` has PyTorch besides.
# What the libraries need is resolved once, and PyTorch with what it brings is left out of the first.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:?the folder}
python=${2:-python3}
mkdir -p "$folder"
for name in without with; do "$python" -m venv "$folder/$name"; done
"$folder/without/bin/python" -m pip install --quiet --dry-run --report "$folder/report.json" \
    ".[libraries]" "torch==2.13.0"
"$folder/without/bin/python" - "$folder" <<'PY'
import json
import sys
from pathlib import Path

folder = Path(sys.argv[1])
names = [each["metadata"] for each in json.loads((folder / "report.json").read_text())["install"]]
left = ("tritensor", "torch", "torchvision", "triton")
kept = [f"{m['name']}=={m['version']}" for m in names if m["name"] not in left and not m["name"].startswith("nvidia")]
(folder / "kept.txt").write_text("\n".join(kept))
PY
"$folder/without/bin/python" -m pip install --quiet --no-deps -r "$folder/kept.txt" setuptools
"$folder/without/bin/python" -m pip install --quiet .
"$folder/with/bin/python" -m pip install --quiet --no-deps -r "$folder/kept.txt" setuptools
"$folder/with/bin/python" -m pip install --quiet "torch==2.13.0" torchvision

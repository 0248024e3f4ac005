#!/usr/bin/env bash
# Build wheel and sdist, check what an index would say to them, install each in a fresh environment on the newest
# Gymnasium and the wheel also on the oldest, and run the first example of the package's page there.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-.venv/bin/python}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

rm -rf dist build
"$PYTHON" -m build --quiet --outdir dist .
"$PYTHON" -m twine check --strict dist/*
"$PYTHON" - > "$work/example.py" << 'EOF'
import re
from pathlib import Path

print(re.findall(r"^```python\n(.*?)^```", Path("docs/package.md").read_text(), re.MULTILINE | re.DOTALL)[0])
EOF

try() { # try NAME PACKAGE GYMNASIUM
    "$PYTHON" -m venv "$work/$1"
    "$work/$1/bin/pip" install --quiet "$2" "$3"
    echo "$1: $("$work/$1/bin/lfd-gym" --version), $("$work/$1/bin/pip" list 2> /dev/null | grep -i '^gymnasium ')"
    (cd "$work" && "$work/$1/bin/python" "$work/example.py" > "$work/$1.txt" && head -2 "$work/$1.txt")
}
try wheel-newest dist/*.whl "gymnasium>=1.0"
try wheel-oldest dist/*.whl "gymnasium==0.29.1"
try sdist dist/*.tar.gz "gymnasium>=1.0"

#!/bin/sh
# Resolves requirements/*.in for Python 3.11-3.13 on all platforms, with hashes and without any host name.
# Packages come from wherever this machine's pip gets them.
set -eu
cd "$(dirname "$0")/.."
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
.venv/bin/python -m venv "$place"
"$place/bin/python" -m pip --disable-pip-version-check --quiet install uv
index=$("$place/bin/python" -m pip config get global.index-url 2>/dev/null || true)
[ -z "$index" ] || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"
for name in run dev; do
    "$place/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
        --no-emit-index-url "requirements/$name.in" --output-file "requirements/$name.lock" "$@"
done

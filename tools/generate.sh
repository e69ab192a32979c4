#!/bin/sh
# Generates gen/ from proto/. The output is committed; `make check` regenerates and compares.
set -eu
cd "$(dirname "$0")/.."
out=${1:-gen}
rm -rf "$out"
mkdir -p "$out"
# shellcheck disable=SC2046
PATH="$PWD/.venv/bin:$PATH" .venv/bin/python -m grpc_tools.protoc -Iproto \
    --python_out="$out" --mypy_out="$out" --grpc_python_out="$out" --mypy_grpc_out="$out" \
    $(find proto -name '*.proto' | LC_ALL=C sort)
find "$out" -type d -exec touch {}/__init__.py \;
rm "$out/__init__.py"

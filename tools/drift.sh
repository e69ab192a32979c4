#!/bin/sh
# Generates from proto/ again and compares with the committed gen/.
set -eu
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
sh tools/generate.sh "$fresh/gen"
diff -r -x __pycache__ gen "$fresh/gen" || {
    echo "gen/ does not fit proto/: run \`make gen\` and commit the result" >&2
    exit 1
}

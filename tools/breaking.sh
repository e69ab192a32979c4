#!/bin/sh
# Compares proto/ with the last commit on main: a published field or method is never changed or removed.
set -eu
cd "$(dirname "$0")/.."
for ref in main origin/main; do
    if git cat-file -e "$ref:proto/buf.yaml" 2>/dev/null; then
        base=$(mktemp -d)
        trap 'rm -rf "$base"' EXIT
        git archive "$ref" proto | tar -x -C "$base"
        .venv/bin/buf breaking proto --against "$base/proto"
        exit 0
    fi
done
echo "no commit on main to compare proto/ with: nothing can be broken"

#!/bin/sh
# Makes .venv from the hash-pinned lock requirements/$1.lock ("run" or "dev"). Does nothing when that was done before.
# An interrupted run heals: the stamp that says "done" is written last and names the lock's content.
set -eu
cd "$(dirname "$0")/.."
lock=requirements/$1.lock

fail() {
    echo "$1" >&2
    exit 1
}

find_python() {
    for name in python3 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null 2>&1 &&
            "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    fail "Python 3.11, 3.12 or 3.13 is needed, and none of python3, python3.13, python3.12 and python3.11 is one."
}

stamp_of() { # the lock, the project's own metadata and C, and where it lies: a moved checkout is made again
    cat "requirements/$1.lock" pyproject.toml sdk/python/koikoi_sdk/poker/ristretto.c | cksum | tr -d '\n'
    pwd
}

is_done() { # $1: run or dev
    [ -x .venv/bin/python ] && [ -f ".venv/stamp-$1" ] && [ "$(cat ".venv/stamp-$1")" = "$(stamp_of "$1")" ] &&
        .venv/bin/python -c '' 2>/dev/null
}

is_done "$1" && exit 0
[ "$1" = run ] && is_done dev && exit 0 # dev holds all of run

# One set-up at a time in a checkout; a lock left by a killed one is recognised by its dead owner.
until mkdir .venv-lock 2>/dev/null; do
    owner=$(cat .venv-lock/pid 2>/dev/null || true)
    owner=${owner:-0} # no name yet: just taken
    if [ "$owner" != 0 ] && ! kill -0 "$owner" 2>/dev/null; then
        rm -rf .venv-lock
    else
        sleep 1
        waited=$((${waited:-0} + 1))
        [ "$owner" = 0 ] && [ "$waited" -gt 10 ] && rm -rf .venv-lock
        [ "$waited" -lt 600 ] || fail "Another set-up has held .venv-lock for ten minutes; remove it if it is not running."
    fi
done
echo $$ >.venv-lock/pid
trap 'rm -rf .venv-lock' EXIT
trap 'exit 130' INT TERM HUP
is_done "$1" && exit 0

python=$(find_python)
if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    fail "$python cannot make virtual environments: install the package python$version-venv (or python3-venv), then try again."
fi
if ! .venv/bin/python -m pip --version >/dev/null 2>&1 ||
    ! .venv/bin/python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' ||
    ! grep -q "$(pwd)/.venv$" .venv/pyvenv.cfg; then # a checkout that was moved: its scripts name the old place
    echo "making .venv with $python"
    rm -rf .venv
    "$python" -m venv .venv || fail "$python could not make a virtual environment; is the package python3-venv installed?"
fi
rm -f .venv/stamp-run .venv/stamp-dev .venv/installed
export PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
echo "installing $(grep -c == "$lock") packages from $lock"
{
    .venv/bin/python -m pip install --require-hashes --no-deps -r "$lock" && touch .venv/installed
} 2>.venv/pip-errors | awk '
    /^(Collecting|Processing)/ { if (++seen % 15 == 0) { print "  found " seen; fflush() } }
    /^Installing/ { print "  unpacking"; fflush() }'
if ! [ -f .venv/installed ]; then
    cat .venv/pip-errors >&2
    fail "pip could not install $lock; the lines above say why. Nothing is half done: try again."
fi
rm -f sdk/python/koikoi_sdk/poker/_ristretto.* # of another source, or of another compiler
.venv/bin/python -m pip install --quiet --quiet --no-deps --no-build-isolation -e . ||
    fail "pip could not install this project itself; the lines above say why."
stamp_of "$1" >".venv/stamp-$1"

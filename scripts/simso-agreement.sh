#!/bin/sh
# Compares our schedules with those of SimSo 0.8.5, job by job, and times both on
# the same sets. Needs python3 with venv and a release build of scx_temponet.
set -eu
cd "$(dirname "$0")/.."
cache="${XDG_CACHE_HOME:-$HOME/.cache}/scx_temponet"
venv="$cache/simso-0.8.5"
if [ ! -x "$venv/bin/python" ]; then
    mkdir -p "$cache"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet simso==0.8.5
fi
binary="${SCX_TEMPONET:-target/release/scx_temponet}"
if [ ! -x "$binary" ]; then
    echo "build it first: cargo build --release" >&2
    exit 2
fi
exec "$venv/bin/python" scripts/simso-agreement.py --binary "$binary" "$@"

#!/bin/sh
# Install the real agents that the tests drive below $AGENTS_ROOT (default
# ~/.cache/boxery-agents), from npm. Nothing is installed outside that folder.
# CLAUDE=2.1.332 picks another version than the one the tests were written against.
set -eu
ROOT=${AGENTS_ROOT:-${XDG_CACHE_HOME:-$HOME/.cache}/boxery-agents}

# get FOLDER PACKAGE VERSION
get() {
    folder=$ROOT/npm/$1
    have=$(sed -n 's/^ *"version": *"\([^"]*\)".*/\1/p' "$folder/node_modules/$2/package.json" 2>/dev/null | head -n 1)
    if [ "$have" = "$3" ] && [ -e "$folder/.complete-$3" ]; then
        echo "$1 $3: already there"
        return
    fi
    rm -rf "$folder"
    mkdir -p "$folder"
    if ! npm install --prefix "$folder" --no-save --no-audit --no-fund "$2@$3" >"$ROOT/install-$1.log" 2>&1; then
        tail -n 20 "$ROOT/install-$1.log"
        echo "npm could not install $2@$3"
        return 1
    fi
    : >"$folder/.complete-$3"
    echo "$1 $3: installed"
}

mkdir -p "$ROOT"
get claude @anthropic-ai/claude-code "${CLAUDE:-2.1.332}"

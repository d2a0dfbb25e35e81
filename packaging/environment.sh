#!/usr/bin/env bash
# Makes .venv, or brings it up to date, with the versions in constraints.txt.
#
#   packaging/environment.sh [GROUP...]      GROUP is one of pyproject.toml's dependency groups
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    echo "$1" >&2
    exit 1
}

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    if ! python=$(packaging/find-python.sh); then
        case $(uname -s) in
            Darwin) fail "Octavo needs Python 3.11 or newer: run \`brew install python@3.12\`, then make again." ;;
            *) fail "Octavo needs Python 3.11 or newer with its venv module; install one so that python3.11, python3.12 or python3.13 runs it, then run make again." ;;
        esac
    fi
    if [ "$(uname -s)" = Darwin ] && [ "$("$python" -c 'import platform; print(platform.machine())')" != arm64 ]; then
        fail "Octavo on a Mac needs Apple silicon and a Python built for it; $python is built for Intel."
    fi
    "$python" -m venv --clear .venv
fi

groups=()
for group in "$@"; do
    groups+=(--group "$group")
done

pip=(.venv/bin/python -m pip --disable-pip-version-check install --quiet -c constraints.txt)
echo "Installing Octavo's Python packages into .venv; the first time takes a few minutes." >&2
"${pip[@]}" pip setuptools
# setuptools warns of every editable install.
PYTHONWARNINGS=ignore "${pip[@]}" --no-build-isolation --editable . ${groups[@]+"${groups[@]}"}

#!/usr/bin/env bash
# Prints the Python that the virtual environment is made with: 3.11 or newer, able to make environments.
# `python3` comes first when it is one of the versions that the tests run on.
set -uo pipefail

suits() { # command, newest minor version
    "$1" -c "import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, $2))" 2>/dev/null
}

for candidate in python3:13 python3.13:13 python3.12:13 python3.11:13 python3:99 python3.14:99; do
    if suits "${candidate%:*}" "${candidate#*:}"; then
        command -v "${candidate%:*}"
        exit 0
    fi
done
exit 1

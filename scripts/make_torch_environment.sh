#!/usr/bin/env bash
# Makes a Python environment with torch in FOLDER, for the tests that need it, and installs the wheel WHEEL there:
#
#     scripts/make_torch_environment.sh FOLDER WHEEL PYTHON
#
# torch is the distribution's own package, python3-torch, built for CPUs: 150 MB to fetch, where the package index has builds for GPUs
# alone, of gigabytes. So the environment stands on the distribution's python3 and sees its packages.
# Where that cannot be, the last line of what it prints says why, and the exit status is 3.
set -euo pipefail

folder=$1 wheel=$2 own=$3
python=/usr/bin/python3

impossible() {
    printf '%s\n' "$*"
    exit 3
}

[ -x "$python" ] || impossible "the system has no $python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || impossible "$python is older than Python 3.10"

if ! "$python" -c 'import torch' 2>/dev/null; then
    command -v apt-get >/dev/null || impossible "there is no apt-get to install python3-torch with"
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true 2>/dev/null || impossible "python3-torch is not installed, and this is not root"
        as_root=(sudo)
    fi
    apt-cache show python3-torch >/dev/null 2>&1 || "${as_root[@]}" apt-get update -q
    apt-cache show python3-torch >/dev/null 2>&1 || impossible "this release's archive has no python3-torch"
    echo "Installing the system package python3-torch"
    export DEBIAN_FRONTEND=noninteractive
    install() { "${as_root[@]}" apt-get install -y -q --no-install-recommends python3-torch >/dev/null; }
    install || { "${as_root[@]}" apt-get update -q && install; } || impossible "python3-torch cannot be installed"
fi

# The distribution's python3 may lack pip: that of PYTHON installs into the environment.
pip() { "$own" -m pip --python "$folder/bin/python" --quiet --disable-pip-version-check "$@"; }
[ -x "$folder/bin/python" ] || "$python" -m venv --without-pip --system-site-packages "$folder"
pip install $(grep -E '^(pytest|pytest-timeout|pytest-xdist|hypothesis|cloudpickle)==' requirements-dev.txt)
pip install --force-reinstall --no-deps "$wheel"

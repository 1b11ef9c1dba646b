#!/usr/bin/env bash
# Installs the system packages that a build needs and that are missing: LLVM 19 with its headers, the libraries that
# it links, and Python's venv module. Does nothing, quickly, when all are there.
set -euo pipefail

fail() {
    printf 'octants: %s\n' "$@" >&2
    exit 1
}

command -v cc >/dev/null || fail "no C compiler (cc) found; install gcc or clang"
command -v cargo >/dev/null || fail "no Rust toolchain found; see https://rustup.rs"
command -v python3 >/dev/null || fail "no python3 found; Python 3.10 or newer is needed"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    fail "python3 is $(python3 -V 2>&1); Python 3.10 or newer is needed"

need_rust=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
have_rust=$(rustc --version | cut -d' ' -f2)
[ "$(printf '%s\n' "$need_rust" "$have_rust" | sort -V | head -n1)" = "$need_rust" ] ||
    fail "rustc is $have_rust; $need_rust or newer is needed (rustup update)"

prefix=${LLVM_SYS_191_PREFIX:-/usr/lib/llvm-19}
missing=()
[ -x "$prefix/bin/llvm-config" ] && [ -f "$prefix/lib/libLLVMCore.a" ] || missing+=(llvm-19-dev)
have_library() { [ "$(cc -print-file-name="$1")" != "$1" ]; }
have_library libz.a || missing+=(zlib1g-dev)
have_library libzstd.a || missing+=(libzstd-dev)
have_library libstdc++.a || missing+=(g++)
python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)

[ ${#missing[@]} -gt 0 ] || exit 0

command -v apt-get >/dev/null || fail \
    "these are missing: ${missing[*]} (names of Debian packages), and there is no apt-get to install them." \
    "Install LLVM 19 with static libraries and set LLVM_SYS_191_PREFIX to its prefix."

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "run as root, or with sudo installed: apt-get install ${missing[*]}"
    as_root=(sudo)
fi

echo "Installing system packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
install() { "${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"; }
available() { apt-cache show llvm-19-dev >/dev/null 2>&1; }

available || "${as_root[@]}" apt-get update -q
available || fail \
    "this release's archive has no llvm-19-dev. Debian 12 and 13 and Ubuntu 24.04 and newer have it." \
    "On an older one (Ubuntu 22.04, for instance) add LLVM's own archive, https://apt.llvm.org, and run again."
install || { "${as_root[@]}" apt-get update -q && install; }

#!/usr/bin/env bash
# Installs the Debian packages that building and testing need: only those that are missing, as root
# or through sudo. Safe to run again; with nothing missing it does not touch the network.
#
#   scripts/install_packages.sh [build|test|lint]      (each includes the ones before it)
set -euo pipefail

tier=${1:-build}
packages=(g++ cmake ninja-build pkg-config libcli11-dev libsqlite3-dev libxxhash-dev libspdlog-dev
          nlohmann-json3-dev libssl-dev libpcre2-dev libutf8proc-dev doctest-dev)
# The last two run the NEON kernels where there is no ARM processor: 68 MB to download.
test_packages=(python3 python3-numpy mandoc g++-aarch64-linux-gnu qemu-user)
case $tier in
  build) ;;
  test) packages+=("${test_packages[@]}") ;;
  lint) packages+=("${test_packages[@]}" clang clang-format clang-tidy) ;;
  *) echo "usage: $0 [build|test|lint]" >&2; exit 2 ;;
esac

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "packages: all ${#packages[@]} present"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "packages missing: ${missing[*]}" >&2
    echo "install them as root: apt-get install ${missing[*]}" >&2; exit 2; }
  as_root=(sudo)
fi
echo "packages: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null

#!/usr/bin/env bash
# Fetches cuobjdump and nvdisasm, which read machine code of NVIDIA GPUs, from PyPI into a build
# folder: FOLDER/sass-tools (default: build). Only the tests cuda_sass* use them; the CUDA compiler
# does not bring them along everywhere. Pinned by version and SHA-256. Needs python3 with pip and a
# network, once; with the tools in place it does nothing. They are NVIDIA's, under its license.
#
#   scripts/fetch_sass_tools.sh [FOLDER]
#
# Exit 0: the tools are there. 1: they could not be fetched (the tests then skip, and say so).
set -euo pipefail

version=13.5.37
sha256_cuobjdump=38780fee50863252a0b8926357faa91615ca1c8346490563f33a06100cd73f58
sha256_nvdisasm=d3fdbdd49fa53e2e4aacd3db8259d052bd2b049ececdcb69e92e083c6728e7ca

case ${1:-} in
  -h | --help) sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
esac
folder=${1:-$(dirname "$0")/../build}/sass-tools
if [ -x "$folder/cuobjdump" ] && [ -x "$folder/nvdisasm" ] &&
  [ "$(cat "$folder/version" 2>/dev/null)" = "$version" ]; then
  echo "sass-tools: $version present"
  exit 0
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/requirements.txt" <<REQUIREMENTS
nvidia-cuda-cuobjdump==$version --hash=sha256:$sha256_cuobjdump
nvidia-cuda-nvdisasm==$version --hash=sha256:$sha256_nvdisasm
REQUIREMENTS
python3 -m pip --disable-pip-version-check download -q --no-deps --only-binary=:all: \
  --require-hashes -r "$scratch/requirements.txt" -d "$scratch" ||
  { echo "sass-tools: could not be fetched (a network? x86-64 Linux? pip?)" >&2; exit 1; }
mkdir -p "$folder"
for wheel in "$scratch"/*.whl; do python3 -m zipfile -e "$wheel" "$scratch/unpacked"; done
for tool in cuobjdump nvdisasm; do
  install -m 755 "$scratch"/unpacked/nvidia/*/bin/$tool "$folder/$tool"
done
echo "$version" >"$folder/version"
echo "sass-tools: $version in $folder"

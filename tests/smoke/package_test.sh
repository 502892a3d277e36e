#!/usr/bin/env bash
# What scripts/gpu_smoke.sh promises, rehearsed with the emulated program and, where this build made
# it, the real one: a packed folder runs on its own, exit codes, nothing but glibc 2.34 is needed,
# and the program detrun itself knows nothing of CUDA.
#
#   package_test.sh SOURCE-FOLDER BUILD-FOLDER
set -euo pipefail
source_dir=$1 bin=$2/bin
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=tests/scripts/expect.sh
. "$source_dir/tests/scripts/expect.sh"

needs_little() { "$source_dir/packaging/check_portable.sh" "$1" || fails "$1 is not portable"; }

emulated=$bin/detrun_gpu_smoke_emulated
needs_little "$emulated"
"$source_dir/scripts/gpu_smoke.sh" --binary "$emulated" --pack "$scratch/packed" >/dev/null
cd /
expect 0 'everything equal' "$scratch/packed/gpu_smoke.sh" --quick
[ -s "$scratch/packed/host-emulation.md" ] || fails "no report beside the packed script"
expect 0 'device, many rows | known answers | [0-9]* | equal' \
  cat "$scratch/packed/host-emulation.md"
expect 3 'NOTHING WAS TESTED' env DETRUN_SMOKE_NO_DEVICE=1 "$scratch/packed/gpu_smoke.sh" --quick
# A hash that the kernels do not give is a difference, with its case; the first is always run.
sed -i '0,/^product type=F32/s/[0-9a-f]\{32\}$/00000000000000000000000000000000/' \
  "$scratch/packed/operators.txt"
expect 1 'recorded 00000000000000000000000000000000' "$scratch/packed/gpu_smoke.sh" --quick
# An exception has to find its handler in a program that carries its own unwinder.
expect 2 'cannot read' "$emulated" --golden "$scratch/absent"

if [ -x "$bin/detrun_gpu_smoke" ]; then
  needs_little "$bin/detrun_gpu_smoke"
  if [ ! -e /dev/nvidiactl ]; then
    "$source_dir/scripts/gpu_smoke.sh" --binary "$bin/detrun_gpu_smoke" --pack "$scratch/real" \
      >/dev/null
    expect 3 'NOTHING WAS TESTED' "$scratch/real/gpu_smoke.sh"
  fi
else
  echo "skipped: this build has no CUDA toolkit, so no detrun_gpu_smoke"
fi
if [ -x "$bin/detrun" ] && readelf -d "$bin/detrun" | grep -qi 'NEEDED.*cuda'; then
  fails "bin/detrun depends on CUDA"
fi
echo "gpu_smoke_package: $failures failures"
[ $failures = 0 ]

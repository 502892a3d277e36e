#!/usr/bin/env bash
# Runs every CUDA kernel on this machine's GPU against the scalar reference and the golden hashes,
# and the CPU's own instruction sets too. Two minutes; needs an NVIDIA driver, x86-64, glibc 2.34,
# nothing else: no network, no package, no toolkit. Prints a Markdown report and keeps it.
#
#   scripts/gpu_smoke.sh [--report PATH] [--quick] [--binary FILE]
#   scripts/gpu_smoke.sh --pack FOLDER     a folder to be copied to a machine with a GPU:
#                                          FOLDER/gpu_smoke.sh is this script
#
# The program is taken from beside this script, or from build/bin (cmake --build build). The report
# goes to PATH, a file or a folder; default: fixtures/gpu of a checkout, else beside this script, or
# in the current folder where that cannot be written.
# Exit 0: everything equal. 1: something differs. 2: it could not run. 3: no GPU can be used here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

fail() { echo "gpu_smoke.sh: $*" >&2; exit 2; }

if [ -x "$here/detrun_gpu_smoke" ]; then
  binary=$here/detrun_gpu_smoke golden=$here/operators.txt report=$here
  [ -w "$here" ] || report=$PWD
else
  binary=$here/../build/bin/detrun_gpu_smoke golden=$here/../fixtures/golden/operators.txt
  report=$here/../fixtures/gpu
fi
pack='' options=()
while [ $# -gt 0 ]; do
  case $1 in
    --pack) pack=${2:?--pack needs a folder}; shift ;;
    --binary) binary=${2:?--binary needs a file}; shift ;;
    --report) report=${2:?--report needs a path}; shift ;;
    --quick) options+=(--quick) ;;
    -h | --help) sed -n '2,13p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
    *) fail "unknown option '$1' (try --help)" ;;
  esac
  shift
done
[ -x "$binary" ] || fail "no program $binary: build it with a CUDA toolkit
  (cmake --preset release -DDETRUN_CUDA=ON && cmake --build build)"
[ -r "$golden" ] || fail "no golden cases $golden"

if [ -n "$pack" ]; then
  mkdir -p "$pack"
  cp "$binary" "$pack/detrun_gpu_smoke"
  cp "$golden" "$pack/operators.txt"
  cp "$here/gpu_smoke.sh" "$pack/gpu_smoke.sh"
  echo "packed: copy $pack to the machine with the GPU, run gpu_smoke.sh there, bring its report"
  exit 0
fi

case $report in
  *.md) mkdir -p "$(dirname "$report")" ;;
  *) mkdir -p "$report" ;;
esac
status=0
timeout 300 "$binary" --golden "$golden" --report "$report" "${options[@]}" || status=$?
case $status in
  0) echo "gpu_smoke.sh: everything equal" >&2 ;;
  1) echo "gpu_smoke.sh: NOT EQUAL: see the report" >&2 ;;
  3) echo "gpu_smoke.sh: NOTHING WAS TESTED: no GPU can be used here" >&2 ;;
  124) fail "stopped after five minutes" ;;
  *) fail "the program ended with status $status" ;;
esac
exit $status

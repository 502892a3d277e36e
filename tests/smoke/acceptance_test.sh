#!/usr/bin/env bash
# What scripts/gpu_acceptance.sh promises, without a GPU.
#
#   acceptance_test.sh SOURCE-FOLDER BUILD-FOLDER rehearsal   all of it on the emulated GPU, with
#                                                             the scripts laid out as in a tarball
#   acceptance_test.sh SOURCE-FOLDER BUILD-FOLDER endings     exit codes; what programs that fail do
set -euo pipefail
source_dir=$1 build=$2 mode=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# shellcheck source=tests/scripts/expect.sh
. "$source_dir/tests/scripts/expect.sh"

# part NAME STATUS: what report.json says of a part.
part() {
  grep -q "\"name\":\"$1\",[^}]*\"status\":\"$2\"" "$scratch/out/report.json" ||
    fails "part $1 is not $2: $(grep -o "\"name\":\"$1\",[^}]*" "$scratch/out/report.json")"
}
script=$source_dir/scripts/gpu_acceptance.sh
accept() { "$script" --out "$scratch/out" "$@"; }
# The layout of the tarball, models only with the word.
packed() {
  mkdir -p "$scratch/packed/bin" "$scratch/packed/share/detrun"
  cp -r "$source_dir"/scripts/gpu_acceptance* "$source_dir/fixtures/golden/operators.txt" \
    "$scratch/packed/bin"
  [ -z "${1:-}" ] || cp "$source_dir"/fixtures/models/*.gguf "$scratch/packed/share/detrun"
  script=$scratch/packed/bin/gpu_acceptance.sh
}

models='detrun-decisions-f16 detrun-decisions-q8_0 detrun-decisions-q4_k_m forged-all-types'
rehearsal() {
  packed models
  expect 0 'passed: .*report.md' accept --emulated "$build"
  local name
  for name in kernels host replays repeats speed parallel cublas; do part $name passed; done
  for name in torch sanitizer; do part $name skipped; done
  for name in $models; do
    [ -s "$scratch/out/ledgers/$name.db" ] || fails "no ledger of $name"
    grep -q "^| $name | REPRODUCED | REPRODUCED | REPRODUCED | REPRODUCED |" \
      "$scratch/out/report.md" || fails "$name did not reproduce four times"
  done
  for name in detrun-decisions-f16 forged-float-types; do
    grep -q "^| $name | REPRODUCED |" "$scratch/out/report.md" || fails "$name under cublas"
  done
  for name in repeats cublas-repeats; do
    [ -s "$scratch/out/ledgers/$name.db.gz" ] || fails "no ledger $name"
  done
  grep -q '^- forged-float-types: prefill [0-9]' "$scratch/out/report.md" || fails 'cublas speed'
  grep -q '^| forged-small | [0-9]*\.[0-9] | .* | [0-9]*\.[0-9]* |$' "$scratch/out/report.md" ||
    fails 'no speeds in the report'
  python3 -c 'import json, sys
report = json.load(open(sys.argv[1]))
assert len(report["parts"]) == 9 and len(report["bench"]) == 2, report
assert report["bench"][1]["ceilings"]["copy_gb_per_s"] > 0
assert report["fingerprint"]["informational"]["backend"]["name"] == "cuda-emulated"' \
    "$scratch/out/report.json" || fails 'report.json is no document'
  expect 2 'is not empty' accept --emulated "$build"
}

# Programs that answer like the real ones, but for what $FAULT names.
make_programs() {
  mkdir -p "$scratch/fake/bin"
  cat >"$scratch/fake/bin/detrun_gpu_smoke_emulated" <<'PROGRAM'
#!/bin/sh
[ "$FAULT" = smoke ] && exit 1
[ "$FAULT" = isa ] && result='**1 different**' || result=equal
printf '# x\n\n- 7 comparisons, 0 different, 1 s\n\n## Instruction sets: y\n\n' >"$4"
printf '| kernel | s |\n| avx2 | z | 9 | %s |  | 1 |\n\n## Golden\n' "$result" >>"$4"
PROGRAM
  cat >"$scratch/fake/bin/detrun_emulated" <<'PROGRAM'
#!/bin/sh
verdict=REPRODUCED code=0
[ "$FAULT" = replay ] && verdict=DIVERGED code=1
case "$1 $*" in
  --version*) echo 'backend cuda-emulated: fake' ;;
  fingerprint*) echo '{}' ;;
  record*--prompts*)
    yes '{"schema":"detrun.run/1","steps":[{"step":0}],"seal":"x"}' | head -n 4
    [ "$FAULT" = distinct ] && step=1 || step=0
    echo "{\"schema\":\"detrun.run/1\",\"steps\":[{\"step\":$step}],\"seal\":\"x\"}"
    while [ $# -gt 1 ]; do [ "$1" = --ledger ] && touch "$2"; shift; done ;;
  record*--no-ledger*)
    [ "$FAULT" = library ] && { echo 'detrun: error: x needs cuBLASLt: y' >&2; exit 2; }
    [ "$FAULT" = algorithm ] && { echo 'detrun: error: it has no algorithm' >&2; exit 2; }
    [ "$FAULT" = cublas ] && { echo 'detrun: error: two results differ' >&2; exit 5; }
    true ;;
  replay*)
    mode=$(echo "$*" | sed 's/.*--mode //; s/ .*//')
    yes "{\"verdict\":\"$verdict\",\"mode\":\"$mode\"}" | head -n 5
    exit $code ;;
  bench*10000*) echo 'model llama' >&2; [ "$FAULT" = load ] || exec sleep 61 ;;
  bench*)
    [ "$FAULT" = memory ] && { echo 'detrun: error: x: the weights need 9 MiB' >&2; exit 5; }
    [ "$FAULT" = bench ] && { echo 'detrun: error: a replay differs' >&2; exit 5; }
    [ "$FAULT" = slow ] && exec sleep 61
    echo '{"results":[{"name":"decode","tokens_per_s":2.5},'
    echo '{"name":"replay_parallel","tokens_per_s":9}]}' ;;
esac
PROGRAM
  chmod +x "$scratch"/fake/bin/*
}

# ends FAULT STATUS PART PART-STATUS [WORD...]: so the script ends, and so it reports that part.
ends() {
  rm -rf "$scratch/out"
  FAULT=$1 expect "$2" report.md accept --emulated "$scratch/fake" "${@:5}"
  part "$3" "$4"
}

endings() {
  expect 3 'NOTHING WAS TESTED: no GPU can be used here: none (there is no NVIDIA GPU' \
    env DETRUN_SMOKE_NO_DEVICE=1 "$source_dir/scripts/gpu_acceptance.sh" --out "$scratch/out" \
    --emulated "$build"
  [ "$(wc -l <"$scratch/log")" = 1 ] || fails 'a machine without a GPU gets more than one line'
  [ ! -e "$scratch/out" ] || fails 'a machine without a GPU gets a folder'
  expect 2 'unknown option' accept --no-such
  expect 2 'no program' accept --emulated "$scratch"
  make_programs
  ends none 0 replays passed
  part repeats passed
  ends smoke 1 kernels failed
  ends isa 1 host failed
  ends replay 1 replays failed
  part repeats failed
  ends load 1 repeats failed
  ends library 0 cublas skipped
  ends cublas 1 cublas failed
  ends algorithm 1 cublas failed
  ends distinct 1 cublas failed
  part repeats failed
  ends bench 1 speed failed
  part parallel skipped
  ends memory 0 speed skipped
  ends slow 0 speed skipped --seconds 8
  grep -q 'no time was left' "$scratch/out/report.md" || fails 'time ran out without a word'
  packed
  expect 2 'no models in' accept --emulated "$scratch/fake"
  packed models
  ends none 0 replays passed
  if [ -x "$build/bin/detrun" ] && [ ! -e /dev/nvidiactl ]; then
    cp "$build/bin/detrun" "$scratch/packed/bin"
    expect 3 'NOTHING WAS TESTED' "$script" --out "$scratch/none"
  fi
}

$mode
echo "gpu_acceptance $mode: $failures failures"
[ $failures = 0 ]

#!/usr/bin/env bash
# What detrun promises of a GPU, checked and measured on this machine's in one command: at most
# eight minutes, no network, no package. Needs an NVIDIA driver and what a bare Debian has; uses
# torch and compute-sanitizer where they are. A report, as Markdown and as JSON, and the ledgers
# that were recorded go to a folder, all together under 16 MiB. What cannot run is listed as
# skipped.
#
#   gpu_acceptance.sh [--out FOLDER] [--device INDEX|UUID] [--seconds N]
#   gpu_acceptance.sh --emulated BUILD     a rehearsal: the emulated GPU of a build, small shapes
#
# FOLDER is new or empty; default: detrun-gpu-acceptance. The programs are taken from beside this
# script, as scripts/package.sh puts them, or from build/bin.
# Exit 0: nothing failed. 1: a part failed. 2: it could not run. 3: no GPU can be used here.
# shellcheck disable=SC2034,SC2317
set -uo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
unset DETRUN_MODEL DETRUN_LEDGER DETRUN_CPU_ISA

die() { echo "gpu_acceptance.sh: $*" >&2; exit 2; }

out=detrun-gpu-acceptance emulated='' seconds=''
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=${2:?--out needs a folder}; shift ;;
    --device) export CUDA_VISIBLE_DEVICES=${2:?--device needs an index or a UUID}; shift ;;
    --seconds) seconds=${2:?--seconds needs a number}; shift ;;
    --emulated) emulated=${2:?--emulated needs a build folder}; shift ;;
    -h | --help) sed -n '2,13p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
    *) die "unknown option '$1' (try --help)" ;;
  esac
  shift
done
seconds=${seconds:-$([ -z "$emulated" ] && echo 480 || echo 3600)}
[ "$seconds" -gt 0 ] 2>/dev/null || die "--seconds needs a whole number above 0"

models=$here/../share/detrun golden=$here/operators.txt bin=$here
if [ ! -r "$golden" ]; then  # a checkout
  models=$here/../fixtures/models golden=$here/../fixtures/golden/operators.txt
  bin=$here/../build/bin
fi
if [ -n "$emulated" ]; then
  bin=$emulated/bin backend=cuda-emulated
  detrun=$bin/detrun_emulated smoke=$bin/detrun_gpu_smoke_emulated
  repeats=5 repeated=forged-small tokens=4 slower=12 smoke_options=(--quick)
  works=(forged-small) cublas_works=(forged-float-types) bench=(--repeat 1 -n 4)
  load=(-m "$models/forged-small.gguf" --only decode)
else
  backend=cuda detrun=$bin/detrun smoke=$bin/detrun_gpu_smoke
  repeats=1000 repeated=detrun-decisions-q8_0 tokens=16 slower=1 smoke_options=()
  works=('8b q8_0' '8b f16' '8b q4_k_m' '1.1b f16' '1.1b q8_0' '1.1b q4_k_m')
  cublas_works=('8b f16') bench=(--repeat 3 -n 64)
  load=(--shape 1.1b --type q8_0 --only "decode,prefill")
fi
prompt='Claim 17: water damage.'

[ -x "$detrun" ] || die "no program $detrun"
version=$(timeout 30 "$detrun" --version) || die "$detrun does not run"
gpu=$(sed -n "s/^backend $backend: //p" <<<"$version")
case $gpu in
  none* | '')
    why="no GPU can be used here: ${gpu:-the program has no backend $backend}"
    echo "gpu_acceptance.sh: NOTHING WAS TESTED: $why" >&2
    exit 3 ;;
esac
[ -x "$smoke" ] || die "no program $smoke"
[ -r "$golden" ] || die "no golden cases $golden"
[ -r "$models/forged-all-types.gguf" ] || die "no models in $models"
mkdir -p "$out/ledgers" "$out/bench" || die "cannot make the folder $out"
out=$(cd "$out" && pwd)
[ -z "$(find "$out" -type f | head -n 1)" ] || die "the folder $out is not empty: name a new one"

log=$out/log.txt work=$(mktemp -d) load_pid=''
exec 3>&2
finish() {
  [ -z "$load_pid" ] || { kill -TERM "$load_pid"; wait "$load_pid"; } 2>/dev/null
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

# ---- the frame: parts, their time, their status -------------------------------------------------

names=() titles=() statuses=() reasons=() took=()
end=$((SECONDS + seconds))

pass() { status=passed reason=$1; }
skip() { status=skipped reason=$1; }
broken() { status=failed reason=$1; }

# limited COMMAND...: within the time of the part. 124: it was too long.
limited() {
  local left=$((part_end - SECONDS))
  [ $left -ge 1 ] || return 124
  echo "+ $*" >>"$log"
  timeout --foreground -k 5 "$left" "$@" 2>>"$log"
}

# part NAME SECONDS TITLE: runs the function part_NAME, which sets status and reason and writes its
# section to standard output. SECONDS 0: at once, however late.
part() {
  local left=$((end - SECONDS)) limit=$(($2 * slower)) began=$SECONDS
  [ $left -ge "$limit" ] || limit=$left
  part_end=$((SECONDS + limit)) status=failed reason='the part ended without a result'
  echo "gpu_acceptance.sh: $3" >&3
  if [ "$2" -gt 0 ] && [ "$limit" -lt 2 ]; then
    skip 'no time was left' >"$work/$1.md"
  else
    "part_$1" >"$work/$1.md"
  fi
  names+=("$1") titles+=("$3") statuses+=("$status") reasons+=("$reason")
  took+=($((SECONDS - began)))
  echo "gpu_acceptance.sh:   $status: $reason" >&3
}

for file in checks speed cublas report; do
  # shellcheck source=/dev/null
  . "$here/gpu_acceptance/$file.sh"
done

timeout 20 "$detrun" fingerprint --backend "$backend" >"$work/fingerprint.json" 2>>"$log" ||
  echo null >"$work/fingerprint.json"
timeout 10 nvidia-smi >"$out/nvidia-smi.txt" 2>&1 || rm -f "$out/nvidia-smi.txt"
part kernels 120 'Kernels on the device against golden vectors'
part host 15 "The host's own instruction sets"
part replays 45 'Runs recorded on the CPU replayed on the GPU, and back'
part repeats 100 "$repeats repeats under a competing load"
part cublas 90 'Profile cublas'
part speed 150 'Speed of decode and prefill beside the ceilings of this device'
part parallel 0 'Parallel replay against decode'
part torch 25 'The same shapes through torch bf16'
part sanitizer 45 'compute-sanitizer'

result=passed code=0
case " ${statuses[*]} " in *' failed '*) result=failed code=1 ;; esac
write_markdown "$result" >"$out/report.md"
write_json "$result" >"$out/report.json"
rm -f "$out"/ledgers/*-lock
bytes=$(du -sb "$out" | cut -f 1)
if [ "$bytes" -ge $((16 << 20)) ]; then
  echo "gpu_acceptance.sh: $out has $bytes bytes, more than 16 MiB" >&2
  code=1
fi
echo "gpu_acceptance.sh: $result: $out/report.md" >&2
exit $code

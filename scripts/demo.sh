#!/usr/bin/env bash
# The five-minute tour: installs, builds, records a decision of the bundled model, replays it, then
# plays the forger twice. Needs a Debian 12 machine and root or sudo for missing packages.
#
#   scripts/demo.sh            works in a new temporary folder and leaves it for you to look at
#   scripts/demo.sh DIR        works in DIR
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)
folder=${1:-$(mktemp -d "${TMPDIR:-/tmp}/detrun-demo.XXXXXX")}
mkdir -p "$folder"

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
note() { printf '   %s\n' "$@"; }
# run EXPECTED_EXIT COMMAND...: shows the command, runs it, demands the exit code.
run() {
  local expected=$1 actual=0
  shift
  printf '\n$ %s\n' "$(printf '%q ' "$@" | sed "s|$source_dir/build/bin/||g")"
  "$@" || actual=$?
  printf '\n[exit %d]\n' "$actual"
  if [ "$actual" -ne "$expected" ]; then
    echo "demo: expected exit $expected; please report this" >&2
    exit 1
  fi
}

say "1. Install what is missing, build"
"$source_dir/scripts/install_packages.sh" build
cmake -S "$source_dir" --preset release >"$folder/build.log" 2>&1 &&
  cmake --build "$source_dir/build" --parallel "$(nproc)" >>"$folder/build.log" 2>&1 || {
  tail -n 30 "$folder/build.log" >&2
  exit 1
}
export PATH="$source_dir/build/bin:$PATH"
model=$source_dir/fixtures/models/detrun-decisions-q8_0.gguf
cd "$folder"
rm -f demo.db* edited.db* resealed.db*
note "built; the log is $folder/build.log"

say "2. Record a decision"
note "A small language model decides a credit case. The text goes to stdout; prompt, tokens, a" \
     "hash of the logits at every step and the fingerprint of this machine go into demo.db."
case_text='Credit application. Applicant: Maria Lopez. Income: 4,200 EUR a month.'
case_text+=' Requested: 12,000 EUR over 36 months. Missed payments: none.'
case_text+=$'\nDecision:'
run 0 detrun record -m "$model" -p "$case_text" --ledger demo.db --tag case=4711 --echo

say "3. Look at what was kept"
run 0 detrun list --ledger demo.db
run 0 detrun verify --ledger demo.db

say "4. Replay it"
note "The model runs again from the recorded prompt. Every token and every logit hash must be" \
     "equal, bit for bit: on this machine or any other CPU, with any number of threads."
run 0 detrun replay latest --ledger demo.db
run 0 detrun replay latest --ledger demo.db --threads 1

say "5. Forge it, clumsily"
note "In a copy of the ledger somebody changes one recorded token: 'approved' becomes 'declined'."
run 0 detrun tokenize -m "$model" -p ' declined'
declined=$(detrun tokenize -m "$model" -p ' declined')
run 0 forge_ledger demo.db edited.db --run 1 --step 0 --token "${declined%% *}"
note "The seal no longer fits: TAMPERED, without running any model."
run 4 detrun verify --ledger edited.db
run 4 detrun replay 1 --ledger edited.db

say "6. Forge it, thoroughly"
note "A forger who knows the format changes the token and recomputes every seal."
run 0 forge_ledger demo.db resealed.db --run 1 --step 0 --token "${declined%% *}" --reseal
note "The ledger is consistent in itself, so verify is satisfied ..."
run 0 detrun verify --ledger resealed.db
note "... but the model does not say that. This is what detrun is for:"
run 1 detrun replay 1 --ledger resealed.db

say "Done. Everything is in $folder"
note "Next: $source_dir/build/bin/detrun show 1 --ledger $folder/demo.db" \
     "      $source_dir/build/bin/detrun record --help" "      man $source_dir/man/detrun.1"

# What tests that run commands share; read by them, not run. They set `scratch`, a folder of their
# own, and end with the number of `failures`.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154

failures=0
fails() { echo "failed: $*"; failures=$((failures + 1)); }
# expect STATUS WORD COMMAND...: the command ends so, and says so.
expect() {
  local wanted=$1 word=$2 status=0
  shift 2
  "$@" >"$scratch/log" 2>&1 || status=$?
  [ $status = "$wanted" ] ||
    { fails "$* ended with $status, expected $wanted"; cat "$scratch/log"; }
  grep -q -- "$word" "$scratch/log" || { fails "$* did not say '$word'"; cat "$scratch/log"; }
}

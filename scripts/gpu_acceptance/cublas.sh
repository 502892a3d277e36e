#!/usr/bin/env bash
# The part of gpu_acceptance.sh about the profile cublas: recorded with pinned algorithms, replayed
# step by step, repeated beside another process, measured. Skipped where there is no cuBLASLt. Read
# by it; sets status and reason and prints its section.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154

# Adds the folders with the library to where the loader looks: toolkits, and torch's own. Which
# version it takes is the program's affair.
find_cublas() {
  local folder
  for folder in /usr/local/cuda/lib64 /usr/local/cuda-*/lib64 \
    $(python3 -c 'import nvidia, glob
for path in nvidia.__path__: print(*glob.glob(path + "/*/lib"))' 2>/dev/null); do
    compgen -G "$folder/libcublasLt.so.*" >/dev/null || continue
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
  done
}

# cublas_run MODEL: recorded, replayed, verified. Prints a row; 0 when reproduced.
cublas_run() {
  local ledger=$out/ledgers/cublas-$1.db verdict code=0
  limited "$detrun" record -q -m "$models/$1.gguf" -p "$prompt" -n "$tokens" --numerics cublas \
    --backend "$backend" --ledger "$ledger" --json >/dev/null || code=$?
  verdict=$(replays "$ledger" 1 "$backend" step) || code=$?
  limited "$detrun" verify -q --ledger "$ledger" >/dev/null || code=$?
  echo "| $1 | ${verdict:-failed} |"
  return $code
}

part_cublas() {
  local model bad=0 late=0 runs distinct name file code=0 ledger=$out/ledgers/cublas-repeats.db
  export XDG_CACHE_HOME=$work/cache  # nothing counts as tested before
  find_cublas
  limited "$detrun" record -q --no-ledger -m "$models/detrun-decisions-f16.gguf" -p "$prompt" -n 1 \
    --numerics cublas --backend "$backend" >/dev/null || code=$?
  explain $code
  case "$code $why" in
    0*) ;;
    124*) skip "$why"; return ;;
    *'needs cuBLASLt'* | *'without the header of cuBLASLt'*) skip "$why"; return ;;
    *) broken "$why"; return ;;
  esac
  printf '| model | recorded, replayed |\n| --- | --- |\n'
  for model in detrun-decisions-f16 forged-float-types; do
    cublas_run "$model" || count $?
  done
  echo
  repeat_beside_load detrun-decisions-f16 "$ledger" --numerics cublas || return
  limited "$detrun" replay -q --backend "$backend" --ledger "$ledger" --json \
    $(seq "$((repeats < 50 ? repeats : 50))") >"$work/verdicts.json" || count $?
  echo "- of them replayed: $(grep -o '"verdict":"REPRODUCED","mode"' "$work/verdicts.json" |
    wc -l) REPRODUCED"
  gzip -9 "$ledger" && rm -f "$ledger"-* || bad=$((bad + 1))
  for name in "${cublas_works[@]}"; do
    file=$out/bench/cublas-${name// /-}.json
    if bench_of "$file" "$name" --numerics cublas --only decode,prefill; then
      printf -- '- %s: prefill %s tokens/s, %s TOPS in its products\n' "$name" \
        "$(number "$(of_result "$file" prefill tokens_per_s)" 1)" \
        "$(number "$(ratio "$(of_result "$file" prefill matmul_gops)" 1000)" 3)"
    else
      echo "- $name: not measured: $why"
      if [ $lacking = yes ]; then late=$((late + 1)); else bad=$((bad + 1)); fi
    fi
  done
  if [ $bad = 0 ] && [ "$distinct" = 1 ] && [ "$runs" = "$repeats" ]; then
    [ $late = 0 ] || late="; for lack of time or memory $late things were not done"
    pass "2 models, $runs repeats of one output${late#0}"
  else
    broken "$bad faults, $runs of $repeats runs, $distinct distinct: see log.txt"
  fi
}

#!/usr/bin/env bash
# Parts of gpu_acceptance.sh that say equal or not: kernels, instruction sets, replays, repeats,
# compute-sanitizer. Read by it; each function sets status and reason and prints its section.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154

# ---- 1, 7: kernels, instruction sets ------------------------------------------------------------

part_kernels() {
  local code=0
  limited "$smoke" --golden "$golden" --report "$out/kernels.md" "${smoke_options[@]}" >/dev/null ||
    code=$?
  sed -n '3,/^$/p' "$out/kernels.md" 2>/dev/null
  echo 'Every comparison is in `kernels.md`.'
  case $code in
    0) pass "$(sed -n 's/^- \([0-9]* comparisons, .* different\).*/\1/p' "$out/kernels.md")" ;;
    124) broken 'stopped: out of time' ;;
    *) broken "status $code: see kernels.md and log.txt" ;;
  esac
}

part_host() {
  local rows code=0
  [ -r "$out/kernels.md" ] || { skip 'the part before it left no report'; return; }
  rows=$(sed -n '/^## Instruction sets/,/^## Golden/p' "$out/kernels.md" |
    grep '^| [a-z]' | grep -v -e '^| device' -e '^| kernel')
  printf '| instruction set | shapes | cases | result | first difference | ms |\n'
  printf '| --- | --- | --- | --- | --- | --- |\n%s\n\n' "$rows"
  limited "$detrun" stress -q -m "$models/detrun-decisions-q8_0.gguf" -p "$prompt" -n 8 --runs 60 \
    >"$work/stress" || code=$?
  sed 's/^/    /' "$work/stress"
  if [ -z "$rows" ] || awk -F'|' '$5 !~ /^ equal $/ { exit 1 }' <<<"$rows"; then
    [ -n "$rows" ] || { broken 'no row of an instruction set in kernels.md'; return; }
    [ $code != 124 ] || { skip 'detrun stress: no time was left'; return; }
    [ $code = 0 ] || { broken "detrun stress ended with status $code"; return; }
    pass "$(wc -l <<<"$rows") instruction sets"
  else
    broken 'an instruction set differs: see kernels.md'
  fi
}

# ---- 2: recorded on one, replayed on the other --------------------------------------------------

# replays LEDGER RUN BACKEND MODE: prints the verdict; 0 only for REPRODUCED in that mode.
replays() {
  local text
  text=$(limited "$detrun" replay "$2" -q --backend "$3" --mode "$4" --ledger "$1" --json)
  local code=$?
  echo "$text" >>"$log"
  grep -o '"verdict":"[A-Z]*"' <<<"$text" | head -n 1 | cut -d '"' -f 4
  [ $code != 124 ] || return 124
  [ $code = 0 ] && grep -q '"verdict":"REPRODUCED"' <<<"$text" &&
    grep -q "\"mode\":\"$4\"" <<<"$text"
}

# count STATUS: a failure, or time that was not left.
count() { if [ "$1" = 124 ]; then late=$((late + 1)); else bad=$((bad + 1)); fi; }

part_replays() {
  local model ledger bad=0 late=0 n=0 row verdict
  echo '| model | CPU to GPU, step | parallel | GPU to CPU, step | parallel |'
  echo '| --- | --- | --- | --- | --- |'
  for model in detrun-decisions-f16 detrun-decisions-q8_0 detrun-decisions-q4_k_m \
    forged-all-types; do
    ledger=$out/ledgers/$model.db row=$model
    for where in cpu "$backend"; do
      limited "$detrun" record -q -m "$models/$model.gguf" -p "$prompt" -n "$tokens" \
        --backend "$where" --ledger "$ledger" --json >/dev/null || count $?
    done
    for run in "1 $backend step" "1 $backend parallel" "2 cpu step" "2 cpu parallel"; do
      # shellcheck disable=SC2086
      verdict=$(replays "$ledger" $run) || count $?
      row+=" | ${verdict:-failed}" n=$((n + 1))
    done
    echo "| $row |"
    limited "$detrun" verify -q --ledger "$ledger" >/dev/null || count $?
  done
  printf '\n`forged-all-types` holds a matrix of each tensor type that detrun computes with.\n'
  if [ $bad != 0 ]; then
    broken "$bad of $n replays, recordings or seals failed: see log.txt"
  elif [ $late != 0 ]; then
    skip "no time was left for $late of $n replays, recordings or seals"
  else
    pass "$n replays of 8 runs, every tensor type"
  fi
}

# ---- 3: the same run again and again while others use the GPU -----------------------------------

start_load() {
  timeout -k 5 $((part_end - SECONDS + 1)) "$detrun" bench -v --backend "$backend" "${load[@]}" \
    --repeat 10000 --json >"$work/load.json" 2>"$work/load.txt" &
  load_pid=$!
  for _ in $(seq 300); do  # until its weights are on the GPU
    grep -q 'model llama' "$work/load.txt" && return 0
    kill -0 "$load_pid" 2>/dev/null || break
    sleep 0.1
  done
  return 1
}

stop_load() {
  kill -TERM "$load_pid" 2>/dev/null
  wait "$load_pid" 2>/dev/null
  load_pid=''
}

# repeat_beside_load MODEL LEDGER OPTION...: the same run `repeats` times on the GPU while another
# process uses it. Sets runs and distinct; prints two lines; broken when it did not come to its end.
repeat_beside_load() {
  local model=$1 ledger=$2 code=0 alive=yes found
  shift 2
  if ! start_load; then
    stop_load
    cat "$work/load.txt" >>"$log"
    broken 'no competing load: see log.txt'
    return 1
  fi
  for i in $(seq "$repeats"); do
    printf '{"prompt":"%s","tags":{"repeat":"%d"}}\n' "$prompt" "$i"
  done >"$work/prompts.jsonl"
  limited "$detrun" record -q -m "$models/$model.gguf" \
    --prompts "$work/prompts.jsonl" -n 8 --backend "$backend" --ledger "$ledger" --json "$@" \
    >"$work/repeats.json" || code=$?
  kill -0 "$load_pid" 2>/dev/null || alive=no
  stop_load
  runs=$(grep -c '"schema":"detrun.run/1"' "$work/repeats.json")
  distinct=$(sed -n 's/.*"steps":\(\[.*\]\),"seal":.*/\1/p' "$work/repeats.json" | sort -u | wc -l)
  found=$(of_result "$work/load.json" decode runs)
  echo "- $runs runs of at most 8 tokens on the GPU, $distinct distinct (tokens and hashes)"
  echo "- beside them \`detrun bench\` on the same GPU: ${found:-no} measurements of decode"
  case $code in
    0) ;;
    124)
      if [ "$distinct" -gt 1 ]; then broken "$distinct distinct outputs of $runs runs"; return 1; fi
      skip "no time was left after $runs runs of one output"
      return 1 ;;
    *) broken "recording ended with status $code after $runs runs"; return 1 ;;
  esac
  [ $alive = yes ] || { broken 'the competing load ended early: see log.txt'; return 1; }
}

part_repeats() {
  local ledger=$out/ledgers/repeats.db code=0 runs distinct
  repeat_beside_load "$repeated" "$ledger" || return
  limited "$detrun" replay --all -q --backend cpu --mode parallel --ledger "$ledger" --json \
    >"$work/verdicts.json" || code=$?
  runs=$(grep -o '"verdict":"REPRODUCED","mode"' "$work/verdicts.json" | wc -l)
  echo "- replayed on the CPU: $runs REPRODUCED"
  gzip -9 "$ledger" && rm -f "$ledger"-* || code=9
  if [ $code = 0 ] && [ "$distinct" = 1 ] && [ "$runs" = "$repeats" ]; then
    pass "$runs of $repeats runs have the bits of the CPU"
  else
    broken "$runs of $repeats runs reproduced on the CPU (status $code), $distinct distinct"
  fi
}

# ---- 6: compute-sanitizer -----------------------------------------------------------------------

part_sanitizer() {
  local tool code done_=''
  local sanitizer
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
  [ -n "$sanitizer" ] || { skip 'no compute-sanitizer'; return; }
  [ -z "$emulated" ] || { skip 'an emulated GPU is none for compute-sanitizer'; return; }
  for tool in memcheck racecheck; do
    code=0
    limited "$sanitizer" --tool $tool --error-exitcode 99 "$detrun" record -q --backend "$backend" \
      -m "$models/forged-all-types.gguf" -p "$prompt" -n 2 --ledger "$work/$tool.db" \
      >"$work/$tool.txt" || code=$?
    tail -n 3 "$work/$tool.txt" | sed 's/^/    /'
    case $code in
      0) done_+=${done_:+, }$tool ;;
      124) skip "$tool: no time was left${done_:+; $done_ passed}"; return ;;
      *) broken "$tool ended with status $code"; cp "$work/$tool.txt" "$out/$tool.txt"; return ;;
    esac
  done
  pass "$done_"
}

#!/usr/bin/env bash
# Parts of gpu_acceptance.sh that measure: `detrun bench` of model shapes, parallel replay, torch.
# Read by it; each function sets status and reason and prints its section.
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154

# field FILE OBJECT KEY: a number of a bench document, of the result or object named so.
field() {
  tr '{' '\n' <"$1" | grep -F "$2" |
    sed -n "s/.*\"$3\":\(-\{0,1\}[0-9][0-9.eE+-]*\)[,}].*/\1/p" | head -n 1
}
of_result() { field "$1" "\"name\":\"$2\"," "$3"; }
number() {
  awk -v x="${1:-}" -v d="$2" 'BEGIN { if (x == "") print "-"; else printf "%." d "f", x }'
}
ratio() { awk -v a="${1:-0}" -v b="${2:-0}" 'BEGIN { if (b > 0) printf "%.4f", a / b }'; }

# ---- 4, 5: speed --------------------------------------------------------------------------------

# bench_of FILE NAME OPTION...: `detrun bench` of a shape ("8b f16") or a model file, as JSON into
# the file; 0 when there is one. Otherwise sets why and lacking.
bench_of() {
  local file=$1 name=$2 code=0 words
  shift 2
  case $name in
    *' '*) words=(--shape "${name% *}" --type "${name#* }") ;;
    *) words=(-m "$models/$name.gguf") ;;
  esac
  limited "$detrun" bench -q "${words[@]}" --backend "$backend" --json "${bench[@]}" "$@" \
    >"$file" || code=$?
  [ $code = 0 ] && [ -n "$(of_result "$file" decode tokens_per_s)" ] && return 0
  rm -f "$file"
  explain $code
  return 1
}

# bench_row NAME FILE: a line of the table of speeds.
bench_row() {
  printf '| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n' "$1" \
    "$(number "$(of_result "$2" decode tokens_per_s)" 1)" \
    "$(number "$(of_result "$2" decode gb_per_s)" 1)" \
    "$(number "$(of_result "$2" decode ceiling_ratio)" 3)" \
    "$(number "$(of_result "$2" prefill tokens_per_s)" 1)" \
    "$(number "$(ratio "$(of_result "$2" prefill matmul_gops)" 1000)" 3)" \
    "$(number "$(of_result "$2" prefill matmul_peak_ratio)" 3)" \
    "$(number "$(of_result "$2" prefill ceiling_ratio)" 3)" \
    "$(number "$(of_result "$2" record ledger_overhead_percent)" 2)"
}

parallel_ratio() {
  ratio "$(of_result "$1" replay_parallel tokens_per_s)" "$(of_result "$1" decode tokens_per_s)"
}

# targets NAME FILE: what an H200 should reach, as lines "what|found|wanted|sign".
targets() {
  local parallel
  parallel=$(parallel_ratio "$2")
  case $1 in
    '8b f16')
      echo "decode / copy bandwidth|$(of_result "$2" decode ceiling_ratio)|0.75|>="
      echo "prefill / fp32 peak|$(of_result "$2" prefill matmul_peak_ratio)|0.5|>="
      echo "parallel replay / decode|$parallel|10|>=" ;;
    '8b q8_0')
      echo "decode / copy bandwidth|$(of_result "$2" decode ceiling_ratio)|0.65|>="
      echo "prefill, TOPS|$(ratio "$(of_result "$2" prefill matmul_gops)" 1000)|100|>="
      echo "parallel replay / decode|$parallel|25|>=" ;;
  esac
  case $1 in 8b*) echo "ledger, %|$(of_result "$2" record ledger_overhead_percent)|2|<=" ;; esac
}

target_table() {
  local name file what found wanted sign
  [ -s "$work/targets" ] || return 0
  printf '\nWhat an H200 is to reach; a miss is no failure of this script:\n\n'
  echo '| shape | what | found | wanted | met |'
  echo '| --- | --- | --- | --- | --- |'
  while IFS='|' read -r name what found wanted sign; do
    awk -v n="$name" -v w="$what" -v f="$found" -v t="$wanted" -v s="$sign" 'BEGIN {
      met = f == "" ? "not measured" : (s == ">=" ? f >= t + 0 : f <= t + 0) ? "yes" : "**no**"
      printf "| %s | %s | %s | %s %s | %s |\n", n, w, f == "" ? "-" : f, s, t, met }'
  done <"$work/targets"
}

# explain STATUS: sets `why` the command run last ended so, and `lacking`: the machine lacks memory,
# or time.
explain() {
  why=$(awk '/^\+ / { last = "" } /^detrun: error: / { last = $0 } END { print last }' "$log")
  why=${why#detrun: error: } lacking=no
  case $1 in
    124 | 137) why='no time was left' lacking=yes ;;
    5)
      case $why in
        *'MiB of memory'* | *'the weights need'* | *'not enough memory'* | *'out of memory on'*)
          lacking=yes ;;
      esac ;;
  esac
  why=${why:-status $1: see log.txt}
}

ceilings_line() {
  local peaks='"loops"' made
  made=$(sed -n 's/.*"weights_made_on":"\([a-z]*\)".*/\1/p' "$1")
  printf '\nCeilings: copying %s GB/s, fp32 fma %s TFLOPS, int8 mma %s TOPS. ' \
    "$(number "$(field "$1" "$peaks" copy_gb_per_s)" 1)" \
    "$(number "$(ratio "$(field "$1" "$peaks" fma_gflops)" 1000)" 3)" \
    "$(number "$(ratio "$(field "$1" "$peaks" int8_gops)" 1000)" 3)"
  if [ -n "$made" ]; then echo "Weights were made on the $made."; else echo 'Weights of a file.'; fi
}

part_speed() {
  local name file measured=0 bad=0 left_out='' last=''
  printf '| shape | decode tokens/s | GB/s | of copying | prefill tokens/s | TOPS '
  echo '| of peak | of its products | ledger costs % |'
  echo '| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |'
  : >"$work/targets"
  for name in "${works[@]}"; do
    file=$out/bench/${name// /-}.json
    if bench_of "$file" "$name" --only decode,prefill,record,replay_parallel; then
      measured=$((measured + 1)) last=$file
      bench_row "$name" "$file"
      targets "$name" "$file" | sed "s/^/$name|/" >>"$work/targets"
      continue
    fi
    left_out+="${left_out:+; }$name: $why"
    [ $lacking = yes ] || bad=$((bad + 1))
  done
  [ -z "$last" ] || ceilings_line "$last"
  [ -z "$left_out" ] || printf '\nNot measured: %s.\n' "$left_out"
  target_table
  if [ $bad != 0 ]; then
    broken "$left_out"
  elif [ $measured = 0 ]; then
    skip "$left_out"
  else
    pass "$measured of ${#works[@]} shapes${left_out:+; not measured: $left_out}"
  fi
}

part_parallel() {
  local file found n=0 slow=0
  echo '| shape | decode tokens/s | parallel replay tokens/s | ratio |'
  echo '| --- | ---: | ---: | ---: |'
  for file in "$out"/bench/*.json; do
    [ -n "$(of_result "$file" replay_parallel tokens_per_s 2>/dev/null)" ] || continue
    found=$(parallel_ratio "$file")
    [ -n "$found" ] || continue
    n=$((n + 1))
    printf '| %s | %s | %s | %s |\n' "$(basename "$file" .json)" \
      "$(number "$(of_result "$file" decode tokens_per_s)" 1)" \
      "$(number "$(of_result "$file" replay_parallel tokens_per_s)" 1)" "$(number "$found" 2)"
    awk -v r="$found" 'BEGIN { exit !(r < 1) }' && slow=$((slow + 1))
  done
  if [ $n = 0 ]; then
    skip 'no shape was measured'
  elif [ $slow != 0 ]; then
    broken "parallel replay is slower than decode on $slow of $n shapes"
  else
    pass "$n shapes"
  fi
}

# What cublas should reach, where both were measured.
cublas_beside_torch() {
  local own torch
  own=$(of_result "$out/bench/cublas-8b-f16.json" prefill tokens_per_s 2>/dev/null)
  torch=$(sed -n 's/^| 8b bf16 |[^|]*|[^|]*| *\([0-9.]*\) |.*/\1/p' "$work/torch")
  printf '\nProfile cublas, prefill of 8b f16 / torch bf16: %s (wanted: 0.5 or more)\n' \
    "$(number "$(ratio "$own" "$torch")" 2)"
}

part_torch() {
  local code=0
  [ -z "$emulated" ] || { skip 'an emulated GPU is none for torch'; return; }
  command -v python3 >/dev/null || { skip 'no python3'; return; }
  limited python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' ||
    { skip 'no torch that sees a GPU'; return; }
  limited python3 "$here/gpu_acceptance/torch_shapes.py" >"$work/torch" || code=$?
  cat "$work/torch"
  cublas_beside_torch
  case $code in
    0) pass 'see the table' ;;
    124) skip 'no time was left' ;;
    *) skip "torch ended with status $code: see log.txt" ;;
  esac
}

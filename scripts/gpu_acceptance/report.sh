#!/usr/bin/env bash
# The report of gpu_acceptance.sh, as Markdown and as JSON. Read by it; prints, and decides nothing.
# shellcheck shell=bash
# shellcheck disable=SC2154

json_text() { printf '%s' "$1" | tr -d '\000-\037' | sed 's/\\/\\\\/g; s/"/\\"/g'; }

write_markdown() {
  printf '# detrun on %s: %s\n\n' "$gpu" "$1"
  printf -- '- %s, %s seconds, limit %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$SECONDS" "$seconds"
  sed -n '1s/^/- /p' <<<"$version"
  printf '\n| part | status | reason | s |\n| --- | --- | --- | ---: |\n'
  for i in "${!names[@]}"; do
    printf '| %s | %s | %s | %s |\n' "${titles[$i]}" "${statuses[$i]}" "${reasons[$i]//|//}" \
      "${took[$i]}"
  done
  for i in "${!names[@]}"; do
    [ -s "$work/${names[$i]}.md" ] || continue
    printf '\n## %s\n\n' "${titles[$i]}"
    cat "$work/${names[$i]}.md"
  done
}

write_json() {
  local comma='' file
  printf '{"schema":"detrun.gpu_acceptance/1","device":"%s","backend":"%s","result":"%s",' \
    "$(json_text "$gpu")" "$backend" "$1"
  printf '"seconds":%d,"parts":[' "$SECONDS"
  for i in "${!names[@]}"; do
    printf '%s{"name":"%s","title":"%s","status":"%s","reason":"%s","seconds":%d}' "$comma" \
      "${names[$i]}" "$(json_text "${titles[$i]}")" "${statuses[$i]}" \
      "$(json_text "${reasons[$i]}")" "${took[$i]}"
    comma=,
  done
  comma=''
  printf '],"bench":['
  for file in "$out"/bench/*.json; do
    [ -r "$file" ] && { printf '%s' "$comma"; tr -d '\n' <"$file"; comma=,; }
  done
  printf '],"fingerprint":%s}\n' "$(cat "$work/fingerprint.json")"
}

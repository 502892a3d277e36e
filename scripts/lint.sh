#!/usr/bin/env bash
# clang-format and clang-tidy over every source file of the project; both must be silent.
#
#   scripts/lint.sh [--fix]      --fix: let clang-format rewrite the files
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install_packages.sh lint

mapfile -t sources < <(git ls-files -co --exclude-standard '*.h' '*.cpp' '*.cu' '*.cuh')
if [ "${1:-}" = --fix ]; then
  clang-format -i "${sources[@]}"
else
  clang-format --dry-run -Werror "${sources[@]}"
fi
echo "clang-format: ${#sources[@]} files clean"

# A tree of its own without precompiled headers: they are g++'s, and each file must stand alone.
# Only what is generated into headers is built.
cmake --preset release -B build-lint -DDETRUN_PCH=OFF >/dev/null
cmake --build build-lint --parallel "$(nproc)" --target detrun_host detrun_ledger >/dev/null
mapfile -t units < <(
  git ls-files -co --exclude-standard 'src/*.cpp' 'kernels/*.cpp' 'tests/*.cpp' |
    while read -r file; do
      if grep -q "/$file\"" build-lint/compile_commands.json; then echo "$file"; fi
    done)
printf '%s\0' "${units[@]}" | xargs -0 -n 4 -P "$(nproc)" clang-tidy -p build-lint --quiet \
  2> >(grep -v 'warnings generated' >&2 || true)
echo "clang-tidy: ${#units[@]} files clean"

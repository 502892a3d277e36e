#!/usr/bin/env bash
# Builds the rooms that compute with several compilers and levels of optimization for this machine
# and checks the golden hashes of operators and models with each. One line a configuration.
#
#   scripts/compiler_test.sh [--build-dir DIR]
#
# g++ and clang++ (where there is one), each with -O0, -O2 and -O3 -march=native. Exit 0: everything
# equal. AArch64 has its own script, cross_test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

build_dir=build-compilers
while [ $# -gt 0 ]; do
  case $1 in
    --build-dir) build_dir=${2:?--build-dir needs a folder}; shift ;;
    -h | --help) sed -n '2,8p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
    *) echo "compiler_test.sh: unknown option '$1' (try --help)" >&2; exit 2 ;;
  esac
  shift
done

. scripts/build_steps.sh

# configuration COMPILER NAME FLAG...: builds, checks, prints its line.
configuration() {
  local compiler=$1 name=$2 start=$SECONDS
  local dir=$build_dir/${compiler%++}-$2
  shift 2
  mkdir -p "$dir"
  quiet "$dir/configure.txt" cmake -S . -B "$dir" -G Ninja "${launcher[@]}" \
    -DCMAKE_CXX_COMPILER="$compiler" -DDETRUN_CROSS=ON -DDETRUN_CUDA=OFF -DDETRUN_PCH=OFF \
    -DCMAKE_BUILD_TYPE=Level -DCMAKE_CXX_FLAGS_LEVEL="$*" \
    -DCMAKE_CXX_FLAGS="-Wno-stringop-overflow -Wno-restrict -Wno-array-bounds"
  quiet "$dir/build.txt" cmake --build "$dir" --parallel "$(nproc)" \
    --target detrun_golden golden_operators
  quiet "$dir/models.txt" "$dir/bin/detrun_golden" --root . --check fixtures/golden/models.txt
  quiet "$dir/operators.txt" "$dir/bin/golden_operators" --check fixtures/golden/operators.txt
  grep '^skipped:' "$dir/models.txt" || true
  echo "$compiler $*: equal: self-tests of" \
    "$(sed -n 's/^self-test \(.*\) equal$/\1/p' "$dir/models.txt" | paste -sd ' ')," \
    "$(grep -cE ' [0-9a-f]{32}$' "$dir/models.txt" || true) hashes of logits, golden operators;" \
    "$((SECONDS - start)) s"
}

for compiler in g++ clang++; do
  if ! command -v "$compiler" >/dev/null; then
    echo "skipped: there is no $compiler"
    continue
  fi
  configuration "$compiler" O0 -O0
  configuration "$compiler" O2 -O2
  configuration "$compiler" O3-native -O3 -march=native
done

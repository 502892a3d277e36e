#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests. The default is everything that fits its time
# budget; the options add the rest.
#
#   scripts/test.sh            release build, all default tests, the same tests under sanitizers
#   scripts/test.sh --quick    release build, label `quick` only
#   scripts/test.sh --lint     also clang-format and clang-tidy over every source file
#   scripts/test.sh --full     everything: all 2^32 inputs of exp, log, tanh and erf, the mutation
#                              check, AArch64 with two compilers, the thread sanitizer and lint too
#
# DETRUN_WERROR=ON in the environment: a warning of the compiler fails the release build.
# Exit 0: all passed. Tests that lack something (../shared, a locale) say so and skip.
set -euo pipefail
cd "$(dirname "$0")/.."

quick=0 lint=0 full=0
for argument in "$@"; do
  case $argument in
    --quick) quick=1 ;;
    --lint) lint=1 ;;
    --full) full=1 lint=1 ;;
    -h | --help) sed -n '2,12p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
    *) echo "test.sh: unknown option '$argument' (try --help)" >&2; exit 2 ;;
  esac
done

jobs=$(nproc)
say() { printf '\n==> %s\n' "$*"; }

if [ $lint = 1 ]; then scripts/install_packages.sh lint; else scripts/install_packages.sh test; fi

# run_tests BUILD-FOLDER CTEST-ARGUMENT...: shows what was skipped, because ctest would not.
run_tests() {
  local folder=$1 status=0
  shift
  ctest --test-dir "$folder" --output-on-failure -j "$jobs" "$@" || status=$?
  grep -ihE '^ *(message: )?skipped:' "$folder/Testing/Temporary/LastTest.log" | sort | uniq -c ||
    echo "nothing was skipped"
  return $status
}

say "build (release)"
cmake --preset release -DDETRUN_WERROR="${DETRUN_WERROR:-OFF}"
cmake --build --preset release --parallel "$jobs"

# Disassemblers for the check of the GPU's machine code, where there is a CUDA toolkit to check.
if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
  scripts/fetch_sass_tools.sh build || echo "no disassemblers: the SASS tests will skip"
fi

# Labels: quick (a minute), full (the rest of the default), slow (--full only), peer (needs a
# peer installed).
say "tests (release)"
if [ $quick = 1 ]; then
  run_tests build -L quick
  exit 0
fi
run_tests build -LE 'peer|slow'

say "build (address and undefined-behaviour sanitizers)"
cmake --preset asan
cmake --build --preset asan --parallel "$jobs"
say "tests (sanitizers)"
export ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1 UBSAN_OPTIONS=print_stacktrace=1
run_tests build-asan -LE 'peer|slow|no-sanitizer'

if [ $full = 1 ]; then
  say "slow tests (release)"
  run_tests build -L slow
  say "golden values with g++ and clang++, -O0, -O2 and -O3 -march=native"
  scripts/compiler_test.sh
  say "AArch64 (g++ and clang++, -O0 and -O3, emulated)"
  scripts/cross_test.sh --full || [ $? = 77 ]
  say "build (thread sanitizer)"
  cmake --preset tsan
  cmake --build --preset tsan --parallel "$jobs" --target test_backend test_run test_engine
  say "tests (thread sanitizer)"
  run_tests build-tsan -R '^(backend|run|engine)$'
fi
if [ $lint = 1 ]; then
  say "lint"
  scripts/lint.sh
fi
say "all tests passed"

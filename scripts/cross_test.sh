#!/usr/bin/env bash
# Builds the rooms that compute for AArch64 and runs them in an emulator, on the scalar reference
# and on NEON: the golden hashes of operators and models, the parity tests, and the backend's choice
# of an instruction set and its floating-point control. One line a configuration.
#
#   scripts/cross_test.sh [--full] [--build-dir DIR]
#
# Default: g++ -O3. --full: g++ and clang++, -O0 and -O3; with g++ -O3 also every unit test of a
# room that computes. Exit 0: everything equal; 77 (said loudly): no cross compiler or emulator.
set -euo pipefail
cd "$(dirname "$0")/.."

full=0 build_dir=build-cross
while [ $# -gt 0 ]; do
  case $1 in
    --full) full=1 ;;
    --build-dir) build_dir=${2:?--build-dir needs a folder}; shift ;;
    -h | --help) sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
    *) echo "cross_test.sh: unknown option '$1' (try --help)" >&2; exit 2 ;;
  esac
  shift
done

for tool in aarch64-linux-gnu-g++ qemu-aarch64; do
  if ! command -v "$tool" >/dev/null; then
    echo "skipped: NEON was not tested, there is no $tool (scripts/install_packages.sh test)"
    exit 77
  fi
done

. scripts/build_steps.sh

emulated() { qemu-aarch64 -L /usr/aarch64-linux-gnu "$@"; }

# build DIR COMPILER LEVEL TARGET...
build() {
  local dir=$1 compiler=$2 type=$3
  shift 3
  # Debug is -O0 to the CMake files too. g++ 12 at -O3 sees overflows inside std::string (GCC bug
  # 105651), which are not there.
  [ "$type" = O3 ] || type=Debug
  quiet "$dir/configure.txt" cmake -S . -B "$dir" -G Ninja "${launcher[@]}" \
    -DDETRUN_CROSS=ON -DDETRUN_CUDA=OFF -DDETRUN_CROSS_COMPILER="$compiler" \
    -DCMAKE_TOOLCHAIN_FILE="$PWD/tests/cross/aarch64-linux-gnu.cmake" -DCMAKE_BUILD_TYPE=$type \
    -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DCMAKE_CXX_FLAGS_O3=-O3 \
    -DCMAKE_CXX_FLAGS="-Wno-stringop-overflow -Wno-restrict -Wno-array-bounds"
  quiet "$dir/build.txt" cmake --build "$dir" --parallel "$(nproc)" --target "$@"
}

# configuration gcc|clang O0|O3 [all]: builds, runs two programs at a time, prints its line.
configuration() {
  local start=$SECONDS dir=$build_dir/$1-$2 program failed=0 running=0
  local unit=(parity backend)
  [ -z "${3:-}" ] || unit+=(kernels quant model_spec model_weights model_forward)
  mkdir -p "$dir"
  build "$dir" "$1" "$2" detrun_golden golden_operators "${unit[@]/#/test_}"

  for program in models operators "${unit[@]}"; do
    local command=("$dir/bin/test_$program" --no-intro --no-version)
    case $program in
      models) command=("$dir/bin/detrun_golden" --root . --check fixtures/golden/models.txt) ;;
      operators) command=("$dir/bin/golden_operators" --check fixtures/golden/operators.txt) ;;
      backend)  # on a processor without the dot product extension, too
        command=(-cpu cortex-a53 "${command[@]}")
        # The matrix of threads, chunks and instruction sets takes minutes in an emulator.
        [ -n "${3:-}" ] ||
          command+=("--source-file=*fp_control*,*cpu_select*,*thread_pool*,*rope_tables*") ;;
    esac
    if [ $running = 2 ]; then
      wait -n || failed=1
      running=1
    fi
    quiet "$dir/$program.txt" emulated "${command[@]}" &
    running=$((running + 1))
  done
  for ((; running > 0; --running)); do wait -n || failed=1; done
  [ $failed = 0 ] || return 1

  grep '^skipped:' "$dir/models.txt" || true
  echo "$1 -$2: equal: self-tests of" \
    "$(sed -n 's/^self-test \(.*\) equal$/\1/p' "$dir/models.txt" | paste -sd ' ')," \
    "$(grep -cE ' [0-9a-f]{32}$' "$dir/models.txt" || true) hashes of logits, golden operators;" \
    "passed: ${unit[*]}; $((SECONDS - start)) s"
}

configuration gcc O3 $([ $full = 0 ] || echo all)
if [ $full = 1 ]; then
  configuration gcc O0
  if command -v clang++ >/dev/null; then
    configuration clang O0
    configuration clang O3
  else
    echo "skipped: NEON was not tested with clang++, there is none"
  fi
fi

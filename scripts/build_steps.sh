# What scripts that build several configurations share; read by them, not run.

launcher=()
if command -v ccache >/dev/null; then
  launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
fi

# quiet LOG COMMAND...: shows what the command said only when it fails.
quiet() {
  local log=$1
  shift
  if ! "$@" >"$log" 2>&1; then
    echo "failed: $*" >&2
    tail -n 60 "$log" >&2
    return 1
  fi
}

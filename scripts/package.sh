#!/usr/bin/env bash
# Builds detrun for other machines: a tarball whose program needs glibc 2.34 and nothing else, with
# or without a GPU, in any folder. Everything else is linked in; the CUDA kernels too, where this
# machine has a toolkit: one line says which. The same sources give the same tarball, byte for byte.
#
#   scripts/package.sh [-o FOLDER] [--build-dir DIR]      default: dist, build-package
#
# CMAKE_BUILD_PARALLEL_LEVEL is the number of compilers at a time; default: the cores. Prints the
# path of the tarball last. Exit 0: built and checked. 1: a check failed, no tarball.
set -euo pipefail
cd "$(dirname "$0")/.."

out=dist build=build-package
while [ $# -gt 0 ]; do
  case $1 in
    -o) out=${2:?-o needs a folder}; shift ;;
    --build-dir) build=${2:?--build-dir needs a folder}; shift ;;
    -h | --help) sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
    *) echo "package.sh: unknown option '$1' (try --help)" >&2; exit 2 ;;
  esac
  shift
done

fail() { echo "package.sh: $*" >&2; exit 1; }
say() { printf '==> %s\n' "$*" >&2; }

scripts/install_packages.sh build >&2
. scripts/build_steps.sh
say "build (static)"
mkdir -p "$build"
quiet "$build/configure.txt" cmake -S . -B "$build" -G Ninja "${launcher[@]}" \
  -DCMAKE_BUILD_TYPE=Release -DDETRUN_STATIC=ON
# What the configuration says of CUDA; a cache keeps the compiler of an earlier one.
cuda=$(sed -n 's/^-- CUDA kernels: //p' "$build/configure.txt")
targets=(detrun)
case $cuda in
  none) say "without CUDA kernels: no toolkit, or DETRUN_CUDA is OFF" ;;
  toolkit*) say "with CUDA kernels: $cuda"; targets+=(detrun_gpu_smoke) ;;
  *) fail "$build/configure.txt does not say whether there are CUDA kernels" ;;
esac
quiet "$build/build.txt" cmake --build "$build" \
  --parallel "${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" --target "${targets[@]}"

version=$("$build/bin/detrun" --version | sed -n '1s/^detrun //p' | cut -d ' ' -f 1)
name=detrun-$version-linux-$(uname -m)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/$name

say "stage $name"
mkdir -p "$root/bin" "$root/share/man" "$root/share/doc/detrun/licences" "$root/share/detrun"
for target in "${targets[@]}"; do strip -o "$root/bin/$target" "$build/bin/$target"; done
for page in man/*.[157]; do
  install -Dm 644 "$page" "$root/share/man/man${page##*.}/${page##*/}"
done
install -Dm 644 scripts/completions/detrun.bash "$root/share/bash-completion/completions/detrun"
install -Dm 644 scripts/completions/detrun.fish "$root/share/fish/vendor_completions.d/detrun.fish"
install -Dm 644 scripts/completions/detrun.zsh "$root/share/zsh/site-functions/_detrun"
install -m 755 scripts/verify_ledger.py scripts/gpu_smoke.sh scripts/gpu_acceptance.sh "$root/bin/"
for part in scripts/gpu_acceptance/*.{sh,py}; do
  install -Dm 644 "$part" "$root/bin/gpu_acceptance/${part##*/}"
done
install -m 644 fixtures/golden/operators.txt "$root/bin/"  # beside the scripts that read it
install -m 644 fixtures/models/*.gguf "$root/share/detrun/"
install -m 644 README.md CHANGELOG.md LICENSE "$root/share/doc/detrun/"
install -m 644 packaging/INSTALL.md "$root/"
# Whoever passes on what is linked in passes on its licences.
licence() {
  [ -s "$1" ] || fail "no licence of $2${1:+ in $1}"
  install -m 644 "$1" "$root/share/doc/detrun/licences/$2.txt"
}
for package in libcli11-dev libsqlite3-dev libxxhash-dev libspdlog-dev libfmt-dev \
               nlohmann-json3-dev libssl-dev libpcre2-dev libutf8proc-dev libstdc++6 libgcc-s1; do
  licence "/usr/share/doc/$package/copyright" "$package"
done
if [ "$cuda" != none ]; then  # where installers, packages of NVIDIA, of Debian and of Python put it
  nvcc=$(sed -n 's/^CMAKE_CUDA_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
  toolkit=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
  licence "$(find "$toolkit"/EULA.txt "$toolkit"/dist-info/nvidia_cuda_runtime*/licenses/*.txt \
    /usr/share/doc/{cuda-cudart-dev-*,nvidia-cuda-dev}/copyright 2>/dev/null | head -n 1)" cudart
fi

say "check"
# Every library a program needs is glibc's, and no symbol is younger than the promise.
for program in "${targets[@]}"; do
  packaging/check_portable.sh "$root/bin/$program" >&2 || fail "bin/$program is not portable"
done
(cd / && "$root/bin/detrun" --version >/dev/null) || fail "the staged program does not run"

mkdir -p "$out"
tarball=$out/$name.tar.gz
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
tar -C "$stage" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner \
  --mode=u+rwX,go+rX,go-w -cf - "$name" | gzip -n -9 >"$tarball.part"
mv "$tarball.part" "$tarball"
(cd "$out" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
say "$(stat -c %s "$tarball") bytes, SHA-256 $(cut -d ' ' -f 1 "$tarball.sha256")"
echo "$tarball"

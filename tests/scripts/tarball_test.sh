#!/usr/bin/env bash
# What scripts/package.sh promises, of this machine's tarball (with CUDA kernels where it has a
# toolkit): the same bytes twice, everything that is needed inside and nothing of this machine, and
# a program that records, replays and verifies from a folder with a space in its name that it cannot
# write to, for a user without rights, in an empty environment; and its acceptance script, rehearsed
# with the emulated GPU of BUILD-FOLDER.
#
#   tarball_test.sh SOURCE-FOLDER BUILD-FOLDER     the tarball is built in BUILD-FOLDER/tarball
set -euo pipefail
source_dir=$(realpath "$1") binaries=$(realpath "$2")
build=$binaries/tarball
scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
# shellcheck source=tests/scripts/expect.sh
. "$source_dir/tests/scripts/expect.sh"

lines_of_log() { [ "$(wc -l <"$scratch/log")" = "$1" ] || fails "more than $1 lines of $2"; }

# ---- packed twice, the second time by somebody with other habits --------------------------------

cd /
tarball=$("$source_dir/scripts/package.sh" -o "$scratch/one" --build-dir "$build")
(umask 077 && TZ=Asia/Tokyo LC_ALL=C "$source_dir/scripts/package.sh" -o "$scratch/two" \
  --build-dir "$build" 2>/dev/null >/dev/null)
cmp "$tarball" "$scratch/two/${tarball##*/}" || fails 'packed twice, two tarballs'
expect 0 OK env -C "$scratch/one" sha256sum --check "${tarball##*/}.sha256"
[ "$(stat -c %s "$tarball")" -lt $((32 << 20)) ] || fails "$tarball is larger than 32 MiB"

# ---- unpacked where it cannot be written, for a user without rights -----------------------------

mkdir "$scratch/un packed" "$scratch/home"
tar -C "$scratch/un packed" -xzf "$tarball"
root=$(find "$scratch/un packed" -mindepth 1 -maxdepth 1)
[ "$root" = "$scratch/un packed/$(basename "$tarball" .tar.gz)" ] || fails "it unpacks as $root"
chmod -R a-w "$scratch/un packed"
user=()
if [ "$(id -u)" = 0 ]; then
  chmod 755 "$scratch"
  chown 65534:65534 "$scratch/home"
  user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
# run COMMAND...: by that user, in an empty folder, with no variable of the environment at all.
run() { (cd "$scratch/home" && exec "${user[@]}" env -i "$@"); }
detrun=$root/bin/detrun share=$root/share

for program in detrun detrun_gpu_smoke; do
  [ -e "$root/bin/$program" ] || continue
  expect 0 GLIBC_2 "$source_dir/packaging/check_portable.sh" "$root/bin/$program"
  if grep -aqF -e "$source_dir" -e "$build" "$root/bin/$program"; then
    fails "bin/$program holds a path of the machine that built it"
  fi
done
for page in "$source_dir"/man/*.[157]; do
  cmp -s "$page" "$share/man/man${page##*.}/${page##*/}" || fails "no page ${page##*/}"
done
for file in INSTALL.md share/doc/detrun/LICENSE share/doc/detrun/README.md \
  share/doc/detrun/licences/{libstdc++6,libgcc-s1,libssl-dev,libsqlite3-dev,libfmt-dev}.txt; do
  [ -s "$root/$file" ] || fails "no $file"
done
# Every path that INSTALL.md names is there.
while read -r path; do
  [ -e "$root/$path" ] || fails "INSTALL.md names $path"
done < <(grep -oE '(^|[ `])(bin|share)/[a-zA-Z0-9_./-]*[a-zA-Z0-9]' "$root/INSTALL.md" | tr -d ' `')

diff -rq -x __pycache__ "$source_dir/scripts/gpu_acceptance" "$root/bin/gpu_acceptance" ||
  fails 'other parts of gpu_acceptance.sh'
diff -rq "$source_dir/fixtures/models" "$share/detrun" || fails 'other models'

# ---- recorded, replayed, verified ----------------------------------------------------------------

model=$share/detrun/detrun-decisions-q8_0.gguf
expect 0 '^detrun [0-9]' run "$detrun" --version
[ "$(grep -c '^backend cuda: ' "$scratch/log")" = 1 ] || fails 'no line, or several, of a GPU'
expect 0 'run 1' run "$detrun" record -m "$model" -p 'Claim 17: water damage.' -n 24
expect 0 REPRODUCED run "$detrun" replay 1
expect 0 REPRODUCED run "$detrun" replay 1 --mode step
expect 0 ok run "$detrun" verify
# An error is an exception, and has to find its handler in a program with its own unwinder.
expect 2 'no-such.gguf' run "$detrun" record -m no-such.gguf -p x
if [ -x /usr/bin/python3 ]; then
  expect 0 ok run python3 "$root/bin/verify_ledger.py" detrun.db
else
  echo 'skipped: verify_ledger.py, no /usr/bin/python3'
fi

# ---- the GPU -------------------------------------------------------------------------------------

if "$detrun" --version | grep -q '^backend cuda: none (built without CUDA)'; then
  echo 'skipped: no CUDA toolkit, so a tarball without CUDA kernels'
  expect 2 'this program was built without CUDA' \
    run "$detrun" record --backend cuda -m "$model" -p x -n 1
else
  [ -s "$share/doc/detrun/licences/cudart.txt" ] || fails 'no licence of the CUDA runtime'
  if [ ! -e /dev/nvidiactl ]; then
    expect 2 'backend cuda: there is no NVIDIA driver' \
      run "$detrun" record --backend cuda -m "$model" -p x -n 1
    expect 3 'no GPU can be used here: no NVIDIA driver' run "$root/bin/gpu_smoke.sh"
    expect 3 'gpu_smoke.sh: NOTHING WAS TESTED' run "$root/bin/gpu_smoke.sh"
  fi
fi
if [ ! -e /dev/nvidiactl ]; then
  expect 3 'NOTHING WAS TESTED: no GPU can be used here: none (' run "$root/bin/gpu_acceptance.sh"
  lines_of_log 1 'gpu_acceptance.sh'
fi
# The acceptance script of the tarball rehearsed with the emulated GPU, which is not in it.
emulated=$scratch/emulated/bin
mkdir -p "$emulated"
if cp "$binaries"/bin/{detrun_emulated,detrun_gpu_smoke_emulated} "$emulated" 2>/dev/null; then
  expect 0 'gpu_acceptance.sh: passed: ' run "$root/bin/gpu_acceptance.sh" --out report \
    --emulated "${emulated%/bin}"
  expect 0 '^| forged-all-types | REPRODUCED | REPRODUCED | REPRODUCED | REPRODUCED |' \
    cat "$scratch/home/report/report.md"
else
  echo 'skipped: the rehearsal, no detrun_emulated and detrun_gpu_smoke_emulated in the build'
fi
echo "tarball: $failures failures"
[ $failures = 0 ]

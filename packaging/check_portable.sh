#!/usr/bin/env bash
# check_portable.sh PROGRAM: whether it runs wherever glibc 2.34 is: no library but glibc's, no
# symbol of a later one. Prints a line; exit 1 names what is too much.
set -euo pipefail
program=$1 status=0
for library in $(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
  case $library in
    libc.so.6 | libm.so.6 | libdl.so.2 | librt.so.1 | libpthread.so.0 | ld-linux-x86-64.so.2) ;;
    *) echo "$program needs $library"; status=1 ;;
  esac
done
newest=$(objdump -T "$program" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
if [ "$(printf '%s\nGLIBC_2.34\n' "$newest" | sort -V | tail -n 1)" != GLIBC_2.34 ]; then
  echo "$program needs $newest: $(objdump -T "$program" | grep "$newest" | tr -s ' \n' ' ')"
  status=1
fi
[ $status = 0 ] && echo "$(basename "$program"): $newest, $(stat -c %s "$program") bytes"
exit $status

#!/bin/sh
# Every man page passes `mandoc -T lint`, style included. Usage: mandoc_lint.sh MANDOC MAN-FOLDER.
# A reference to a page of this folder is good although it is not installed: those lines are dropped.
# Exit 77, said aloud, when there is no mandoc.
mandoc=$1
folder=$2
if [ ! -x "$mandoc" ]; then
  echo "SKIPPED: mandoc is not installed, the man pages were not checked"
  exit 77
fi
findings=$(for page in "$folder"/*.[1-9]; do "$mandoc" -T lint -W style "$page"; done)
for page in "$folder"/*.[1-9]; do
  name=$(basename "$page")
  wanted="referenced manual not found: Xr ${name%.*} ${name##*.}"
  findings=$(printf '%s\n' "$findings" | grep -v -e "$wanted\$" -e "$wanted (")
done
[ -z "$findings" ] && exit 0
printf '%s\n' "$findings"
exit 1

#!/bin/sh
# Every man page passes `mandoc -T lint`, style included. Usage: mandoc_lint.sh MAN-FOLDER.
# Exit 77, said aloud, when there is no mandoc.
folder=$1
if ! command -v mandoc >/dev/null; then
  echo "SKIPPED: mandoc is not installed, the man pages were not checked"
  exit 77
fi
# Pages that name each other are found in the current folder.
cd "$folder" || exit 1
status=0
for page in *.[1-9]; do
  mandoc -T lint -W style "$page" || status=1
done
exit $status

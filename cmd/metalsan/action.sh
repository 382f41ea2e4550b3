#!/usr/bin/env bash
# The script of action.yml. It builds metalsan from this checkout and checks $FILES.
set -euo pipefail
shopt -s globstar nullglob

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [ "$RUNNER_OS" != Linux ]; then
  echo "::error::metalsan runs on Linux runners only, not on $RUNNER_OS"
  exit 1
fi
# shellcheck disable=SC2206 # the words of the inputs are separated here, and patterns become files
files=($FILES)
set -f
# shellcheck disable=SC2206
flags=($FLAGS)
if [ -n "$SARIF" ]; then flags+=(--sarif "$SARIF"); fi
if [ ${#files[@]} = 0 ]; then
  echo "::error::no file matches $FILES"
  exit 1
fi

CGO_ENABLED=0 go build -C "$source" -buildvcs=false -o "$RUNNER_TEMP/metalsan" ./cmd/metalsan
echo "::add-matcher::$source/cmd/metalsan/problem-matcher.json"
status=0
"$RUNNER_TEMP/metalsan" "${flags[@]}" -- "${files[@]}" || status=$?
for owner in error portability not-run; do echo "::remove-matcher owner=metalsan-$owner::"; done
exit $status

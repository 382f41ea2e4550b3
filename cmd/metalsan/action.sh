#!/usr/bin/env bash
# Builds metalsan from this checkout and checks $FILES. action.yml runs this script.
set -euo pipefail
shopt -s globstar nullglob

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [ "$RUNNER_OS" != Linux ]; then
  echo "::error::unsupported runner $RUNNER_OS; metalsan runs on Linux"
  exit 1
fi
# shellcheck disable=SC2206 # the shell splits the words and expands the patterns
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

#!/usr/bin/env bash
# Builds metalsan from this checkout and checks $FILES. action.yml runs this script. On a GitHub runner, metalsan
# annotates the lines of its findings.
set -euo pipefail
set -f # metalsan expands the patterns

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [ "$RUNNER_OS" != Linux ]; then
  echo "::error::unsupported runner $RUNNER_OS; metalsan runs on Linux"
  exit 1
fi
# shellcheck disable=SC2206 # the shell splits the words
files=($FILES) flags=($FLAGS)
if [ -n "$SARIF" ]; then flags+=(--sarif "$SARIF"); fi

CGO_ENABLED=0 go build -C "$source" -buildvcs=false -o "$RUNNER_TEMP/metalsan" ./cmd/metalsan
exec "$RUNNER_TEMP/metalsan" "${flags[@]}" -- "${files[@]}"

#!/bin/sh
# Measures data-parallel training of the lm example: the speed of 1 and of N processes with equal work for each, and
# whether two runs of N have equal bits. It also compares the loss with divided classes with the undivided one.
set -eu

if [ $# -lt 2 ]; then
  echo 'usage: scaling.sh PACKAGE N [flags of lm]   PACKAGE is the folder of ./build.sh package;
  BATCH: passages per process and step, default 16; BACKEND: nccl (default) or ring' >&2
  exit 2
fi
package=$(cd "$1" && pwd)
n=$2
shift 2
batch=${BATCH:-16}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# launch N COMMAND... starts N processes.
launch() {
  count=$1
  shift
  "$package/run.sh" launch -n "$count" --backend "${BACKEND:-nccl}" -- "$@"
}

# train NAME N [flags] trains, keeps the output in NAME.txt, and prints it.
train() {
  name=$1
  count=$2
  shift 2
  echo "== $count processes, run $name"
  launch "$count" "$package/lm" -data-parallel -batch $((batch * count)) -width 1024 -heads 8 -layers 12 -length 512 \
    -rate 3e-4 -steps 40 -letters 0 -png "$work/$name.png" -checkpoint "$work/$name.safetensors" "$@" \
    >"$work/$name.txt" 2>&1 || { cat "$work/$name.txt"; exit 1; }
  cat "$work/$name.txt"
}

# rate NAME prints the letters per second of a run.
rate() { sed -n 's/.* and \([0-9]*\) letters per second/\1/p' "$work/$1.txt"; }

train one 1 "$@"
train first "$n" "$@"
train second "$n" "$@"
echo '== divided classes'
launch "$n" "$package/ops/sharded/sharded.test" -test.skip '^(TestRanks|TestOnGPU)$' -test.v -compare.inputs=1

echo '== results'
one=$(rate one)
for name in first second; do
  echo "$n processes, run $name: $(rate $name) letters per second; 1 process: $one;" \
    "efficiency $(awk "BEGIN { printf \"%.3f\", $(rate $name) / ($n * $one) }")"
done
if cmp "$work/first.safetensors" "$work/second.safetensors"; then
  echo 'both runs have the same bits'
else
  echo 'the runs differ'
  exit 1
fi

#!/usr/bin/env bash
# The one entry to this repository: brings MLX and mlx-c, then does what is asked.
# ./build.sh help lists the verbs.
set -euo pipefail

unset CDPATH # With it, cd may print where it went, and go elsewhere.
script=${BASH_SOURCE[0]}
while [ -L "$script" ]; do # readlink -f is missing on older macOS
  target=$(readlink "$script")
  case $target in
    /*) script=$target ;;
    *) script=$(dirname "$script")/$target ;;
  esac
done
root=$(cd "$(dirname "$script")" && pwd)
third=$root/third_party/mlx-c
install=$third/install

usage() {
  cat <<'EOF'
usage: ./build.sh [verb] [flags]

  setup   bring and build the pinned MLX and mlx-c (the default verb)
            --backend cpu|cuda13|cuda12|metal   also MLXGRAD_BACKEND; default: cpu, on macOS metal
            --mlx-dir DIR       use the MLX in DIR (include/mlx, lib/libmlx); also MLX_DIR,
                                e.g. MLX_DIR=$(brew --prefix mlx)
            --mlx-c-source SRC  use these mlx-c sources (folder or archive); also MLX_C_SOURCE
          A choice is kept until another is made or clean is run. CXX names the compiler.
            --offline DIR       download nothing; take the files from DIR
            --asan              also build the library of programs that go build -asan makes
  install --prefix DIR   copy MLX to DIR/lib/mlxgrad; programs find it there if MLXGRAD_LIB is
          DIR/lib/mlxgrad/lib
  release [VERSION]
          make the files of a release in the folder release, see RELEASING.md; without VERSION a
          snapshot, to try it
  package DIR   make one folder for a machine without Go and network: the command, tests,
          libraries, and run.sh, which runs parity, tests and bench there
  parity  compare gradients with MLX's own and a float64 oracle, in a sample of the cases;
            --full runs every case, --rows prints every row; flags go to mlxgrad parity
  test    run all tests, the slowest in a sample of their cases; flags and packages go to go test
  test-long [PART...]
          run what test leaves out, in parts: setup (MLX's package for macOS), tests (all cases,
          dtypes and schedules), parity (every case), the name of each file of
          customkernels/shaders (its mutants), and clang (all cases of the kernels' tests with
          clang++). Without a PART it runs all, for hours. It reports each part, goes on after a
          failure, and repeats no part but parity that passed while nothing changed
  bench   run all benchmarks; flags and packages go to go test
          bench overhead: what mlxc costs beside C, and beside Python's MLX if it is there
  lint    run golangci-lint, gofumpt, clang-format, go vet, and actionlint on the workflows
  clean   remove everything that was brought and built
  help    print this

Every verb but clean and help sets up first, which takes no time once it is done.
EOF
}

die() {
  echo "mlxgrad $verb: $*" >&2
  exit 1
}

# takes_nothing refuses what follows a verb that would not look at it: clean --dry-run
# must not clean.
takes_nothing() {
  [ $# = 0 ] || die "it takes nothing, and not $1: see ./build.sh help"
}

# programs is where this script builds programs: beside what was brought or, in a checkout that
# cannot be written, in a temporary folder.
programs=$third/build
programs_folder() {
  if ! mkdir -p "$programs" 2>/dev/null || ! [ -w "$programs" ]; then
    programs=$(mktemp -d "${TMPDIR:-/tmp}/mlxgrad-XXXXXX")
    trap 'rm -rf "$programs"' EXIT
  fi
}

# finish runs the last program. A temporary folder is removed after it.
finish() {
  if [ "$programs" = "$third/build" ]; then exec "$@"; fi
  "$@"
  exit
}

setup() {
  command -v go >/dev/null || die "go is not on the PATH: install Go 1.26 or later"
  programs_folder
  # Built rather than run by "go run", which would add a line to every error. Git, which Go
  # asks for the commit, refuses a checkout of another user's, as containers have.
  local out
  if ! out=$(go build -C "$root" -buildvcs=false -o "$programs/setup" ./internal/setup/cmd 2>&1); then
    case $out in
      *"$third/build"*"permission denied"* | *"$third/build"*"read-only file system"*) die "$third/build cannot be written: make third_party/mlx-c writable, or use a checkout of your own" ;;
      *"no space left on device"*) die "the disk is full: free some 200 MB and run ./build.sh setup again" ;;
      *) die "the set-up program does not build: see Go's message below"$'\n'"$out" ;;
    esac
  fi
  "$programs/setup" "$third" "$@"
  cuda_headers
}

# MLX compiles CUDA kernels at run time, against headers that it looks for in CUDA_HOME.
cuda_headers() {
  [ -z "${CUDA_HOME:-}${CUDA_PATH:-}" ] || return 0
  local dir
  for dir in "$install/nvidia/cu13" "$install/nvidia/cuda_runtime"; do
    if [ -d "$dir/include" ]; then export CUDA_HOME=$dir; fi
  done
}

# need_clang sets clangxx to the name of clang++. The tests put Metal source through clang's address-space
# check.
need_clang() {
  local name
  for name in clang++ clang++-{20,19,18,17,16,15,14}; do
    clangxx=$name
    if command -v "$name" >/dev/null; then return 0; fi
  done
  clangxx=clang++
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "mlxgrad $verb: installing clang, which the tests need" >&2
    local log=$third/build/apt.log
    if { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends clang; } \
      >"$log" 2>&1 </dev/null; then return 0; fi
    die "clang could not be installed: see $log, or install clang 14 or later by hand"
  fi
  if command -v apt-get >/dev/null; then
    die "the tests need clang: sudo apt-get install clang"
  fi
  die "the tests need clang: install clang 14 or later with your system's package manager"
}

# clang_format prints the C++ files, headers and shaders that the pinned clang-format would change.
clang_format() {
  local version=23.1.5 dir=$programs/clang-format
  if ! [ -d "$dir/$version" ]; then
    rm -rf "$dir"
    python3 -m pip install --quiet --no-deps --only-binary=:all: --disable-pip-version-check --root-user-action=ignore \
      --target "$dir/$version" "clang-format==$version" || return 1
  fi
  # An archive of a release has no .git. Generated files and the files of testdata stay as they are.
  find customkernels mlxc third_party/mlx-c/patches \( -name testdata -o -name 'gen_*' \) -prune -o -type f \
    \( -name '*.h' -o -name '*.c' -o -name '*.cpp' -o -name '*.metal' \) -print |
    while read -r file; do
      PYTHONPATH=$dir/$version "$dir/$version/bin/clang-format" --assume-filename=x.cpp <"$file" | cmp -s - "$file" || echo "$file"
    done
}

# tags has the tests build what is compiled against MLX's headers, which are here.
tags=-tags=mlxheaders

# go_test runs go test on all packages, or on those among its arguments, which begin
# with ./ or with the module's path.
go_test() {
  cd "$root"
  local arg
  for arg in "$@"; do
    case $arg in
      ./* | github.com/*) finish go test $tags -timeout 40m "$@" ;;
    esac
  done
  # What takes longest first, beside which the rest runs.
  finish go test $tags -timeout 40m ./ops ./... "$@"
}

# part runs one part of test-long and notes its failure in failed.
part() {
  echo "== $*"
  local start=$SECONDS result=passed
  "$@" || { result=FAILED; failed+=("$*"); }
  echo "== $result in $((SECONDS - start)) s: $*"
}

full_parity() {
  go build -C "$root" -buildvcs=false -o "$programs/mlxgrad" ./compare/cmd/mlxgrad && "$programs/mlxgrad" parity --full
}

# test_long runs the named parts, or all, each in a process of its own. Go caches the results of parts that
# passed, which a repeated run skips.
test_long() {
  cd "$root"
  local packages name parts shaders=customkernels/shaders
  parts=(setup tests parity $(ls $shaders) clang)
  [ $# -gt 0 ] || set -- "${parts[@]}"
  for name in "$@"; do
    case " ${parts[*]} " in
      *" $name "*) ;;
      *) die "$name is not a part; the parts are: ${parts[*]}" ;;
    esac
  done
  failed=()
  packages=$(go list ./... | grep -v /internal/setup)
  export MLXGRAD_LONG=1
  local require=${MLXGRAD_REQUIRE:-}
  for name in "$@"; do
    case $name in
      # These tests run programs, whose sources Go's cache of results does not see.
      setup) part go test -timeout 2h -count=1 ./internal/setup ;;
      # shellcheck disable=SC2086 # a list of packages
      tests) part go test $tags -timeout 6h -skip '^TestMutationsAreNoticed$' $packages ;;
      parity) part full_parity ;;
      # The other compiler of the host executor and the checker.
      clang)
        part env MLXGRAD_LONG=full MLXGRAD_REQUIRE="${require/traffic-compiler/}" CXX="$clangxx" \
          go test -timeout 2h ./customkernels/... ./ops
        ;;
      *) part go test -timeout 24h ./ops -run "^TestMutationsAreNoticed\$/^${name%.*}\$" ;;
    esac
  done
  [ ${#failed[@]} = 0 ] || die "${#failed[@]} parts failed:$(printf '\n  %s' "${failed[@]}")"
}

verb=setup
case ${1:-} in
  '' | --*) ;;
  -h) verb=help ;;
  *)
    verb=$1
    shift
    ;;
esac
# But mlxgrad parity has a help of its own.
case $verb:${1:-} in
  parity:*) ;;
  *:-h | *:--help) verb=help ;;
esac

# Paths in flags are relative to where the user is, so only what takes Go packages
# changes to the root.
case $verb in
  setup)
    setup "$@"
    ;;
  install)
    setup
    finish "$programs/setup" "$third" install "$@"
    ;;
  package)
    setup
    finish "$programs/setup" "$third" package "$@"
    ;;
  release)
    setup
    finish "$programs/setup" "$third" release "$@"
    ;;
  parity)
    setup
    go build -C "$root" -buildvcs=false -o "$programs/mlxgrad" ./cmd/mlxgrad
    finish "$programs/mlxgrad" parity "$@"
    ;;
  test)
    setup
    need_clang
    go_test "$@"
    ;;
  test-long)
    setup
    need_clang
    test_long "$@"
    ;;
  bench)
    setup
    if [ "${1:-}" = overhead ]; then set -- ./mlxc/internal/overhead "${@:2}"; fi
    go_test -run='^$' -bench=. "$@"
    ;;
  lint)
    takes_nothing "$@"
    setup
    cd "$root"
    # All run, so that one call shows every problem.
    failed=0
    go vet $tags ./... || failed=1
    unformatted=$(go tool -modfile=tools/go.mod gofumpt -l .) || failed=1
    if [ -n "$unformatted" ]; then
      echo "not formatted by gofumpt: $unformatted" >&2
      failed=1
    fi
    unformatted=$(clang_format) || failed=1
    if [ -n "$unformatted" ]; then
      echo "not formatted by clang-format:" $unformatted >&2
      failed=1
    fi
    go tool -modfile=tools/go.mod golangci-lint run --build-tags mlxheaders ./... || failed=1
    # Without shellcheck and pyflakes, which not every machine has.
    go tool -modfile=tools/go.mod actionlint -shellcheck= -pyflakes= .github/workflows/*.yml || failed=1
    exit $failed
    ;;
  clean)
    takes_nothing "$@"
    rm -rf "$third"/{downloads,src,build,install,install.mlxgrad-old} "$third"/install.tmp-*
    ;;
  help)
    usage
    ;;
  *)
    usage >&2
    die "there is no such verb: see above"
    ;;
esac

#!/usr/bin/env bash
# The entry point of this repository: installs MLX and mlx-c, then runs a verb. ./build.sh help lists the verbs.
set -euo pipefail

unset CDPATH # with it, cd may print a path and search other folders
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

  setup   download and build the pinned MLX and mlx-c (the default verb)
            --backend cpu|cuda13|cuda12|metal   also MLXGRAD_BACKEND; default: cpu, on macOS metal
            --mlx VERSION       use this MLX of third_party/mlx-c/lock.json; also MLXGRAD_MLX;
                                "default": the newest tested one
            --mlx-dir DIR       use the MLX in DIR (include/mlx, lib/libmlx); also MLX_DIR,
                                e.g. MLX_DIR=$(brew --prefix mlx)
            --mlx-c-source SRC  use these mlx-c sources (folder or archive); also MLX_C_SOURCE
          The choice stays until another is made or clean is run. CXX names the compiler.
            --offline DIR       take the downloads from DIR
            --asan              also build the library for programs of go build -asan
  install --prefix DIR
          copy MLX to DIR/lib/mlxgrad, for programs that run with
          MLXGRAD_LIB=DIR/lib/mlxgrad/lib
  release [VERSION]
          make the files of a release in the folder release, see RELEASING.md; without VERSION
          make a snapshot
  package DIR
          make a folder for a machine without Go and network: the command, tests, the example lm,
          libraries, and run.sh, which runs parity, tests and benchmarks
  parity  compare gradients with MLX's and a float64 oracle, in a sample of the cases;
            --full runs every case, --rows prints every row; flags go to mlxgrad parity
  test    run all tests, the slowest with a sample of their cases; flags and packages go to go test
  test-long [PART...]
          run the cases that test leaves out, in parts: setup (MLX's package for macOS), tests
          (all cases, dtypes and schedules), cuda (all CUDA kernels by NVRTC, which it downloads;
          x86-64 only), parity (every case), each file name in
          customkernels/shaders (its mutants), and clang (all cases of kernel tests with
          clang++). Without a PART it runs all parts, for hours. It reports each part and
          continues after a failure. Go's test cache skips parts, except parity, that passed
          since the last change
  bench   run all benchmarks; flags and packages go to go test
          bench overhead: compare the call overhead of mlxc, C, and Python's MLX if installed
  upgrade VERSION
          compare a release of MLX, or newest, with the pinned one: changed C++ headers and
          their users, patch rules, compiler errors, packages, and the decisions for a person; see
          docs/upgrading.md. It downloads the release for every backend and changes nothing else
            --from VERSION    compare with this version of the lock file
            --write           add the release to the lock file
            --markdown FILE   also write the report as Markdown
  lint    run golangci-lint, gofumpt, clang-format, go vet, and actionlint
  docs    build the site of docs/ in the folder site; needs Python with pip
  clean   remove all downloads and build outputs
  help    print this text

Every verb except docs, clean and help runs setup first, which does nothing if MLX is set up.
EOF
}

die() {
  echo "mlxgrad $verb: $*" >&2
  exit 1
}

# takes_nothing refuses arguments of a verb that takes none: clean --dry-run must not clean.
takes_nothing() {
  [ $# = 0 ] || die "unexpected argument $1: the verb takes none; see ./build.sh help"
}

# programs is the folder of the programs that this script builds. In a read-only checkout it is temporary.
programs=$third/build
programs_folder() {
  if ! mkdir -p "$programs" 2>/dev/null || ! [ -w "$programs" ]; then
    programs=$(mktemp -d "${TMPDIR:-/tmp}/mlxgrad-XXXXXX")
    trap 'rm -rf "$programs"' EXIT
  fi
}

# finish runs the last program, and removes a temporary folder after it.
finish() {
  if [ "$programs" = "$third/build" ]; then exec "$@"; fi
  "$@"
  exit
}

setup() {
  command -v go >/dev/null || die "go is not on the PATH: install Go 1.26 or later"
  programs_folder
  # "go run" would add a line to every error. Without -buildvcs=false, Go would run git, which refuses the checkout of
  # another user, as in containers.
  local out
  if ! out=$(go build -C "$root" -buildvcs=false -o "$programs/setup" ./internal/setup/cmd 2>&1); then
    case $out in
      *"$third/build"*"permission denied"* | *"$third/build"*"read-only file system"*) die "$third/build cannot be written: make third_party/mlx-c writable, or use a checkout of your own" ;;
      *"no space left on device"*) die "the disk is full: free some 200 MB and run ./build.sh setup again" ;;
      *) die "the set-up program does not compile: see Go's message below"$'\n'"$out" ;;
    esac
  fi
  "$programs/setup" "$third" "$@"
  cuda_headers
}

# cuda_headers sets CUDA_HOME to the headers against which MLX compiles CUDA kernels at run time.
cuda_headers() {
  [ -z "${CUDA_HOME:-}${CUDA_PATH:-}" ] || return 0
  local dir
  for dir in "$install/nvidia/cu13" "$install/nvidia/cuda_runtime"; do
    if [ -d "$dir/include" ]; then export CUDA_HOME=$dir; fi
  done
}

# need_clang sets clangxx to the name of clang++, with which tests check the address spaces of Metal sources.
need_clang() {
  local name
  for name in clang++ clang++-{22..14}; do
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
  # A source archive has no .git, so this uses find. Generated files and the files of testdata stay as they are.
  find customkernels mlxc third_party/mlx-c/patches \( -name testdata -o -name 'gen_*' \) -prune -o -type f \
    \( -name '*.h' -o -name '*.c' -o -name '*.cpp' -o -name '*.metal' \) -print |
    while read -r file; do
      PYTHONPATH=$dir/$version "$dir/$version/bin/clang-format" --assume-filename=x.cpp <"$file" | cmp -s - "$file" || echo "$file"
    done
}

# build_docs builds the site of docs/ with the pinned generator. A broken link or anchor fails the build.
build_docs() {
  local lock=$root/tools/docs/requirements.txt dir
  programs_folder
  dir=$programs/docs-$(cksum <"$lock" | tr ' ' -)
  if ! [ -d "$dir" ]; then
    rm -rf "$programs"/docs-*
    python3 -m pip install --quiet --require-hashes --only-binary=:all: --disable-pip-version-check \
      --root-user-action=ignore --target "$dir.tmp" -r "$lock" || return 1
    mv "$dir.tmp" "$dir"
  fi
  cd "$root"
  PYTHONPATH=$dir python3 -m zensical build --clean --strict
}

# tags includes the tests that need MLX's headers, which setup installs.
tags=-tags=mlxheaders

# go_test runs go test on the packages among its arguments, or on all packages if there are none. A package begins with
# ./ or github.com/. ./build.sh lint runs go vet. Without debugging information, linking takes less time. Many tests
# run one thread or wait for one compiler, so one package more than there are cores runs at a time.
go_test() {
  cd "$root"
  local arg packages
  packages=$((1 + $(getconf _NPROCESSORS_ONLN)))
  for arg in "$@"; do
    case $arg in
      ./* | github.com/*) finish go test $tags -p $packages -vet=off -ldflags=-w -timeout 40m "$@" ;;
    esac
  done
  # ops takes longest, so it starts first.
  finish go test $tags -p $packages -vet=off -ldflags=-w -timeout 40m ./ops ./... "$@"
}

# part runs one part of test-long and notes its failure in failed.
part() {
  echo "== $*"
  local start=$SECONDS result=passed
  "$@" || { result=FAILED; failed+=("$*"); }
  echo "== $result in $((SECONDS - start)) s: $*"
}

full_parity() {
  go build -C "$root" -buildvcs=false -o "$programs/mlxgrad" ./cmd/mlxgrad && "$programs/mlxgrad" parity --full
}

# test_cuda compiles all CUDA kernels with the pinned NVRTC, which needs no GPU.
test_cuda() {
  local dir=$third/build/nvrtc
  if ! [ -d "$dir" ]; then
    rm -rf "$dir.tmp"
    python3 -m pip install --quiet --no-deps --require-hashes --only-binary=:all: --disable-pip-version-check \
      --root-user-action=ignore --target "$dir.tmp" -r tools/nvrtc/requirements.txt || return 1
    mv "$dir.tmp" "$dir"
  fi
  MLXGRAD_REQUIRE="${MLXGRAD_REQUIRE:+$MLXGRAD_REQUIRE,}nvrtc" go test -timeout 2h ./customkernels/internal/nvrtc
}

# test_long runs the named parts, or all, each in a separate process. Go caches the results of passed parts, so a
# repeated run skips them.
test_long() {
  cd "$root"
  local packages name parts shaders=customkernels/shaders
  parts=(setup tests cuda parity $(ls $shaders) clang)
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
      # Go's test cache does not see the sources of the programs that these tests run.
      setup) part go test -timeout 2h -count=1 ./internal/setup ;;
      # shellcheck disable=SC2086 # a list of packages
      tests) part go test $tags -timeout 6h -skip '^TestMutationsAreNoticed$' $packages ;;
      cuda) part test_cuda ;;
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
# mlxgrad parity prints its own help.
case $verb:${1:-} in
  parity:*) ;;
  *:-h | *:--help) verb=help ;;
esac

# Paths in flags are relative to the user's folder, so only verbs that take Go packages change to the root.
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
  upgrade)
    setup
    need_clang
    go build -C "$root" -buildvcs=false -o "$programs/upgrade" ./internal/upgrade/cmd
    finish "$programs/upgrade" "$third" "$@"
    ;;
  lint)
    takes_nothing "$@"
    setup
    cd "$root"
    # All checks run, so that one call shows every problem.
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
    go vet -C tools ./... || failed=1
    go vet -C gomlx ./... || failed=1
    go vet -C examples/llama ./... || failed=1
    go tool -modfile=tools/go.mod golangci-lint run --build-tags mlxheaders ./... || failed=1
    (cd gomlx && go tool -modfile=../tools/go.mod golangci-lint run ./...) || failed=1
    (cd examples/llama && go tool -modfile=../../tools/go.mod golangci-lint run ./...) || failed=1
    # Not every machine has shellcheck and pyflakes.
    go tool -modfile=tools/go.mod actionlint -shellcheck= -pyflakes= .github/workflows/*.yml || failed=1
    exit $failed
    ;;
  docs)
    takes_nothing "$@"
    build_docs
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
    die "unknown verb: see above"
    ;;
esac

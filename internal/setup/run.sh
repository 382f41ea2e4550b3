#!/bin/sh
# Runs the programs and tests that ./build.sh package put beside this file, on a machine without Go and network.
set -eu

unset CDPATH # with it, cd may print a path and search other folders
packages='mlxc mlxc/distributed mlxc/mlxio mlxc/internal/valuetest customkernels ops ops/sharded compare compare/suite compare/bench'
here=$(cd "$(dirname "$0")" && pwd)
install=$here/third_party/mlx-c/install

usage() {
  cat <<'TEXT'
usage: run.sh VERB [flags]

  all                       parity, then test, then bench; fails if one did
  test [PACKAGE] [-gpu] [-test.*]
                            run the tests of one package, such as ops, or of all packages;
                            -gpu: run only the tests that are registered for a GPU; each must run
  parity, bench, doctor, ...
                            run this command of mlxgrad; run.sh --help lists the commands

run.sh uses the CUDA headers of CUDA_HOME, or of NVIDIA's Python packages beside MLX or in
python3's path, or of /usr/local/cuda, in this order.
TEXT
}

# nvidia prints the folders of NVIDIA's Python packages.
nvidia() {
  [ ! -d "$install/nvidia" ] || echo "$install/nvidia"
  if command -v python3 >/dev/null; then
    python3 -c 'import nvidia; print(*nvidia.__path__, sep="\n")' 2>/dev/null || :
  fi
}

export MLXGRAD_LIB="$install/lib"
libraries=$install/mlx/lib
if [ -e "$install/mlx/lib/libmlx.dylib" ]; then
  export DYLD_LIBRARY_PATH="$libraries${DYLD_LIBRARY_PATH:+:$DYLD_LIBRARY_PATH}"
else
  folders=$(nvidia)
  old=$IFS
  IFS='
'
  for folder in $folders; do
    for lib in "$folder"/*/lib; do
      if [ -d "$lib" ]; then libraries=$libraries:$lib; fi
    done
    for home in "$folder"/cu13 "$folder"/cuda_runtime; do
      if [ -z "${CUDA_HOME:-}${CUDA_PATH:-}" ] && [ -e "$home/include/cuda_runtime.h" ]; then
        export CUDA_HOME="$home"
      fi
    done
  done
  IFS=$old
  if [ -z "${CUDA_HOME:-}${CUDA_PATH:-}" ] && [ -e /usr/local/cuda/include/cuda_runtime.h ]; then
    export CUDA_HOME=/usr/local/cuda
  fi
  export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
fi

# run_tests PACKAGE [flags] runs the tests of one package in its folder, as go test does.
run_tests() {
  echo "== $1"
  (
    cd "$here/$1"
    name=./${1##*/}.test
    shift
    exec "$name" "$@"
  )
}

run_all_tests() {
  failed=0
  for package in $packages; do
    run_tests "$package" "$@" || failed=1
  done
  return $failed
}

case ${1:-} in
  '') usage ;;
  test)
    shift
    case ${1:-} in
      '' | -*) run_all_tests "$@" ;;
      *)
        if [ ! -e "$here/$1/${1##*/}.test" ]; then
          echo "run.sh: $1 is not a package; the packages are: $packages" >&2
          exit 2
        fi
        run_tests "$@"
        ;;
    esac
    ;;
  all)
    failed=0
    "$here/mlxgrad" parity --full || failed=1
    run_all_tests || failed=1
    "$here/mlxgrad" bench || failed=1
    exit $failed
    ;;
  *) exec "$here/mlxgrad" "$@" ;;
esac

#!/bin/sh
# Runs what ./build.sh package put beside this file, on a machine without Go and network.
set -eu

unset CDPATH # With it, cd may print where it went, and go elsewhere.
here=$(cd "$(dirname "$0")" && pwd)
install=$here/third_party/mlx-c/install

usage() {
  cat <<'TEXT'
usage: run.sh VERB [flags]

  all                       parity, then test, then bench; fails if one did
  test [PACKAGE] [-gpu] [-test.*]
                            the tests of one package or of all: mlxc, customkernels, ops, compare;
                            -gpu: only the tests registered for a GPU, of which each must run
  parity, bench, doctor, version and the others: as mlxgrad has them; "run.sh --help" lists them

CUDA's headers are looked for in CUDA_HOME, else in NVIDIA's Python packages beside MLX or
of python3, else in /usr/local/cuda.
TEXT
}

# nvidia lists the folders that hold NVIDIA's Python packages.
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
    name=./$1.test
    shift
    exec "$name" "$@"
  )
}

run_all_tests() {
  failed=0
  for package in mlxc customkernels ops compare; do
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
        if [ ! -e "$here/$1/$1.test" ]; then
          echo "run.sh: there are no tests of $1 here" >&2
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

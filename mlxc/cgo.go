package mlxc

// Every cgo flag of the package is here. The paths are those that build.sh
// fills; `./build.sh env` prints flags for libraries elsewhere. With the tag
// mlxc_pkgconfig the libraries are those that pkg-config knows, which `./build.sh
// install` tells it.

/*
#cgo CXXFLAGS: -std=c++20 -O2
#cgo mlxc_pkgconfig pkg-config: mlxgrad-mlxc
#cgo !mlxc_pkgconfig CFLAGS: -I${SRCDIR}/../third_party/mlx-c/install/include
#cgo !mlxc_pkgconfig CXXFLAGS: -I${SRCDIR}/../third_party/mlx-c/install/include -I${SRCDIR}/../third_party/mlx-c/install/mlx/include
#cgo !mlxc_pkgconfig LDFLAGS: -L${SRCDIR}/../third_party/mlx-c/install/lib -L${SRCDIR}/../third_party/mlx-c/install/mlx/lib -lmlxc -lmlx
#cgo !mlxc_pkgconfig LDFLAGS: -Wl,-rpath,${SRCDIR}/../third_party/mlx-c/install/lib -Wl,-rpath,${SRCDIR}/../third_party/mlx-c/install/mlx/lib

// The hot calls that get the address of Go memory, which none keeps: with both words, and
// only with both, cgo leaves it on the stack. Calls that get numbers only have nothing to
// gain from them: nocallback costs some nanoseconds.
#cgo noescape mlxg_array_new
#cgo nocallback mlxg_array_new
#cgo noescape mlxg_array_free
#cgo nocallback mlxg_array_free
#cgo noescape mlxg_return
#cgo nocallback mlxg_return
#cgo noescape mlxg_kernel_apply
#cgo nocallback mlxg_kernel_apply
#cgo noescape mlxg_take_released
#cgo nocallback mlxg_take_released

#include "mlxg.h"
*/
import "C"

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

// The hot calls, of which none keeps a pointer: cgo then moves no arguments to the heap.
// (None calls Go either, but to say so, with nocallback, costs some nanoseconds a call:
// the runtime sees to it that it is true.)
#cgo noescape mlxg_array_info
#cgo noescape mlxg_array_new
#cgo noescape mlxg_array_free
#cgo noescape mlxg_swap_scope
#cgo noescape mlxg_take_released

#include "mlxg.h"
*/
import "C"

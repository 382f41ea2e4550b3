package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
)

// initError is why the library cannot be used; every operation returns it.
var initError error

func init() {
	if e := C.mlxg_init(); e != nil {
		initError = fmt.Errorf("MLX could not be started: %w", takeText(e))
		return
	}
	v := versions()
	// MLX's C++ interface has no stable binary form: other headers than the
	// library's would misread its objects.
	if v.mlx != v.headers {
		initError = fmt.Errorf("the loaded MLX is %s, but this program was compiled against %s: "+
			"run ./build.sh setup, and check the library search path", v.mlx, v.headers)
		return
	}
	if v.mlxc == "" {
		initError = errors.New("the loaded mlx-c is not one that ./build.sh made: its error messages are used " +
			"as printf formats and could crash the program; run ./build.sh setup, and check the library search path")
	}
}

type versionSet struct{ mlx, headers, mlxc string }

func versions() versionSet {
	var mlx, headers, mlxc *C.char
	C.mlxg_versions(&mlx, &headers, &mlxc)
	return versionSet{C.GoString(mlx), C.GoString(headers), C.GoString(mlxc)}
}

// Version returns the version of the loaded MLX, such as "0.32.2".
func Version() string { return versions().mlx }

// CVersion returns the version of the loaded mlx-c, such as "0.7.0".
func CVersion() string { return versions().mlxc }

// Check returns nil if the loaded MLX and mlx-c can be used, else why not. Every
// operation gives the same error.
func Check() error { return initError }

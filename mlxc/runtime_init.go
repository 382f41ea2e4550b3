package mlxc

// #include "load.h"
import "C"

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/mlxgrad/mlxgrad/internal/library"
)

func init() {
	for _, path := range library.Places() {
		C.mlxg_library_place(C.CString(path)) // for the life of the process
	}
	C.mlxg_library_remedy(C.CString(library.Remedy()))
	library.Symbol = symbol
}

// symbol implements [library.Symbol].
func symbol(name string) (unsafe.Pointer, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	if p := C.mlxg_library_symbol(n); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("libmlxg has no function %s", name)
}

// Check loads MLX, if no operation has before, and returns nil if it can be used, else why not. Every
// operation gives the same error.
//
// If the library is missing, cannot be loaded, or is of another version, the next operation tries again. A
// program may thus set MLX up after its start. The places where the library is looked for are decided at
// the start. If MLX was loaded and could not be started, the error stays. Arrays and other values that a
// failed operation returned keep its error. After Shutdown it returns ErrShutdown.
func Check() error {
	if life.Load() == lifeUsable {
		return nil
	}
	if life.Load() == lifeEnded {
		return ErrShutdown
	}
	if !bool(C.mlxg_library_load()) {
		return takeText(C.mlxg_library_error())
	}
	life.CompareAndSwap(lifeUnloaded, lifeUsable)
	return nil
}

// life is one of the constants below.
var life atomic.Int32

const (
	lifeUnloaded = iota // MLX was not loaded, or could not be
	lifeUsable
	lifeEnded // Shutdown was called
)

// Version returns the version of the loaded MLX, such as "0.32.2".
// It is empty where libmlxg cannot be loaded.
func Version() string { return C.GoString(C.mlxg_versions().mlx) }

// CVersion returns the version of the loaded mlx-c, such as "0.7.0".
// It is empty where libmlxg cannot be loaded.
func CVersion() string { return C.GoString(C.mlxg_versions().mlxc) }

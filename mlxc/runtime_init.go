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
		C.mlxg_library_place(C.CString(path)) // never freed
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

// Check loads MLX on first use. It returns nil if MLX can be used, else the reason. Every operation returns the same
// error.
//
// If the library is missing, cannot be loaded, or has another version, the next operation tries again, so a program may
// set MLX up after its start. The places where the library is searched are fixed at program start. If MLX was loaded
// but could not be started, the error is final. Arrays returned by a failed operation keep its error. After Shutdown,
// Check returns ErrShutdown.
func Check() error {
	if life.Load() == lifeUsable {
		return nil
	}
	if life.Load() == lifeEnded {
		return ErrShutdown
	}
	if !bool(C.mlxg_library_load()) {
		return takeError(C.mlxg_library_error())
	}
	life.CompareAndSwap(lifeUnloaded, lifeUsable)
	return nil
}

// life is the state of the library: one of the constants below.
var life atomic.Int32

const (
	lifeUnloaded = iota // not loaded yet, or loading failed
	lifeUsable
	lifeEnded // after Shutdown
)

// Version returns the version of the loaded MLX, such as "0.32.4". It is empty if libmlxg cannot be loaded.
func Version() string { return C.GoString(C.mlxg_versions().mlx) }

// CVersion returns the version of the loaded mlx-c, such as "0.7.0". It is empty if libmlxg cannot be loaded.
func CVersion() string { return C.GoString(C.mlxg_versions().mlxc) }

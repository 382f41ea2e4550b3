package mlxc

// #include "load.h"
import "C"

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/mlxgrad/mlxgrad/internal/library"
)

func init() {
	for _, path := range library.Places() {
		C.mlxg_library_place(C.CString(path)) // for the life of the process
	}
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
func Check() error {
	if err := checked.Load(); err != nil {
		return *err
	}
	var err error
	if !bool(C.mlxg_library_load()) {
		err = errors.New(takeString(C.mlxg_library_error()))
	}
	checked.Store(&err)
	return err
}

// checked is the outcome of Check.
var checked atomic.Pointer[error]

// Version returns the version of the loaded MLX, such as "0.32.2".
// It is empty where libmlxg cannot be loaded.
func Version() string { return C.GoString(C.mlxg_versions().mlx) }

// CVersion returns the version of the loaded mlx-c, such as "0.7.0".
// It is empty where libmlxg cannot be loaded.
func CVersion() string { return C.GoString(C.mlxg_versions().mlxc) }

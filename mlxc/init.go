package mlxc

// #include "load.h"
import "C"

import (
	"errors"
	"sync/atomic"

	"github.com/mlxgrad/mlxgrad/internal/library"
)

func init() {
	for _, path := range library.Places() {
		C.mlxg_library_place(C.CString(path)) // for the life of the process
	}
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

// versionSet is what the libraries say of themselves.
type versionSet struct {
	mlx     string // the loaded MLX
	headers string // the MLX that libmlxg was compiled for
	mlxc    string // the loaded mlx-c, "" if build.sh did not make it
	against string // the MLX that the loaded mlx-c was compiled for, "" likewise
	probe   string // what the symbols of the loaded mlx-c tell of its version
}

func versions() versionSet {
	v := C.mlxg_versions()
	return versionSet{C.GoString(v.mlx), C.GoString(v.headers), C.GoString(v.mlxc), C.GoString(v.against), C.GoString(v.probe)}
}

// Version returns the version of the loaded MLX, such as "0.32.2".
// It is empty where libmlxg cannot be loaded.
func Version() string { return versions().mlx }

// CVersion returns the version of the loaded mlx-c, such as "0.7.0".
// It is empty where libmlxg cannot be loaded.
func CVersion() string { return versions().mlxc }

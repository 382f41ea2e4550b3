package mlxc

// #include "mlxg.h"
import "C"

import "fmt"

// pinnedC is the mlx-c that this package is written for, as in lock.json: mlx-c's headers
// do not say which they are of.
const pinnedC = "0.7.0"

// initError is why the library cannot be used; every operation returns it.
var initError error

func init() {
	// First, and with functions that every mlx-c has: the loader finds out that another is
	// lacking when it is called, and ends the process.
	if initError = versions().check(); initError != nil {
		return
	}
	if e := C.mlxg_init(); e != nil {
		initError = fmt.Errorf("MLX could not be started: %w", takeText(e))
	}
}

// versionSet is what the libraries say of themselves.
type versionSet struct {
	mlx     string // the loaded MLX
	headers string // the MLX that this program was compiled for
	mlxc    string // the loaded mlx-c, "" if build.sh did not make it
	against string // the MLX that the loaded mlx-c was compiled for, "" likewise
	probe   string // what the symbols of the loaded mlx-c tell of its version
}

func versions() versionSet {
	v := C.mlxg_versions()
	return versionSet{C.GoString(v.mlx), C.GoString(v.headers), C.GoString(v.mlxc), C.GoString(v.against), C.GoString(v.probe)}
}

// check returns nil if the loaded libraries are the pair that this package is for. MLX's
// C++ interface has no stable binary form: other headers than the library's misread its
// objects.
func (v versionSet) check() error {
	const remedy = "run ./build.sh setup, build the program again, and check the library search path"
	loaded := "mlx-c " + v.mlxc
	var why string
	switch {
	case v.mlxc == "":
		loaded = "an mlx-c that build.sh did not make (" + v.probe + ", by its symbols)"
		// Whatever its version: what build.sh patches would end the process.
		why = "; such an mlx-c uses MLX's error messages as printf formats"
	case v.mlx == v.headers && v.mlxc == pinnedC && v.against == v.mlx:
		return nil
	case v.against != v.mlx:
		loaded += " (made for MLX " + v.against + ")"
	}
	return fmt.Errorf("MLX %s and %s are loaded, but this program was compiled for MLX %s and mlx-c %s%s: %s",
		v.mlx, loaded, v.headers, pinnedC, why, remedy)
}

// Version returns the version of the loaded MLX, such as "0.32.2".
func Version() string { return versions().mlx }

// CVersion returns the version of the loaded mlx-c, such as "0.7.0".
func CVersion() string { return versions().mlxc }

// Check returns nil if the loaded MLX and mlx-c can be used, else why not. Every
// operation gives the same error.
func Check() error { return initError }

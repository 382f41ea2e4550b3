// Package library knows where libmlxg is, the shared library with all of the project's C++, which
// ./build.sh setup builds beside MLX.
package library

import (
	"os"
	"path/filepath"
	"runtime"
	"unsafe"
)

// Variable is the environment variable that names the library, or the folder that it is in.
const Variable = "MLXGRAD_LIB"

// name is the library's file name.
func name() string {
	if runtime.GOOS == "darwin" {
		return "libmlxg" + flavor + ".dylib"
	}
	return "libmlxg" + flavor + ".so"
}

// Places returns the files that may be the library, in the order in which they are tried. If MLXGRAD_LIB
// is set, it names the only one. Otherwise the first is beside the program, and the second is in the folder
// of mlxgrad's sources, where ./build.sh setup puts it. A program that was built with -trimpath does not
// know that folder.
func Places() []string {
	if path := os.Getenv(Variable); path != "" {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path = filepath.Join(path, name())
		}
		return []string{path}
	}
	var places []string
	if exe, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(exe); err == nil {
			exe = real
		}
		places = append(places, filepath.Join(filepath.Dir(exe), name()))
	}
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) { // not if built with -trimpath
		root := filepath.Dir(filepath.Dir(filepath.Dir(file)))
		places = append(places, filepath.Join(root, "third_party", "mlx-c", "install", "lib", name()))
	}
	return places
}

// Symbol returns the address of a function of the library, which it loads if it is not loaded. Package
// mlxc, which loads the library, sets it.
var Symbol func(name string) (unsafe.Pointer, error)

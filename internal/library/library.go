// Package library finds libmlxg, the shared library with all of the project's C++, which ./build.sh setup builds
// beside MLX.
package library

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
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
// is set, it names the only one. Otherwise the first is beside the program, the second is in the folder
// of mlxgrad's sources, where ./build.sh setup puts it, and the last is in [UserFolder]. A program that was built
// with -trimpath does not know the folder of the sources.
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
	if root := sources(); root != "" {
		places = append(places, filepath.Join(root, "third_party", "mlx-c", "install", "lib", name()))
	}
	if folder, err := UserFolder(); err == nil {
		places = append(places, filepath.Join(folder, Interface, "install", "lib", name()))
	}
	return places
}

// UserFolder returns the folder in which the command mlxgrad setup installs. It has a folder for each [Interface], so
// that programs of several versions of mlxgrad run side by side. It is the folder mlxgrad in the user's data folder:
// ~/Library/Application Support on macOS, else $XDG_DATA_HOME, by default ~/.local/share.
func UserFolder() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) && runtime.GOOS != "darwin" {
		return filepath.Join(dir, "mlxgrad"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("the user's data folder is not known: %w", err)
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "mlxgrad"), nil
	}
	return filepath.Join(home, ".local", "share", "mlxgrad"), nil
}

// sources returns the folder of mlxgrad's sources, or "" if the program was built with -trimpath.
func sources() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(file) {
		return ""
	}
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// module is the path of mlxgrad's module.
const module = "github.com/mlxgrad/mlxgrad"

// Remedy returns the end of an error message about a missing or unsuitable library: the command that sets
// MLX up. In a checkout of mlxgrad it is ./build.sh setup. Elsewhere it is mlxgrad's own command, in the
// version that the program was built with.
func Remedy() string {
	info, _ := debug.ReadBuildInfo()
	return remedy(sources(), info)
}

// remedy is Remedy for a folder of sources, "" if unknown, and a program's build information, nil if unknown.
func remedy(root string, info *debug.BuildInfo) string {
	if root != "" {
		if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
			return "run ./build.sh setup"
		}
	}
	return "run go run " + module + "/cmd/mlxgrad@" + version(info) + " setup"
}

// version returns the version of mlxgrad's module, or "latest" if the program was built from sources that
// have no version.
func version(info *debug.BuildInfo) string {
	if info == nil {
		return "latest"
	}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path != module {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Path == module && m.Version != "" && m.Version != "(devel)" && !strings.HasSuffix(m.Version, "+dirty") {
			return m.Version
		}
	}
	return "latest"
}

// Symbol returns the address of a function of the library. The first call loads the library. It returns an error if the
// library cannot be used or lacks the function. Package mlxc sets Symbol in its init function.
var Symbol func(name string) (unsafe.Pointer, error)

package setup

import (
	"context"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// libmlxgFolder is the folder of libmlxg's sources in the compiled tree.
const libmlxgFolder = "libmlxg/"

// libmlxgSources are the patterns of libmlxg's sources in the repository.
var libmlxgSources = []string{
	"mlxc/*.h", "mlxc/libmlxg/*.h", "mlxc/libmlxg/*.cpp",
	"customkernels/internal/executor/*.h", "customkernels/internal/metalstd/host/mlxg_*.h",
}

// addLibmlxg adds the sources of libmlxg to the tree.
func (t sourceTree) addLibmlxg(sources fs.FS) error {
	files, err := readFiles(sources, libmlxgSources...)
	for name, data := range files {
		t[libmlxgFolder+path.Base(name)] = data
	}
	return err
}

// asanFlags instrument libmlxg for programs that are built with go build -asan.
var asanFlags = []string{"-fsanitize=address", "-g1"}

// libmlxg compiles libmlxg and links it in the folder lib, beside libmlxc.
func (b *build) libmlxg(ctx context.Context, lib string, asan bool) error {
	name := "mlxg"
	if asan {
		b.extra, name = asanFlags, "mlxg-asan"
		defer func() { b.extra = nil }()
	}
	objects, err := b.compile(ctx, b.tree.parts("libmlxg"))
	if err != nil {
		return err
	}
	args := append(b.tools.linkFlags(name), b.extra...)
	if b.tools.goos == "darwin" {
		args = append(args, "-Wl,-rpath,@loader_path")
	} else {
		// cgo gives programs functions with the names of the library's (gen_table.c). Local symbols keep the library's
		// calls inside the library. macOS does that by itself (two-level namespaces).
		script := filepath.Join(b.tmp, "exported")
		if err := os.WriteFile(script, []byte("{ global: mlxg_functions; mlxg_host_*; local: *; };\n"),
			0o644); err != nil {
			return err
		}
		args = append(args, "-Wl,-rpath,$ORIGIN", "-Xlinker", "--version-script="+script)
		if asan { // the program brings the sanitizer
			args = slices.DeleteFunc(args, func(a string) bool { return a == "-Wl,-z,defs" })
		}
	}
	args = append(args, "-o", filepath.Join(lib, b.tools.library(name)))
	args = append(args, objects...)
	args = append(args, "-L"+lib, "-lmlxc", "-L"+filepath.Join(b.mlx, "lib"), "-lmlx")
	if b.tools.goos != "darwin" {
		args = append(args, "-ldl", "-lpthread")
	}
	if out, err := b.tools.run(ctx, b.treeDir, b.tmp, args...); err != nil {
		return b.toolFailure(ctx, "linking libmlxg", out, err)
	}
	return nil
}

package setup

import (
	"debug/macho"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// zigs are the wheels of Zig, a C++ compiler that has macOS' headers.
var zigs = map[string]wheel{
	"linux/amd64": {
		Package: "ziglang", Version: "0.16.0", Platform: "manylinux_2_12_x86_64",
		File: "ziglang-0.16.0-py3-none-manylinux_2_12_x86_64.manylinux2010_x86_64.musllinux_1_1_x86_64.whl",
		Size: 97941847, SHA256: "9fcda73f62b851dd72a54b710ad40a209896db14cfb13649e62191243556342b",
	},
}

// What is not Zig's, because it is Apple's: Go's runtime links against it.
var stubs = map[string]string{
	"libresolv.tbd": "/usr/lib/libresolv.9.dylib",
	"CoreFoundation.framework/CoreFoundation.tbd": "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/CoreFoundation",
	"Security.framework/Security.tbd":             "/System/Library/Frameworks/Security.framework/Versions/A/Security",
}

const stub = "--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-macos ]\ninstall-name: '%s'\n...\n"

// On a machine without a Mac: MLX's package for macOS is brought, mlx-c and libmlxg are compiled
// against it, every package of this module and its tests are checked for macOS, C included, the
// command is linked, and what libmlxg wants of MLX and mlx-c is there. Nothing of it runs.
func TestBuildForMacOS(t *testing.T) {
	long.Only(t, "downloads 140 MB and compiles everything")
	host := runtime.GOOS + "/" + runtime.GOARCH
	zig, ok := zigs[host]
	if !ok {
		skip.Missing(t, skip.Zig, "there is no Zig in the list for "+host)
	}
	root, err := filepath.Abs("../../third_party/mlx-c")
	require.NoError(t, err)
	dir := t.TempDir()
	s, err := newSetup(root, repository, newPrinter(t.Output(), "setup").print)
	require.NoError(t, err)
	s.tmp = filepath.Join(dir, "tmp")
	unlock, readOnly, err := s.exclusive(t.Context())
	require.NoError(t, err)
	t.Cleanup(unlock)
	require.NoError(t, readOnly)
	stage := filepath.Join(dir, "install")
	for _, folder := range []string{s.tmp, stage} {
		require.NoError(t, os.Mkdir(folder, 0o755))
	}

	// Kept, like the objects that it makes, since its path is part of their key.
	compiler := s.path("build", "zig-"+zig.Version)
	if _, err := os.Stat(compiler); err != nil {
		file, err := s.bring(zig.File, zig.Size, zig.SHA256, func() error { return s.pipDownload(t.Context(), zig) })
		require.NoError(t, err)
		unpacked := filepath.Join(s.path("build"), "zig.tmp")
		require.NoError(t, os.RemoveAll(unpacked))
		require.NoError(t, unzip(file, unpacked))
		require.NoError(t, os.Chmod(filepath.Join(unpacked, "ziglang", "zig"), 0o755))
		require.NoError(t, os.Rename(unpacked, compiler))
	}
	t.Setenv("ZIG_GLOBAL_CACHE_DIR", s.path("build", "zig-cache"))
	t.Setenv("ZIG_LOCAL_CACHE_DIR", s.path("build", "zig-cache"))
	cc := []string{filepath.Join(compiler, "ziglang", "zig"), "cc", "-target", "aarch64-macos.14.0"}
	cxx := append([]string{cc[0], "c++"}, cc[2:]...)

	m := &manifest{Backend: "metal", Platform: "darwin/arm64", Sources: map[string]string{}}
	_, err = s.assemble(t.Context(), &toolchain{command: cxx, version: "zig " + zig.Version, goos: "darwin"}, m, stage)
	require.NoError(t, err)

	library := filepath.Join(dir, "stubs")
	for name, of := range stubs {
		path := filepath.Join(library, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, stub, of), 0o644))
	}
	build := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = s.repository()
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "GOOS=darwin", "GOARCH=arm64",
			"CC="+strings.Join(cc, " "), "CXX="+strings.Join(cxx, " "),
			// Zig does not find symbols in a stub.
			"CGO_LDFLAGS=-L"+library+" -F"+library+" -Wl,-undefined,dynamic_lookup")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %q: %s", args, out)
	}
	build("vet", "./...")
	program := filepath.Join(dir, "mlxgrad")
	// Stripped by the linker, since this platform's strip does not know the format.
	build("build", "-ldflags", "-linkmode=external -s -w", "-o", program, "./cmd/mlxgrad")

	defined := map[string]bool{}
	for _, name := range []string{"lib/libmlxc.dylib", "mlx/lib/libmlx.dylib"} {
		lib, err := macho.Open(filepath.Join(stage, name))
		require.NoError(t, err)
		defer lib.Close()
		for _, s := range lib.Symtab.Syms {
			if s.Sect != 0 {
				defined[s.Name] = true
			}
		}
	}
	file, err := macho.Open(program)
	require.NoError(t, err)
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	require.NoError(t, err)
	require.NotContains(t, strings.Join(libraries, " "), "mlx", "the command loads MLX at run time")

	own, err := macho.Open(filepath.Join(stage, "lib", "libmlxg.dylib"))
	require.NoError(t, err)
	defer own.Close()
	libraries, err = own.ImportedLibraries()
	require.NoError(t, err)
	require.Subset(t, libraries, []string{"@rpath/libmlxc.dylib", "@rpath/libmlx.dylib"})
	wanted, err := own.ImportedSymbols()
	require.NoError(t, err)
	wanted = slices.DeleteFunc(wanted, func(name string) bool { return !strings.Contains(name, "mlx") })
	require.Greater(t, len(wanted), 300)
	for _, name := range wanted {
		require.True(t, defined[name], "%s is neither in mlx-c nor in MLX for macOS", name)
	}
}

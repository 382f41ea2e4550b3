package setup

import (
	"debug/macho"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// Without a Mac: checks every package of this module and its tests for macOS, C included, and links the command. For each
// pair, installs MLX's package for macOS, compiles mlx-c and libmlxg against it, and checks the symbols that libmlxg
// imports from MLX and mlx-c. Nothing runs.
func TestBuildForMacOS(t *testing.T) {
	long.Only(t, "downloads 190 MB and compiles everything")
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
	require.NoError(t, os.Mkdir(s.tmp, 0o755))

	zig, err := s.zig(t.Context())
	require.NoError(t, err)
	if zig == nil {
		skip.Missing(t, skip.Zig, "there is no Zig in the list for "+runtime.GOOS+"/"+runtime.GOARCH)
	}

	build := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = s.repository()
		cmd.Env = append(os.Environ(), zig.goEnv()...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %q: %s", args, out)
	}
	build("vet", "./...")
	program := filepath.Join(dir, "mlxgrad")
	// Stripped by the linker, since this platform's strip cannot read the format.
	build("build", "-ldflags", "-linkmode=external -s -w", "-o", program, "./cmd/mlxgrad")

	file, err := macho.Open(program)
	require.NoError(t, err)
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	require.NoError(t, err)
	require.NotContains(t, strings.Join(libraries, " "), "mlx", "the command loads MLX at run time")

	for _, pair := range s.lock.Pairs {
		t.Run(pair.MLX.Version, func(t *testing.T) {
			require.NoError(t, s.choose(choice{MLX: pair.MLX.Version}))
			stage := t.TempDir()
			m := &manifest{Backend: "metal", Platform: "darwin/arm64", Sources: map[string]string{}}
			require.NoError(t, s.clean("sources"))
			_, err = s.assemble(t.Context(), zig.cxx, m, stage)
			require.NoError(t, err)
			checkSymbols(t, stage)
		})
	}
}

// checkSymbols checks the symbols that the libraries of an installation for macOS import.
func checkSymbols(t *testing.T, stage string) {
	t.Helper()
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
	own, err := macho.Open(filepath.Join(stage, "lib", "libmlxg.dylib"))
	require.NoError(t, err)
	defer own.Close()
	libraries, err := own.ImportedLibraries()
	require.NoError(t, err)
	require.Subset(t, libraries, []string{"@rpath/libmlxc.dylib", "@rpath/libmlx.dylib"})
	wanted, err := own.ImportedSymbols()
	require.NoError(t, err)
	wanted = slices.DeleteFunc(wanted, func(name string) bool { return !strings.Contains(name, "mlx") })
	require.Greater(t, len(wanted), 300)
	for _, name := range wanted {
		require.True(t, defined[name], "%s is neither in mlx-c nor in MLX for macOS", name)
	}

	// Every symbol of the C++ library that libmlxc and libmlxg import exists in macOS 14: libmlx for macOS 14 imports
	// it too, or it is in an older library.
	older := regexp.MustCompile(`^__Z(dlPvm|T?[VI]?(v0_n24_)?NK?St3__1(12bad_weak_ptr|13basic_[io]streamI|15basic_streambufI|5mutex8try_lock|18condition_variable15__do_timed_wait|` +
		`6thread6detach|6chrono12steady_clock3now|9to_stringE|6__sortIRNS_6__lessIiiE|12basic_string.*21__grow_by_and_replaceE))`)
	mlx, err := macho.Open(filepath.Join(stage, "mlx", "lib", "libmlx.dylib"))
	require.NoError(t, err)
	defer mlx.Close()
	provided, err := mlx.ImportedSymbols()
	require.NoError(t, err)
	var unknown []string
	for _, name := range []string{"libmlxc.dylib", "libmlxg.dylib"} {
		library, err := macho.Open(filepath.Join(stage, "lib", name))
		require.NoError(t, err)
		defer library.Close()
		libraries, err := library.ImportedLibraries()
		require.NoError(t, err)
		require.Contains(t, libraries, "/usr/lib/libc++.1.dylib")
		symbols, err := library.ImportedSymbols()
		require.NoError(t, err)
		for _, symbol := range symbols {
			if strings.HasPrefix(symbol, "__Z") && !strings.Contains(symbol, "mlx") &&
				!slices.Contains(provided, symbol) && !older.MatchString(symbol) {
				unknown = append(unknown, symbol)
			}
		}
	}
	require.Empty(t, unknown, "these may be newer than macOS 14")
}

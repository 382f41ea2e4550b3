//go:build linux

package mlxc_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/library"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

const installed = "../third_party/mlx-c/install"

// A program that loads other libraries than it was built for returns a message that says so. The test makes such
// libraries: copies with names and versions replaced by others of the same length.
func TestLoadedLibraries(t *testing.T) {
	testdevice.CPUOnly(t, "starts other processes, which have MLX's backend for CPUs")
	if instrumented {
		skip.Platform(t, "the library of instrumented programs has another name")
	}
	if os.Getenv("MLXC_LOADED_LIBRARIES") != "" {
		first := mlxc.Ones(mlxc.Float32, 2).Err()
		require.Error(t, first)
		require.ErrorContains(t, first, mlxc.Check().Error(), "every operation returns the error of Check")
		require.NotPanics(t, func() { mlxc.WithScope(func() { _ = mlxc.DefaultDevice() }) })
		os.Stdout.WriteString("\nCHECK " + first.Error() + "\n")
		return
	}
	const (
		mlxg, mlxC, mlx = "lib/libmlxg.so", "lib/libmlxc.so", "mlx/lib/libmlx.so"
		other           = "0.32.0" // an MLX as long as the loaded one's version
	)
	pinned := mlxc.Version()
	meant := "but libmlxg was compiled for MLX " + pinned + " and mlx-c 0.7.0"
	text := func(version string) string { return "\x00" + version + "\x00" }
	version := interfaceVersion(t)
	for name, c := range map[string]struct {
		library string
		replace [][2]string // nil: the file is missing
		want    string
	}{
		"no libmlxg":        {mlxg, nil, "MLX is not set up, there is no "},
		"a damaged libmlxg": {mlxg, [][2]string{{"\x7fELF", "\x7fELG"}}, "MLX cannot be loaded: "},
		"another version's": {
			mlxg,
			[][2]string{{version, strings.Repeat("0", len(version))}},
			"libmlxg.so is of another version of mlxgrad than this program: ",
		},
		"no mlx-c": {mlxC, nil, "MLX cannot be loaded: libmlxc.so: "},
		"no MLX":   {mlx, nil, "MLX cannot be loaded: libmlx.so: "},
		"another mlx-c": {
			mlxC,
			[][2]string{{"\x000.7.0\x00", "\x000.7.1\x00"}},
			"MLX " + pinned + " and mlx-c 0.7.1 are loaded, " + meant,
		},
		"an mlx-c for another MLX": {
			mlxC,
			[][2]string{{text(pinned), text(other)}},
			"MLX " + pinned + " and mlx-c 0.7.0 (made for MLX " + other + ") are loaded, " + meant,
		},
		"another MLX": {
			mlx,
			[][2]string{{text(pinned), text(other)}},
			"MLX " + other + " and mlx-c 0.7.0 (made for MLX " + pinned + ") are loaded, " + meant,
		},
		"an mlx-c not from build.sh": {
			mlxC,
			[][2]string{
				{"mlxgrad_mlx_c_version", "mlxgrad_mlx_c_nothing"},
				{"mlxgrad_mlx_c_built_against", "mlxgrad_mlx_c_build_for_who"},
			},
			"an mlx-c that build.sh did not compile (0.7 or later, by its symbols) are loaded, " + meant,
		},
		"an old mlx-c": {mlxC, [][2]string{
			{"mlx_compile_cache_new\x00", "mlx_compile_cache_old\x00"},
			{"mlx_fft_fftn\x00", "mlx_fft_none\x00"},
		}, "undefined symbol: mlx_fft_fftn"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, file := range []string{mlxg, mlxC, mlx, "mlx_cpu.libs"} {
				from, err := filepath.Abs(filepath.Join(installed, file))
				require.NoError(t, err)
				to := filepath.Join(root, file)
				require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
				switch {
				case file != c.library:
					require.NoError(t, os.Symlink(from, to))
				case c.replace != nil:
					data, err := os.ReadFile(from)
					require.NoError(t, err)
					for _, r := range c.replace {
						require.Len(t, r[1], len(r[0]))
						require.True(t, bytes.Contains(data, []byte(r[0])), "%q", r[0])
						data = bytes.ReplaceAll(data, []byte(r[0]), []byte(r[1]))
					}
					require.NoError(t, os.WriteFile(to, data, 0o755))
				}
			}
			program := exec.Command(os.Args[0], "-test.run=^TestLoadedLibraries$")
			program.Env = append(os.Environ(), "MLXC_LOADED_LIBRARIES=1", "MLXGRAD_LIB="+filepath.Join(root, "lib"))
			out, err := program.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), c.want)
			require.Contains(t, string(out), library.Remedy())
		})
	}
}

// interfaceVersion returns the string by which libmlxg identifies its interface.
func interfaceVersion(t *testing.T) string {
	table, err := os.ReadFile("gen_table.h")
	require.NoError(t, err)
	return regexp.MustCompile(`MLXG_INTERFACE "(\w+)"`).FindStringSubmatch(string(table))[1]
}

// A program whose first operations fail can use MLX once its libraries exist.
func TestLoadingIsTriedAgain(t *testing.T) {
	testdevice.CPUOnly(t, "starts another process, which has MLX's backend for CPUs")
	const variable = "MLXC_LOADING_TRIED_AGAIN"
	if root := os.Getenv(variable); root != "" {
		loadingIsTriedAgain(t, root)
		return
	}
	root := t.TempDir()
	for _, file := range []string{"mlx", "mlx_cpu.libs"} {
		from, err := filepath.Abs(filepath.Join(installed, file))
		require.NoError(t, err)
		require.NoError(t, os.Symlink(from, filepath.Join(root, file)))
	}
	require.NoError(t, os.Mkdir(filepath.Join(root, "lib"), 0o755))
	program := exec.Command(os.Args[0], "-test.run=^TestLoadingIsTriedAgain$")
	program.Env = append(os.Environ(), variable+"="+root, "MLXGRAD_LIB="+filepath.Join(root, "lib"))
	out, err := program.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// loadingIsTriedAgain runs in a process whose MLXGRAD_LIB is the empty folder lib of root.
func loadingIsTriedAgain(t *testing.T, root string) {
	place := library.Places()[0]
	version := interfaceVersion(t)
	complete, err := os.ReadFile(filepath.Join(installed, "lib", filepath.Base(place)))
	require.NoError(t, err)
	install := func(old, new string) {
		t.Helper()
		require.Len(t, new, len(old))
		data := bytes.ReplaceAll(complete, []byte(old), []byte(new))
		require.NoError(t, os.WriteFile(place+".tmp", data, 0o755))
		require.NoError(t, os.Rename(place+".tmp", place))
	}
	fails := func(want string) {
		t.Helper()
		first := mlxc.Check()
		require.ErrorContains(t, first, want)
		require.ErrorContains(t, first, library.Remedy())
		for range 100 {
			require.EqualError(t, mlxc.Check(), first.Error(), "the same error while nothing changes")
		}
		require.ErrorContains(t, mlxc.Scalar[float32](1).Err(), first.Error(), "an operation that looks before")
		require.ErrorContains(t, mlxc.Ones(mlxc.Float32, 2).Err(), first.Error(), "an operation of the generator")
		require.Empty(t, mlxc.Version())
	}

	fails("MLX is not set up, there is no " + place)
	failed := mlxc.Ones(mlxc.Float32, 2)
	install("\x7fELF", "\x7fELG")
	fails("MLX cannot be loaded: " + place)
	install(version, version)
	fails("MLX cannot be loaded: libmlxc.so: ")
	from, err := filepath.Abs(filepath.Join(installed, "lib", "libmlxc.so"))
	require.NoError(t, err)
	require.NoError(t, os.Symlink(from, filepath.Join(filepath.Dir(place), "libmlxc.so")))
	install(version, strings.Repeat("0", len(version)))
	fails(place + " is of another version of mlxgrad than this program: ")
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	require.NotContains(t, string(maps), filepath.Base(place), "the library is unloaded")

	// The library appears while goroutines use MLX.
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 10_000 {
				if v, err := mlxc.Item[float32](mlxc.Scalar[float32](1).AddScalar(1)); err == nil {
					assert.Equal(t, float32(2), v)
					return
				}
			}
			assert.Fail(t, "MLX is not loaded")
		})
	}
	install(version, version)
	group.Wait()
	require.NoError(t, mlxc.Check())
	require.NotEmpty(t, mlxc.Version())
	require.ErrorContains(t, failed.Err(), "MLX is not set up", "an invalid array stays invalid")
}

// The loaded MLX and mlx-c are a pair of the lock file.
func TestPinnedPair(t *testing.T) {
	data, err := os.ReadFile("../third_party/mlx-c/lock.json")
	require.NoError(t, err)
	var lock struct {
		Pairs []struct {
			MLX struct {
				Version string `json:"version"`
			} `json:"mlx"`
			MLXC struct {
				Version string `json:"version"`
			} `json:"mlx_c"`
		} `json:"pairs"`
	}
	require.NoError(t, json.Unmarshal(data, &lock))
	require.NoError(t, mlxc.Check())
	var pairs [][2]string
	for _, p := range lock.Pairs {
		pairs = append(pairs, [2]string{p.MLX.Version, p.MLXC.Version})
	}
	require.Contains(t, pairs, [2]string{mlxc.Version(), mlxc.CVersion()})
}

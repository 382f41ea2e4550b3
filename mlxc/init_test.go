//go:build linux

package mlxc_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

const installed = "../third_party/mlx-c/install"

// What a program says that is started with other libraries than those it was built for:
// copies, in which names and versions are replaced by others of the same length.
func TestLoadedPair(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	if os.Getenv("MLXC_LOADED_PAIR") != "" {
		err := mlxc.Check()
		require.Error(t, err)
		_, err = mlxc.ToSlice[float32](mlxc.FromSlice([]float32{1}))
		require.ErrorContains(t, err, mlxc.Check().Error(), "every operation gives it")
		os.Stdout.WriteString("\nCHECK " + err.Error() + "\n")
		return
	}
	const meant = "but this program was compiled for MLX 0.32.2 and mlx-c 0.7.0"
	for _, c := range []struct {
		name, library string
		replace       [][2]string
		want          string
	}{
		{
			"another mlx-c", "lib/libmlxc.so",
			[][2]string{{"\x000.7.0\x00", "\x000.7.1\x00"}},
			"MLX 0.32.2 and mlx-c 0.7.1 are loaded, " + meant,
		},
		{
			"an mlx-c for another MLX", "lib/libmlxc.so",
			[][2]string{{"\x000.32.2\x00", "\x000.32.3\x00"}},
			"MLX 0.32.2 and mlx-c 0.7.0 (made for MLX 0.32.3) are loaded, " + meant,
		},
		{
			"another MLX", "mlx/lib/libmlx.so",
			[][2]string{{"\x000.32.2\x00", "\x000.32.1\x00"}},
			"MLX 0.32.1 and mlx-c 0.7.0 (made for MLX 0.32.2) are loaded, " + meant,
		},
		{
			"an mlx-c of others", "lib/libmlxc.so",
			[][2]string{{"mlxgrad_mlx_c_version", "mlxgrad_mlx_c_nothing"}, {"mlxgrad_mlx_c_built_against", "mlxgrad_mlx_c_build_for_who"}},
			"an mlx-c that build.sh did not make (0.7 or later, by its symbols) are loaded, " + meant,
		},
		{
			"an old mlx-c of others", "lib/libmlxc.so",
			[][2]string{
				{"mlxgrad_mlx_c_version", "mlxgrad_mlx_c_nothing"},
				{"mlx_compile_cache_new\x00", "mlx_compile_cache_old\x00"},
				{"mlx_stream_new_thread_unsafe\x00", "mlx_stream_new_thread_absent\x00"},
			},
			"an mlx-c that build.sh did not make (older than 0.7, by its symbols) are loaded, " + meant,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(installed, c.library))
			require.NoError(t, err)
			for _, r := range c.replace {
				require.Len(t, r[1], len(r[0]))
				require.True(t, bytes.Contains(data, []byte(r[0])), "%q", r[0])
				data = bytes.ReplaceAll(data, []byte(r[0]), []byte(r[1]))
			}
			// libmlx finds the libraries that came with it two folders up.
			root := t.TempDir()
			dir := filepath.Join(root, "mlx", "lib")
			require.NoError(t, os.MkdirAll(dir, 0o755))
			others, err := os.ReadDir(installed)
			require.NoError(t, err)
			for _, other := range others {
				if other.Name() != "mlx" {
					absolute, err := filepath.Abs(filepath.Join(installed, other.Name()))
					require.NoError(t, err)
					require.NoError(t, os.Symlink(absolute, filepath.Join(root, other.Name())))
				}
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(c.library)), data, 0o755))

			program := exec.Command(os.Args[0], "-test.run=^TestLoadedPair$")
			program.Env = append(os.Environ(), "MLXC_LOADED_PAIR=1", "LD_LIBRARY_PATH="+dir+":"+os.Getenv("LD_LIBRARY_PATH"))
			out, err := program.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), c.want)
		})
	}
}

// The one place that names mlx-c's version is the lock file.
func TestPinnedPair(t *testing.T) {
	data, err := os.ReadFile("../third_party/mlx-c/lock.json")
	require.NoError(t, err)
	var lock struct {
		MLX struct {
			Version string `json:"version"`
		} `json:"mlx"`
		MLXC struct {
			Version string `json:"version"`
		} `json:"mlx_c"`
	}
	require.NoError(t, json.Unmarshal(data, &lock))
	require.NoError(t, mlxc.Check())
	require.Equal(t, lock.MLX.Version, mlxc.Version())
	require.Equal(t, lock.MLXC.Version, mlxc.CVersion())
}

package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInstall(t *testing.T) {
	w := newWorld(t)
	prefix := filepath.Join(t.TempDir(), "prefix")
	w.fails("there is no installation to copy: run ./build.sh install", "install", "--prefix", prefix)
	require.NoError(t, w.setup())
	w.fails("install needs a folder, --prefix DIR: see ./build.sh help", "install")
	w.fails(`install does not take "x"`, "install", "--prefix", prefix, "x")
	w.fails("flag provided but not defined", "install", "--backend", "cpu")
	w.fails("lies in the folder that is copied: choose another", "install", "--prefix",
		filepath.Join(w.root, "install"))

	for range 2 { // over an older one
		require.NoError(t, w.setup("install", "--prefix", prefix))
		for installed, copied := range map[string]string{
			"install/manifest.json":             "lib/mlxgrad/manifest.json",
			"install/include/mlx/c/mlx.h":       "lib/mlxgrad/include/mlx/c/mlx.h",
			"install/mlx/include/mlx/mlx.h":     "lib/mlxgrad/mlx/include/mlx/mlx.h",
			"install/mlx_cpu.libs/libblas.so":   "lib/mlxgrad/mlx_cpu.libs/libblas.so",
			"install/include/mlx/c/LICENSE":     "lib/mlxgrad/include/mlx/c/LICENSE",
			"install/mlx/include/mlx/version.h": "lib/mlxgrad/mlx/include/mlx/version.h",
		} {
			data, err := os.ReadFile(filepath.Join(prefix, copied))
			require.NoError(t, err)
			require.Equal(t, w.read(installed), string(data))
		}
		entries, err := os.ReadDir(filepath.Join(prefix, "lib"))
		require.NoError(t, err)
		require.Len(t, entries, 1, "no temporary folder is left")
	}
	file := filepath.Join(prefix, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	w.fails("cannot be written (mkdir "+file+": not a directory): choose a folder that you can write to", "install",
		"--prefix", file)
}

// A module outside this repository uses mlxc from an installation that was moved.
func TestThrowAwayModule(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	first, prefix := filepath.Join(dir, "first"), filepath.Join(dir, "moved")
	require.NoError(t,
		Checkout(t.Context(), newPrinter(t.Output(), "setup").print,
			[]string{filepath.Join(root, "third_party/mlx-c"), "install", "--prefix", first}))
	require.NoError(t, os.Rename(first, prefix))

	module := filepath.Join(dir, "module")
	require.NoError(t, os.Mkdir(module, 0o755))
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	for name, text := range map[string]string{
		"go.mod": "module throwaway\n\ngo 1.26\n\nrequire github.com/mlxgrad/mlxgrad v0.0.0\n\nreplace github.com/mlxgrad/mlxgrad => " + root + "\n",
		"go.sum": string(sums),
		"main.go": `package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func main() {
	x := mlxc.FromSlice([]float32{1, 2, 3})
	fmt.Println(x.Add(x))
	maps, _ := os.ReadFile("/proc/self/maps") // of Linux
	for line := range strings.Lines(string(maps)) {
		if _, path, ok := strings.Cut(line, "/"); ok && strings.Contains(path, "/libmlx") {
			fmt.Print("/", path)
		}
	}
}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(module, name), []byte(text), 0o644))
	}
	build := exec.Command("go", "build", "-mod=mod", "-o", "program", ".")
	build.Dir = module
	build.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	program := exec.Command(filepath.Join(module, "program"))
	program.Env = append(os.Environ(), "MLXGRAD_LIB="+filepath.Join(prefix, "lib", "mlxgrad", "lib"))
	out, err = program.CombinedOutput()
	require.NoError(t, err, "%s", out)
	sum, libraries, _ := strings.Cut(string(out), "\n")
	require.Equal(t, "array([2, 4, 6], dtype=float32)", sum)
	if runtime.GOOS == "linux" {
		require.Contains(t, libraries, "libmlxc.so")
		for library := range strings.Lines(libraries) {
			require.True(t, strings.HasPrefix(library, prefix), "%s is loaded", library)
		}
	}
}

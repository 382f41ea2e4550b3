package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

func TestPackageRefuses(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "package")
	w.fails("there is no installation to package: run ./build.sh package", "package", dir)
	require.NoError(t, w.setup())
	w.fails("package takes one folder, DIR: see ./build.sh help", "package")
	w.fails("package takes one folder, DIR: see ./build.sh help", "package", dir, "x")
	w.fails("package takes one folder, DIR: see ./build.sh help", "package", "--backend")
	w.fails("package takes one folder, DIR: see ./build.sh help", "package", "")
	w.fails("cannot be written (", "package", filepath.Join(w.root, "lock.json", "package"))

	// Other folders are not replaced.
	require.NoError(t, os.MkdirAll(dir, 0o755))
	mine := filepath.Join(dir, "mine")
	require.NoError(t, os.WriteFile(mine, nil, 0o644))
	w.fails("is neither empty nor a package: name a folder that does not exist or is empty", "package", dir)
	require.FileExists(t, mine)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.sh"), nil, 0o755))
	w.fails("is neither empty nor a package: name a folder that does not exist or is empty", "package", dir)
	require.FileExists(t, mine)
	w.fails("lies in the folder that is copied: choose another", "package", filepath.Join(w.root, "install", "package"))

	// Files of the user beside the package stay.
	mine = filepath.Join(filepath.Dir(dir), "other.old", "mine")
	require.NoError(t, os.MkdirAll(filepath.Dir(mine), 0o755))
	require.NoError(t, os.WriteFile(mine, nil, 0o644))
	w.fails("go is not on the PATH: install Go", "package", filepath.Join(filepath.Dir(dir), "other"))
	require.FileExists(t, mine)
	require.NoError(t, os.RemoveAll(filepath.Dir(mine)))

	// A package that cannot be built leaves nothing.
	w.fails("go is not on the PATH: install Go", "package", dir+"2")
	entries, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

// fakePackage is a package whose command and tests print how they were called.
func fakePackage(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "a package")
	write := func(name, text string) {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o755))
	}
	write("run.sh", string(launcher))
	const says = `#!/bin/sh
echo "$(basename "$0") in $(basename "$PWD"): $*; CUDA_HOME=${CUDA_HOME:-}; path=${LD_LIBRARY_PATH:-}"
[ "$(basename "$0")" != ops.test ]
`
	write("mlxgrad", says)
	for _, p := range packagedTests {
		write(p.dir+"/"+filepath.Base(p.dir)+".test", says)
	}
	write("third_party/mlx-c/install/mlx/lib/libmlx.so", "")
	write("third_party/mlx-c/install/nvidia/cu13/include/cuda_runtime.h", "")
	write("third_party/mlx-c/install/nvidia/cu13/lib/libcudart.so", "")
	write("third_party/mlx-c/install/nvidia/cudnn/lib/libcudnn.so", "")
	return dir
}

func TestLauncher(t *testing.T) {
	if runtime.GOOS == "windows" {
		skip.Platform(t, "Windows has no sh")
	}
	dir, elsewhere := fakePackage(t), t.TempDir()
	install := filepath.Join(dir, "third_party/mlx-c/install")
	run := func(env []string, args ...string) (string, int) {
		cmd := exec.Command(filepath.Join(dir, "run.sh"), args...)
		cmd.Dir = elsewhere
		cmd.Env = append([]string{"PATH=/usr/bin:/bin", "LD_LIBRARY_PATH=/last"}, env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			require.IsType(t, &exec.ExitError{}, err, "%s", out)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}

	// Flags name files relative to the user's folder.
	out, code := run(nil, "bench", "--json", "a file")
	require.Zero(t, code)
	require.Contains(t, out,
		"mlxgrad in "+filepath.Base(elsewhere)+": bench --json a file; CUDA_HOME="+install+"/nvidia/cu13; path="+install+"/mlx/lib:"+install+"/nvidia/cu13/lib:"+install+"/nvidia/cudnn/lib:")
	require.True(t, strings.HasSuffix(out, ":/last\n"), out)
	out, _ = run([]string{"CUDA_HOME=/mine"}, "version")
	require.Contains(t, out, "CUDA_HOME=/mine;")
	out, _ = run([]string{"CUDA_PATH=/mine"}, "version")
	require.Contains(t, out, "CUDA_HOME=;")

	out, code = run(nil, "test", "customkernels", "-test.run", "X")
	require.Zero(t, code)
	require.Contains(t, out, "customkernels.test in customkernels: -test.run X;")
	// A failing package does not stop the others.
	out, code = run(nil, "test", "-test.short")
	require.Equal(t, 1, code)
	require.Contains(t, out, "ops.test in ops: -test.short;")
	require.Contains(t, out, "compare.test in compare: -test.short;")
	out, code = run(nil, "all")
	require.Equal(t, 1, code)
	require.Contains(t, out, ": parity --full;")
	require.Contains(t, out, "mlxgrad in "+filepath.Base(elsewhere)+": bench;")
	out, code = run(nil, "test", "no/such")
	require.Equal(t, 2, code)
	require.Contains(t, out, "no/such is not a package; the packages are: mlxc mlxc/distributed")
	out, code = run(nil)
	require.Zero(t, code)
	require.Contains(t, out, "usage: run.sh VERB")
}

// A package runs from any folder, and loads the libraries in it. With -long, since it links
// every test.
func TestPackage(t *testing.T) {
	long.Only(t, "links every test")
	repository, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	before, dir := filepath.Join(t.TempDir(), "before"), filepath.Join(t.TempDir(), "package")
	cmd := exec.Command(filepath.Join(repository, "build.sh"), "package", before)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Rename(before, dir), "a package can be moved")

	run := func(args ...string) string {
		cmd := exec.Command(filepath.Join(dir, "run.sh"), args...)
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), "LD_DEBUG=libs", "LD_DEBUG_OUTPUT="+filepath.Join(cmd.Dir, "loaded"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		if runtime.GOOS == "linux" {
			logs, err := filepath.Glob(filepath.Join(cmd.Dir, "loaded.*"))
			require.NoError(t, err)
			var loaded strings.Builder
			for _, log := range logs {
				text, err := os.ReadFile(log)
				require.NoError(t, err)
				loaded.Write(text)
			}
			require.Contains(t, loaded.String(), "calling init: "+dir+"/third_party/mlx-c/install/lib/libmlxc.so")
			require.Contains(t, loaded.String(), "calling init: "+dir+"/third_party/mlx-c/install/mlx/lib/libmlx.so")
			require.NotContains(t, loaded.String(), "calling init: "+repository)
		}
		return string(out)
	}
	require.Regexp(t, `\nMLX [0-9.]+\nmlx-c 0\.7\.0\n`, run("version"))
	require.Contains(t, run("parity", "--op", "rmsnorm", "--case", "^3x33$"), "6 passed, 0 failed\n")
	require.Contains(t, run("test", "ops", "-test.run", "^TestRMSNorm"), "PASS\n")
	require.Contains(t, run("test", "customkernels", "-test.run", "^TestCUDAText"), "PASS\n")
}

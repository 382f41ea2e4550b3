package mlxc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

const fusingChild = "MLXC_TEST_FUSING"

// TestProcessThatFuses is the child process of TestFusingInFoldersOfOtherUsers.
func TestProcessThatFuses(t *testing.T) {
	if os.Getenv(fusingChild) == "" {
		skip.Platform(t, "TestFusingInFoldersOfOtherUsers runs it in a process")
	}
	onCPU(t, func() {
		for range 2 {
			c := mlxc.Compile(func(a arrays) arrays { return arrays{a[0].AddScalar(1).Square().MulScalar(2)} })
			out, err := c.Call(mlxc.FromSlice([]float32{1, 2}))
			require.NoError(t, err)
			require.Equal(t, []float32{8, 18}, floats(t, out[0]))
		}
	})
}

// MLX compiles and loads libraries in a folder shared by all users. If another user could have written a library there,
// or owns the folder, functions are computed without fusion.
func TestFusingInFoldersOfOtherUsers(t *testing.T) {
	// MLX fuses nothing on a CPU without g++. Version 13 and later reject the headers in MLX's wheels for Linux.
	later := skip.GXXVersion(t) > 12 && runtime.GOOS == "linux"
	const nobody = 65534
	root := os.Getuid() == 0
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, mlx string)
		reason  string // "" where functions are fused
		user    int    // runs the child; 0 is the test's user
		root    bool   // the case needs root
	}{
		{name: "none", prepare: func(*testing.T, string) {}},
		{name: "own", prepare: func(t *testing.T, mlx string) { require.NoError(t, os.Mkdir(mlx, 0o755)) }},
		{name: "open to others", prepare: func(t *testing.T, mlx string) {
			require.NoError(t, os.Mkdir(mlx, 0o755))
			require.NoError(t, os.Chmod(mlx, 0o777))
		}, reason: "mlx has mode 0777: other users may write to it"},
		{name: "a link", prepare: func(t *testing.T, mlx string) {
			require.NoError(t, os.Symlink(t.TempDir(), mlx))
		}, reason: "mlx is not a folder"},
		{name: "another user's", root: true, prepare: func(t *testing.T, mlx string) {
			require.NoError(t, os.Mkdir(mlx, 0o755))
			require.NoError(t, os.Chown(mlx, nobody, nobody))
		}, reason: "mlx belongs to user 65534, but this process runs as user 0"},
		{name: "root's, for another user", root: true, user: nobody, prepare: func(t *testing.T, mlx string) {
			require.NoError(t, os.MkdirAll(filepath.Join(mlx, mlxc.Version(), "cpu"), 0o755))
		}, reason: "permission denied"},
		{name: "none, for another user", root: true, user: nobody, prepare: func(*testing.T, string) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.root && !root {
				skip.Platform(t, "only root can run a process of another user")
			}
			dir := t.TempDir()
			require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
			require.NoError(t, os.Chmod(dir, os.ModeSticky|0o777))
			c.prepare(t, filepath.Join(dir, "mlx"))
			program, err := os.Executable()
			require.NoError(t, err)
			child := exec.Command(program, "-test.run=^TestProcessThatFuses$", "-test.v")
			child.Env = append(os.Environ(), fusingChild+"=1", "TMPDIR="+dir)
			if c.user != 0 {
				// The user may lack access to the program's folder.
				child.Path = filepath.Join(dir, "program")
				require.NoError(t, os.Link(program, child.Path))
				child.Dir = dir
				child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			}
			out, err := child.CombinedOutput()
			if c.user != 0 && strings.Contains(string(out), "MLX is not set up") {
				skip.Platform(t, "the user cannot read the libraries of this checkout")
			}
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "PASS: TestProcessThatFuses")
			libraries, err := filepath.Glob(filepath.Join(dir, "mlx", mlxc.Version(), "cpu", "*.so"))
			require.NoError(t, err)
			const warning = "are not fused"
			if c.reason == "" && later {
				c.reason = "is newer than version 12"
			}
			if c.reason == "" {
				require.NotContains(t, string(out), warning)
				require.NotEmpty(t, libraries)
				return
			}
			require.Equal(t, 1, strings.Count(string(out), warning), "%s", out)
			require.Contains(t, string(out), c.reason)
			require.Empty(t, libraries, "nothing is compiled there")
		})
	}
}

// MLX's wheels have headers that g++ 13 and later reject.
func TestFusingWithALaterCompiler(t *testing.T) {
	skip.Program(t, skip.GXX)
	if runtime.GOOS != "linux" {
		skip.Platform(t, "the headers of other systems have no such types")
	}
	compiler, err := exec.LookPath("g++")
	require.NoError(t, err)
	dir := t.TempDir()
	program := "#!/bin/sh\ncase $* in *-fsyntax-only*) exit 1 ;; *) exec " + compiler + " \"$@\" ;; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "g++"), []byte(program), 0o700))
	child := exec.Command(os.Args[0], "-test.run=^TestProcessThatFuses$", "-test.v")
	child.Env = append(os.Environ(), fusingChild+"=1", "TMPDIR="+dir, "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "PASS: TestProcessThatFuses")
	require.Equal(t, 1, strings.Count(string(out), "are not fused"), "%s", out)
	require.Contains(t, string(out), filepath.Join(dir, "g++")+" is newer than version 12")
	libraries, err := filepath.Glob(filepath.Join(dir, "mlx", mlxc.Version(), "cpu", "*.so"))
	require.NoError(t, err)
	require.Empty(t, libraries)
}

package fuzz

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// compileC runs g++ in a folder. It skips the test if there is no g++.
func compileC(t *testing.T, dir string, args ...string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		skip.Platform(t, "guard.c is for Linux")
	}
	cmd := exec.Command(skip.Program(t, skip.GXX), append([]string{"-Wall", "-Wextra", "-Werror"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	require.NoError(t, err)
	return path
}

// buildGuard compiles the preload library and returns its path.
func buildGuard(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	compileC(t, dir, "-O2", "-shared", "-fPIC", "-o", "guard.so", "-x", "c", testdata(t, "guard.c"), "-x", "none",
		"-ldl", "-lpthread")
	return filepath.Join(dir, "guard.so")
}

// The guard ends each process that misuses its memory, and no other process.
func TestGuard(t *testing.T) {
	guard := buildGuard(t)
	dir := filepath.Dir(guard)
	compileC(t, dir, "-O0", "-shared", "-fPIC", "-Wno-use-after-free", "-o", "libvictim.so", "-x", "c",
		testdata(t, "victim.c"))
	compileC(t, dir, "-o", "victim", "-x", "c", testdata(t, "victim_main.c"), "-x", "none", "-L.", "-lvictim",
		"-Wl,-rpath,"+dir)
	const segv, abort, lives = "segmentation fault", "aborted", ""
	for mode, cases := range map[string]map[string]string{
		"end": {
			"nothing": lives, "read behind": segv, "write behind": segv, "write before": abort,
			"read freed": segv, "free twice": abort, "write behind aligned": abort,
		},
		"start": {
			"nothing": lives, "read before": segv, "write before": segv, "write behind": abort,
			"read freed": segv, "free twice": abort, "write behind aligned": abort,
		},
	} {
		for misuse, end := range cases {
			t.Run(mode+" "+misuse, func(t *testing.T) {
				cmd := exec.Command(filepath.Join(dir, "victim"), misuse)
				cmd.Env = append(os.Environ(), "LD_PRELOAD="+guard, "MLXG_GUARD="+mode,
					"MLXG_GUARD_LIBRARY=libvictim.so")
				out, err := cmd.CombinedOutput()
				require.Contains(t, string(out), "guard: on")
				if end == lives {
					require.NoError(t, err, "%s", out)
					return
				}
				require.Error(t, err)
				require.True(t, strings.Contains(err.Error(), end), "%v, not %s: %s", err, end, out)
			})
		}
	}
}

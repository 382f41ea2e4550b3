package setup

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// If mainVariable is set, the test binary is the set-up program.
const mainVariable = "SETUP_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		os.Exit(Main(os.Args[1:], os.Stderr))
	}
	os.Exit(m.Run())
}

// withoutRights makes cmd run as a user who can read dir but not write to it: as another user if this process is
// root's.
func withoutRights(t *testing.T, cmd *exec.Cmd, dir string) {
	t.Helper()
	change := func(change func(mode fs.FileMode) fs.FileMode) {
		require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.Type()&fs.ModeSymlink != 0 {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			return os.Chmod(path, change(info.Mode().Perm()))
		}))
	}
	change(func(mode fs.FileMode) fs.FileMode { return mode &^ 0o222 })
	t.Cleanup(func() { change(func(mode fs.FileMode) fs.FileMode { return mode | 0o200 }) })
	if os.Geteuid() == 0 {
		for above := filepath.Dir(dir); above != filepath.Clean(os.TempDir()) &&
			above != "/"; above = filepath.Dir(above) {
			require.NoError(t, os.Chmod(above, 0o755))
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
}

// A checkout that is set up works for a user without the right to write it. If set-up would have
// to write there, it fails with an error that says so.
func TestReadOnlyCheckout(t *testing.T) {
	bash, err := exec.LookPath("bash")
	require.NoError(t, err)
	w := newWorld(t)
	program := filepath.Join(filepath.Dir(w.bin), "program")
	exe, err := os.Executable()
	require.NoError(t, err)
	data, err := os.ReadFile(exe)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(program, data, 0o755))
	run := func(env ...string) (string, error) {
		t.Helper()
		cmd := exec.Command(program, w.root)
		cmd.Env = append(append(os.Environ(), mainVariable+"=1"), env...)
		withoutRights(t, cmd, w.root)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run()
	require.Error(t, err)
	require.Contains(t, out, "MLX is not set up here, and nothing can be written (")
	require.Contains(t, out, "make "+w.root+" writable and run the set-up again")

	require.NoError(t,
		filepath.WalkDir(w.root, func(path string, _ fs.DirEntry, _ error) error { return os.Chmod(path, 0o755) }))
	require.NoError(t, w.setup())
	out, err = run()
	require.NoError(t, err, out)
	require.Empty(t, out)

	compiler := map[bool]string{true: "clang++", false: "g++"}[runtime.GOOS == "darwin"]
	w.fake(compiler, `echo "stand-in compiler 2"`)
	out, err = run()
	require.Error(t, err)
	require.Contains(t, out,
		"MLX was set up here with "+compiler+" (stand-in compiler 1) and not with "+compiler+" (stand-in compiler 2), and nothing can be written (")

	// build.sh builds its programs elsewhere, and leaves nothing there.
	tmp := filepath.Join(filepath.Dir(w.bin), "tmp")
	require.NoError(t, os.Mkdir(tmp, 0o777))
	require.NoError(t, os.Chmod(tmp, 0o777))
	script, err := os.ReadFile(filepath.Join("..", "..", "build.sh"))
	require.NoError(t, err)
	root := filepath.Join(filepath.Dir(w.bin), "checkout")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "third_party", "mlx-c", "build"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "build.sh"), script, 0o755))
	w.fake("go", `[ "$1" = build ] || { echo "go $*"; exit; }
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\necho "${0##*/}: $*"\n' >"$2"
/bin/chmod +x "$2"`)
	w.fake("clang", "")
	for verb, want := range map[string]string{
		"setup": "", "parity": "mlxgrad: parity\n",
		"test": "go test " + testFlags + " -timeout 40m ./ops ./...\n",
	} {
		cmd := exec.Command(bash, filepath.Join(root, "build.sh"), verb)
		cmd.Env = []string{"PATH=" + w.bin + ":/usr/bin:/bin", "TMPDIR=" + tmp}
		withoutRights(t, cmd, root)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, "setup: "+filepath.Join(root, "third_party", "mlx-c")+"\n"+want, string(out), verb)
		left, err := os.ReadDir(tmp)
		require.NoError(t, err)
		require.Empty(t, left, strings.TrimSpace(verb))
	}
}

package library

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlaces(t *testing.T) {
	t.Setenv(Variable, "")
	t.Setenv("HOME", "/home/someone")
	t.Setenv("XDG_DATA_HOME", "")
	data := "/home/someone/.local/share"
	if runtime.GOOS == "darwin" {
		data = "/home/someone/Library/Application Support"
	}
	installed := filepath.Join("mlxgrad", Interface, "install", "lib", name())
	exe, err := os.Executable()
	require.NoError(t, err)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	require.Equal(t, []string{
		filepath.Join(filepath.Dir(exe), name()),
		filepath.Join(root, "third_party", "mlx-c", "install", "lib", name()),
		filepath.Join(data, installed),
	}, Places())
	if runtime.GOOS != "darwin" {
		t.Setenv("XDG_DATA_HOME", "/data")
		require.Equal(t, filepath.Join("/data", installed), Places()[2])
	}
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("HOME", "")
	require.Len(t, Places(), 2)
	_, err = UserFolder()
	require.ErrorContains(t, err, "the user's data folder is not known")

	dir := t.TempDir()
	t.Setenv(Variable, dir)
	require.Equal(t, []string{filepath.Join(dir, name())}, Places(), "a folder")
	file := filepath.Join(dir, "another.so")
	t.Setenv(Variable, file)
	require.Equal(t, []string{file}, Places(), "a file, which need not exist")
}

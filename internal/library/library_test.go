package library

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlaces(t *testing.T) {
	t.Setenv(Variable, "")
	exe, err := os.Executable()
	require.NoError(t, err)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	require.Equal(t, []string{
		filepath.Join(filepath.Dir(exe), name()),
		filepath.Join(root, "third_party", "mlx-c", "install", "lib", name()),
	}, Places())

	dir := t.TempDir()
	t.Setenv(Variable, dir)
	require.Equal(t, []string{filepath.Join(dir, name())}, Places(), "a folder")
	file := filepath.Join(dir, "another.so")
	t.Setenv(Variable, file)
	require.Equal(t, []string{file}, Places(), "a file, which need not exist")
}

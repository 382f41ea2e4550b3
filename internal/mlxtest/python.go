package mlxtest

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// Python returns the path of a Python with a version of MLX, on Linux for CPUs, and other packages. pip installs them into a
// folder of the test.
func Python(t testing.TB, version string, packages ...string) string {
	t.Helper()
	dir := t.TempDir()
	python := filepath.Join(dir, "bin", "python")
	install := []string{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "mlx[cpu]==" + version}
	for _, command := range [][]string{
		{skip.Program(t, skip.Python), "-m", "venv", dir},
		append(install, packages...),
	} {
		out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	return python
}

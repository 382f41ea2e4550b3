package upgrade

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/setup"
)

// MLX 0.32.3, compared with 0.32.2, has a new parameter of gather_qmm, with which mlx-c 0.7.0 does not compile. The
// checkout stays as it is.
func TestRealRelease(t *testing.T) {
	long.Only(t, "downloads 240 MB of MLX and 1.2 GB of NVIDIA's libraries, and parses mlx-c twice")
	testClang(t)
	root := filepath.Join("..", "..", "third_party", "mlx-c")
	lock, err := os.ReadFile(filepath.Join(root, "lock.json"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "report.md")
	var out strings.Builder
	require.NoError(t, Run(t.Context(), Options{Root: root, Version: "0.32.3", From: "0.32.2", Markdown: file}, &out,
		func(p setup.Progress) { t.Log(p.Message) }))
	for _, want := range []string{
		"array gather_qmm(", "new parameter 11: const std::optional<array> & global_scale = std::nullopt",
		"used by mlx_gather_qmm (mlx/c/ops.cpp)", "Compiler errors: 1\n", ", mlx_gather_qmm: ",
		"All rules fit.", `"package": "mlx-metal",`, `"package": "nvidia-cusolver",`,
	} {
		require.Contains(t, out.String(), want)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "# MLX 0.32.3 with mlx-c 0.7.0, compared with MLX 0.32.2\n")
	after, err := os.ReadFile(filepath.Join(root, "lock.json"))
	require.NoError(t, err)
	require.Equal(t, string(lock), string(after))
}

package compare

import (
	"math"
	"testing"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

// If MLX must not run on the current device, its errors on the CPU are the reference.
func TestPeersFromTheCPU(t *testing.T) {
	c := rmsNormCase(3, 1030)
	draws, err := makeDraws("rmsnorm", c, mlxc.Float32)
	require.NoError(t, err)
	truth, err := c.truth(draws)
	require.NoError(t, err)
	valid := measurePeers(c.MLX, c, draws, mlxc.Float32, truth)
	for i, p := range peersOnCPU("it would read out of bounds", c, draws, mlxc.Float32, truth) {
		require.Equal(t, report.MLXUnsafe, p.verdict)
		require.True(t, p.substituted)
		require.True(t, math.IsNaN(p.errors.Max))
		require.Positive(t, p.reference.Max)
		require.Equal(t, valid[i].errors, p.reference)
		require.Equal(t, "it would read out of bounds; ours is judged by MLX's gradient on the CPU", p.message)
	}

	c.MLX = nil
	for _, p := range peersOnCPU("it would read out of bounds", c, draws, mlxc.Float32, truth) {
		require.False(t, p.substituted)
		require.Equal(t, "it would read out of bounds", p.message)
	}
}

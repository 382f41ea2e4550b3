package cexit

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Shutdown does not load MLX, nor does an operation after it. The test is here because nothing loads MLX in a
// process of this package's tests.
func TestShutdownBeforeMLXIsLoaded(t *testing.T) {
	for range 2 {
		require.NoError(t, mlxc.Shutdown())
	}
	require.ErrorIs(t, mlxc.Check(), mlxc.ErrShutdown)
	require.ErrorIs(t, mlxc.Ones(mlxc.Float32, 2).Err(), mlxc.ErrShutdown)
	require.ErrorIs(t, mlxc.Scalar[float32](1).Err(), mlxc.ErrShutdown)
	require.Zero(t, mlxc.ActiveMemory())
	require.Empty(t, mlxc.Version())
	if runtime.GOOS == "linux" {
		maps, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		require.NotContains(t, string(maps), "libmlx")
	}
}

package mlxc_test

import (
	"fmt"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

func TestStreamNamesListsEveryStream(t *testing.T) {
	s, err := mlxc.NewStream(mlxc.CPU)
	require.NoError(t, err)
	require.Equal(t, mlxc.CPU, s.Device())
	name := fmt.Sprintf("Stream(Device(cpu, 0), %d)", s.Index())
	require.Equal(t, name, s.String())
	names, err := mlxc.StreamNames()
	require.NoError(t, err)
	require.Contains(t, names, name)
	other, err := mlxc.NewStream(mlxc.CPU)
	require.NoError(t, err)
	require.NotEqual(t, s.Index(), other.Index())
	var none *mlxc.Stream
	mlxc.WithStream(s, func() {
		require.Equal(t, name, none.String())
		require.Equal(t, s.Index(), none.Index())
	})
	require.NotEqual(t, name, none.String())
	require.Equal(t, mlxc.CurrentDevice(), none.Device())
}

func TestSynchronize(t *testing.T) {
	s, err := mlxc.NewStream(mlxc.CPU)
	require.NoError(t, err)
	var y *mlxc.Array
	mlxc.WithStream(s, func() {
		x := mlxc.Full(mlxc.Float32, mlxc.Scalar[float32](0.01), 400, 400)
		y = x
		for range 20 {
			y = y.MatMul(x)
		}
		y = y.Sum()
	})
	require.NoError(t, mlxc.AsyncEval(y))
	require.NoError(t, s.Synchronize())
	if mlxc.CUDAAvailable() { // the events of its CPU streams come a moment later
		require.NoError(t, mlxc.Eval(y))
	}
	require.True(t, y.IsReady())
	require.NoError(t, mlxc.Synchronize())
	mlxc.WithStream(s, func() { require.NoError(t, mlxc.Synchronize()) })
	// Inside a transform, and on an idle stream.
	_, _, err = mlxc.VJP(func(a arrays) arrays {
		require.NoError(t, s.Synchronize())
		mlxc.WithPlaceholderGPU(func() { require.NoError(t, mlxc.Synchronize()) })
		return a
	}, arrays{y}, arrays{y})
	require.NoError(t, err)
}

func ExampleStream_Synchronize() {
	s, err := mlxc.NewStream(mlxc.CPU)
	if err != nil {
		fmt.Println(err)
		return
	}
	var y *mlxc.Array
	mlxc.WithStream(s, func() { y = mlxc.Ones(mlxc.Float32, 3).Sum() })
	err = mlxc.AsyncEval(y)
	fmt.Println(err, s.Synchronize(), y)
	// Output: <nil> <nil> array(3, dtype=float32)
}

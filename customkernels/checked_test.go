package customkernels

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/checked"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

const reverseInTile = `
kernel void f(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  %s
  y[i] = tile[63 - i];
}
`

// With MLXGRAD_CHECKED a launch fails with the first error of the checker.
func TestCheckedLaunches(t *testing.T) {
	launch := func(k *Kernel, x *mlxc.Array) *mlxc.Array {
		return k.Launch(Launch{
			Grid: [3]int{64}, Threadgroup: [3]int{64}, Outputs: []mlxc.Output{{Shape: []int{64}, DType: mlxc.Float32}},
		}, x)[0]
	}
	racy := inline(t, fmt.Sprintf(reverseInTile, ""))
	good := inline(t, fmt.Sprintf(reverseInTile, "threadgroup_barrier(mem_flags::mem_threadgroup);"))
	x := mlxc.Arange(mlxc.Float32, 0, 64, 1)
	require.NoError(t, launch(racy, x).Err())

	t.Cleanup(checked.Set("0"))
	require.NoError(t, launch(racy, x).Err())
	checked.Set("1")
	require.ErrorContains(t, launch(racy, x).Err(), "MLXGRAD_CHECKED: inline.metal:5: error: race: ")
	y := launch(good, x.Add(x))
	require.Equal(t, float32(126), mlxtest.Floats(t, y)[0])

	// A gradient evaluates the inputs of its launches.
	double := mlxc.CustomVJP(func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{launch(racy, in[0])} },
		func(_, cotangents, _ []*mlxc.Array) []*mlxc.Array { return cotangents })
	_, _, err := mlxc.VJP(double, []*mlxc.Array{x}, []*mlxc.Array{x})
	require.ErrorContains(t, err, "error: race: ")

	compiled := mlxc.Compile(func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{launch(good, in[0])} })
	defer compiled.Close()
	_, err = compiled.Call(x)
	require.ErrorContains(t, err, "MLX_DISABLE_COMPILE=1")
}

package customkernels

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestThreadgroupArgumentsAndFunctionConstants(t *testing.T) {
	lib, err := Load(os.DirFS("testdata"), "pipeline.metal")
	require.NoError(t, err)
	size, factor := ThreadgroupSize("shared", 32), FunctionConstant("factor", float32(0.5))
	x := mlxc.Arange(mlxc.Float32, 0, 40, 1)
	for _, negate := range []bool{false, true} {
		k, err := lib.Kernel("group_sum", size, factor, FunctionConstant("negate", negate))
		require.NoError(t, err)
		y := k.Launch(Launch{
			Grid: [3]int{40}, Threadgroup: [3]int{32}, // the second threadgroup is smaller
			Outputs: []mlxc.Output{{Shape: []int{2}, DType: mlxc.Float32}},
		}, x)[0]
		want := []float32{248, 142}
		if negate {
			want = []float32{-248, -142}
		}
		require.Equal(t, want, mlxtest.Floats(t, y))
	}
	for part, options := range map[string][]Option{
		"the threadgroup argument shared has no size":     {factor, FunctionConstant("negate", true)},
		"the function constant negate has no value":       {size, factor},
		"there is no threadgroup argument absent":         {ThreadgroupSize("absent", 3)},
		"there is no function constant absent":            {FunctionConstant("absent", 3)},
		"the threadgroup argument shared cannot have 0 e": {ThreadgroupSize("shared", 0)},
	} {
		_, err := lib.Kernel("group_sum", options...)
		require.ErrorContains(t, err, part)
		require.ErrorContains(t, err, "pipeline.metal:9")
	}
}

var _ = testdevice.AlsoOnGPU(TestThreadgroupArgumentsAndFunctionConstants)

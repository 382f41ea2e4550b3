package compare

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

func TestDrawsAreEnough(t *testing.T) {
	draws := func(c Case) int {
		all, err := makeDraws("op", c, mlxc.Float32)
		require.NoError(t, err)
		return len(all)
	}
	row := func(shape ...int) int {
		return draws(rmsNormCase(shape...))
	}
	require.Equal(t, 1, row(37, 129))
	require.Equal(t, 2, row(37, 33), "for 64 elements of dw")
	require.Equal(t, 8, row(1, 4096), "for 8 rows")
	require.Equal(t, 4, row(2, 4096))
	require.Equal(t, 8, row(4096))
	require.Equal(t, 64, row(1, 1))
	require.Equal(t, 2, row(0, 33))
	loss := Case{
		Inputs:  []Input{{Name: "x", Shape: []int{37, 33}}},
		Outputs: []Output{{Name: "loss", DType: mlxc.Float32}},
	}
	require.Equal(t, 64, draws(loss), "of the loss")
	loss.Outputs[0].DType = mlxc.Uint32
	require.Equal(t, 1, draws(loss), "integers are exact")
}

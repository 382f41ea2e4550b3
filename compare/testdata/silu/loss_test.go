package silu

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// loss is the mean cross-entropy of rows of x, scaled by a temperature, in float32.
func loss(in []*mlxc.Array) []*mlxc.Array {
	x, temperature, targets := in[0].AsType(mlxc.Float32), in[1].AsType(mlxc.Float32), in[2].AsType(mlxc.Int32)
	return []*mlxc.Array{mlxc.CrossEntropy(x.Div(temperature), targets).Mean()}
}

func composedLoss(in []*mlxc.Array) []*mlxc.Array {
	scores := in[0].Div(in[1])
	right := scores.TakeAlongAxis(in[2].AsType(mlxc.Int32).ExpandDims(-1), -1).Squeeze(-1)
	return []*mlxc.Array{scores.LogSumExp(-1).Sub(right).Mean()}
}

func TestLoss(t *testing.T) {
	compare.Gradients(t, loss, compare.Reference{Composed: composedLoss}, compare.Case{
		Inputs: []compare.Input{
			{Name: "x", Dims: []string{"rows", "classes"}},
			{Name: "temperature", Dims: []string{"rows", "one"}, Values: compare.Uniform(0.5, 2)},
			{Name: "targets", Dims: []string{"rows"}, Kind: compare.Index, Below: "classes"},
		},
		Sizes:   map[string][]int{"one": {1}, "classes": {2, 7, 32, 100}},
		Outputs: []compare.Output{{Name: "loss", DType: mlxc.Float32}},
	})
}

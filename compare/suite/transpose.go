package suite

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// transpose2D covers sides below, at and above a simdgroup and a tile, matrices alone and in batches, and every layout.
// The transpose of the transposed layout is contiguous in memory.
func transpose2D() compare.Op {
	op := compare.Op{Name: "transpose2d"}
	add := func(c rowCase) { op.Cases = append(op.Cases, transposeCase(c)) }

	sides := []int{1, 7, 31, 32, 33, 127, 128, 129}
	for _, rows := range sides {
		for _, columns := range sides {
			add(rowCase{shape: []int{rows, columns}})
		}
	}
	for _, shape := range [][]int{
		{1, 4099},
		{4099, 1},
		{33, 4099},
		{4099, 33},
		{8192, 3},
		{3, 16384},
		{1024, 1024},
		{2, 31, 33},
		{5, 1, 129},
		{1, 129, 7},
		{2, 3, 4, 31},
		{3, 2, 33, 32},
		{70, 2, 3},
		{0, 33},
		{33, 0},
		{2, 0, 7},
		{0, 3, 4},
	} {
		add(rowCase{shape: shape})
	}
	for _, layout := range everyLayout() {
		for _, shape := range [][]int{{37, 33}, {3, 5, 128}} {
			add(rowCase{shape: shape, layouts: layouts{"x": layout}})
			add(rowCase{shape: shape, layouts: layouts{"dy": layout}})
			add(rowCase{shape: shape, layouts: layouts{"x": layout, "dy": layout}})
		}
	}
	return op
}

func transposeCase(c rowCase) compare.Case {
	shape, axes := slices.Clone(c.shape), make([]int, len(c.shape))
	for i := range axes {
		axes[i] = i
	}
	n := len(shape)
	shape[n-2], shape[n-1] = shape[n-1], shape[n-2]
	axes[n-2], axes[n-1] = n-1, n-2
	return compare.Case{
		Name:    c.name(),
		Inputs:  []compare.Input{c.input("x", c.shape)},
		Outputs: []compare.Output{c.output("y", shape, true)},
		Reference: compare.Reference{
			Forward: func(in []oracle.Tensor) []oracle.Tensor { return []oracle.Tensor{oracle.Transpose2D(in[0])} },
			Gradient: func(_, ct []oracle.Tensor) []oracle.Tensor {
				return []oracle.Tensor{oracle.Transpose2D(ct[0])}
			},
		},
		Ours: func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{ops.Transpose2D(in[0])} },
		MLX:  func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{in[0].Transpose(axes...).Contiguous()} },
	}
}

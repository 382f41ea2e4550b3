package suite

import (
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/internal/blas"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// matMulCase is the product of a and b. a has the shape, values and label of the rowCase; layouts are those of a, b and
// dy.
type matMulCase struct {
	rowCase
	columns int // of b
}

// matMul covers sides below, at and above a vector and a block of the kernel, and every layout of an operand. It has no
// cases where ops.MatMul is MLX's product.
func matMul() compare.Op {
	op := compare.Op{Name: "matmul"}
	if mlxc.CurrentDevice() != mlxc.CPU || !blas.IsReference {
		return op
	}
	add := func(columns int, c rowCase) { op.Cases = append(op.Cases, matMulCase{c, columns}.build()) }

	for _, rows := range []int{1, 8, 65, 129} {
		for _, inner := range []int{1, 31, 128, 129} {
			for _, columns := range []int{1, 33, 128, 130} {
				add(columns, rowCase{shape: []int{rows, inner}})
			}
		}
	}
	for _, shape := range [][]int{{33}, {2, 3, 33}, {5, 1, 129}, {0, 7}, {2, 0}, {1024, 64}, {3, 4099}} {
		add(16, rowCase{shape: shape})
	}
	add(0, rowCase{shape: []int{3, 5}})
	for _, layout := range everyLayout() {
		for _, operand := range []string{"a", "b", "dy"} {
			add(33, rowCase{shape: []int{37, 65}, layouts: layouts{operand: layout}})
		}
	}
	add(33, rowCase{shape: []int{37, 129}, values: compare.Far, label: "far from 0"})
	add(33, rowCase{shape: []int{37, 129}, values: compare.Spread, label: "spread"})
	add(33, rowCase{shape: []int{37, 129}, values: compare.NormalExcept(math.NaN()), label: "one NaN"})
	add(33, rowCase{shape: []int{37, 129}, values: compare.NormalExcept(math.Inf(1)), label: "one infinity"})
	return op
}

func (c matMulCase) build() compare.Case {
	last := len(c.shape) - 1
	b := []int{c.shape[last], c.columns}
	return compare.Case{
		Name: caseName(dimensions(c.shape)+" by "+dimensions(b), c.layouts.String(), c.label),
		Inputs: []compare.Input{
			{Name: "a", Shape: c.shape, Layout: c.layouts["a"], Values: c.values},
			{Name: "b", Shape: b, Layout: c.layouts["b"]},
		},
		Outputs: []compare.Output{c.output("y", slices.Concat(c.shape[:last], b[1:]), true)},
		Reference: compare.Reference{
			Forward: func(in []oracle.Tensor) []oracle.Tensor { return []oracle.Tensor{oracle.MatMul(in[0], in[1])} },
			Gradient: func(in, ct []oracle.Tensor) []oracle.Tensor {
				da, db := oracle.MatMulVJP(in[0], in[1], ct[0])
				return []oracle.Tensor{da, db}
			},
		},
		Ours: func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{ops.MatMul(in[0], in[1])} },
		MLX:  func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{in[0].MatMul(in[1])} },
	}
}

package suite

import (
	"math"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

func softmax() compare.Op {
	op := compare.Op{Name: "softmax"}
	cases := rowCases()
	for i := range cases {
		if cases[i].label == "huge" {
			cases[i].values = compare.Normal(30) // with larger values dx is 0 or below the smallest float16
		}
	}
	// −∞ is how attention hides an element.
	for _, shape := range [][]int{{37, 129}, {3, 4099}} {
		cases = append(cases, rowCase{shape: shape, values: compare.NormalExcept(math.Inf(-1)), label: "one -infinity"})
	}
	for _, c := range cases {
		op.Cases = append(op.Cases, softmaxCase(c, (*mlxc.Array).SoftmaxPrecise))
	}
	// MLX's imprecise form sums a row in the row's dtype, in which a long sum may stop growing.
	for _, width := range []int{33, 1024, 8192} {
		c := rowCase{shape: []int{5, width}, label: "MLX in its dtype"}
		op.Cases = append(op.Cases, softmaxCase(c, (*mlxc.Array).Softmax))
	}
	return op
}

func softmaxCase(c rowCase, mlx func(x *mlxc.Array, axes ...int) *mlxc.Array) compare.Case {
	own := mlxc.CurrentDevice() == mlxc.CPU // on a GPU MLX computes y
	return compare.Case{
		Name:    c.name(),
		Inputs:  []compare.Input{c.input("x", c.shape)},
		Outputs: []compare.Output{c.output("y", c.shape, own)},
		Reference: compare.Reference{
			Forward: func(in []oracle.Tensor) []oracle.Tensor { return []oracle.Tensor{oracle.Softmax(in[0])} },
			Gradient: func(in, ct []oracle.Tensor) []oracle.Tensor {
				return []oracle.Tensor{oracle.SoftmaxVJP(in[0], ct[0])}
			},
		},
		Ours: func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{ops.Softmax(in[0])} },
		MLX:  func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{mlx(in[0], -1)} },
	}
}

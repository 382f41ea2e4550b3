package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var softmaxKernels = family("softmax_backward.metal")

// Softmax is exp(x) divided by its sum over the last axis, with this project's gradient.
// The value is MLX's, computed in float32.
//
// x has shape (…,D) and is float32, float16 or bfloat16. The result is like x. A row with
// a NaN or +∞, or with nothing but −∞, becomes NaN, and so does its gradient; −∞ beside
// other numbers gives 0, with a gradient of 0.
//
// With y = Softmax(x), the gradient is dx = y·(dy − Σ y·dy), the sum being over the row.
// One kernel reads y and dy once; what rows have beyond 16,384 elements (8192 on a CPU)
// is read twice.
func Softmax(x *mlxc.Array) *mlxc.Array {
	const op = "ops.Softmax"
	if err := checkRows(x); err != nil {
		return mlxc.InvalidArray(normError(op, err, x))
	}
	if !kernelsAvailable(op) {
		return x.SoftmaxPrecise(-1)
	}
	return withGradient([]*mlxc.Array{x},
		func(args []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{args[0].SoftmaxPrecise(-1)}
		},
		func(_, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{softmaxBackward(onCurrentDevice(), outputs[0], cotangents[0])}
		})[0]
}

// softmaxBackward returns dx.
func softmaxBackward(on launcher, y, dy *mlxc.Array) *mlxc.Array {
	if y.Size() == 0 {
		return zerosLike(y)[0]
	}
	width := y.Dim(-1)
	rows := y.Size() / width
	g := independentRowsOf(on.device, y.DType(), rows, width)
	n := counts(rows, width)
	defer free(n)
	dy = dy.AsType(y.DType())
	defer dy.Free()
	return on.launch(softmaxKernels.get("softmax_backward"), customkernels.Launch{
		Grid:        [3]int{g.groups * g.threads},
		Threadgroup: [3]int{g.threads},
		Template: []mlxc.TemplateArg{
			{Name: "T", Value: y.DType()},
			{Name: "C", Value: g.chunk},
			{Name: "R", Value: 2 * g.packs}, // y and dy, half of what the norms hold
		},
		Outputs: []mlxc.Output{{Shape: y.Shape(), DType: y.DType()}},
	}, y, dy, n[0], n[1])[0]
}

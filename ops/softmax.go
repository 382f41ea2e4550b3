package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var (
	softmaxKernels        = newShaderFile("softmax_backward.metal")
	softmaxForwardKernels = newShaderFile("softmax_forward.metal")
)

// Softmax is exp(x) divided by its sum over the last axis, with this project's gradient.
// The value is computed in float32: by MLX on a GPU, on a CPU by a kernel of this project,
// which takes a tenth of the time of MLX's.
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
	if err := checkRows("x", x); err != nil {
		return mlxc.InvalidArray(opError(op, err, x))
	}
	if !kernelsAvailable(op) {
		return x.SoftmaxPrecise(-1)
	}
	return withGradient([]*mlxc.Array{x},
		func(args []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{softmaxForward(currentTarget(), args[0])}
		},
		func(_, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{softmaxBackward(currentTarget(), outputs[0], cotangents[0])}
		})[0]
}

// softmaxForward returns y.
func softmaxForward(on target, x *mlxc.Array) *mlxc.Array {
	if on.backend != mlxc.BackendCPU || x.Size() == 0 {
		return x.SoftmaxPrecise(-1)
	}
	// x alone, a quarter of what the norms hold.
	return softmaxRows(on, softmaxForwardKernels.kernel("softmax_forward"), 4, x)
}

// softmaxBackward returns dx.
func softmaxBackward(on target, y, dy *mlxc.Array) *mlxc.Array {
	if y.Size() == 0 {
		return zerosLike(y)[0]
	}
	dy = dy.AsType(y.DType())
	defer dy.Free()
	// y and dy, half of what the norms hold.
	return softmaxRows(on, softmaxKernels.kernel("softmax_backward"), 2, y, dy)
}

// softmaxRows launches a kernel on arrays of the same rows, of each of which a thread
// holds so many times what one of a norm's four has of it.
func softmaxRows(on target, kernel *customkernels.Kernel, times int, inputs ...*mlxc.Array) *mlxc.Array {
	shape, dtype := inputs[0].Shape(), inputs[0].DType()
	width := shape[len(shape)-1]
	rows := inputs[0].Size() / width
	g := independentRowsOf(on.backend, dtype, rows, width)
	n := uint32Args(rows, width)
	return on.launch(kernel, customkernels.Launch{
		Grid:        [3]int{g.groups * g.threads},
		Threadgroup: [3]int{g.threads},
		Template: []mlxc.TemplateArg{
			{Name: "T", Value: dtype},
			{Name: "VEC", Value: g.chunk},
			{Name: "VECS_PER_THREAD", Value: times * g.packs},
		},
		Outputs: []mlxc.Output{{Shape: shape, DType: dtype}},
	}, append(inputs, n...)...)[0]
}

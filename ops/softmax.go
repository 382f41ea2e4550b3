package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var (
	softmaxKernels        = newShaderFile("softmax_backward.metal")
	softmaxForwardKernels = newShaderFile("softmax_forward.metal")
)

// Softmax returns exp(x) divided by its sum over the last axis, with this project's gradient. Arithmetic is float32.
// On a GPU, MLX computes the value. On a CPU, a faster kernel of this project does.
//
// x has shape (…,D) and is float32, float16 or bfloat16. The result has x's shape and dtype. A row that contains NaN or
// +∞, or only −∞, becomes NaN, and so does its gradient. In other rows the value and the gradient at −∞ are 0.
//
// With y = Softmax(x), the gradient is dx = y·(dy − Σ y·dy), where the sum is over the row. One kernel reads y and dy
// once. Elements of a row beyond the first 16,384 (8192 on a CPU) are read twice.
func Softmax(x *mlxc.Array) *mlxc.Array {
	const op = "ops.Softmax"
	if y := recorded(op, x); y != nil {
		return y[0]
	}
	if err := checkRows("x", x); err != nil {
		return mlxc.InvalidArray(opError(op, err, x))
	}
	if !kernelsAvailable(op) {
		return x.SoftmaxPrecise(-1)
	}
	return withGradient(op, []*mlxc.Array{x},
		func(args []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{softmaxForward(currentTarget(), args[0])}
		},
		func(_, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{softmaxBackward(currentTarget(), outputs[0], cotangents[0])}
		})[0]
}

func softmaxForward(on target, x *mlxc.Array) *mlxc.Array {
	if on.backend != mlxc.BackendCPU || x.Size() == 0 {
		return x.SoftmaxPrecise(-1)
	}
	return softmaxRows(on, softmaxForwardKernels.kernel("softmax_forward"), x)
}

// softmaxBackward returns dx.
func softmaxBackward(on target, y, dy *mlxc.Array) *mlxc.Array {
	if y.Size() == 0 {
		return zerosLike(y)[0]
	}
	dy = dy.AsType(y.DType())
	defer dy.Free()
	return softmaxRows(on, softmaxKernels.kernel("softmax_backward"), y, dy)
}

// softmaxRows launches a softmax kernel, which keeps the rows of its one or two inputs in registers.
func softmaxRows(on target, kernel *customkernels.Kernel, inputs ...*mlxc.Array) *mlxc.Array {
	shape, dtype := inputs[0].Shape(), inputs[0].DType()
	width := shape[len(shape)-1]
	rows := inputs[0].Size() / width
	g := softmaxGeometry(on.backend, dtype, rows, width, len(inputs))
	template := rowTemplate{dtype: dtype, geometry: g}
	args := template.args()
	if len(inputs) == 2 { // the gradient
		args = append(args, template.bypassArg())
	}
	return on.launch(kernel, customkernels.Launch{
		Grid:             [3]int{g.groups * g.threads},
		Threadgroup:      [3]int{g.threads},
		MinGroupsPerCore: g.groupsPerCore,
		Template:         args,
		Outputs:          []mlxc.Output{{Shape: shape, DType: dtype}},
	}, append(inputs, uint32Args(rows, width)...)...)[0]
}

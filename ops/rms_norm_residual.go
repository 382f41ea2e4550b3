package ops

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// RMSNormResidual returns the root-mean-square norm of x over the last axis plus a residual,
// residual + x·rsqrt(mean(x²)+eps)·weight, rounded once.
//
// x has shape (…,D) and is float32, float16 or bfloat16. residual and the result have x's shape and dtype. weight has
// shape (D) and x's dtype; nil stands for ones. eps must be finite and not negative.
//
// x and weight have the gradients of [RMSNorm]. The gradient of residual is the cotangent.
func RMSNormResidual(x, residual, weight *mlxc.Array, eps float32) *mlxc.Array {
	const op = "ops.RMSNormResidual"
	key := normKey{op, eps}
	if y := recorded(key, x, residual, weight); y != nil {
		return y[0]
	}
	if err := checkResidualNorm(x, residual, weight, eps); err != nil {
		return mlxc.InvalidArray(opError(op, err, x, residual, weight))
	}
	if !kernelsAvailable(op) {
		return residual.Add(mlxc.RMSNorm(x, weight, eps))
	}
	return withGradient(key, []*mlxc.Array{x, residual, weight},
		func(args []*mlxc.Array) []*mlxc.Array {
			return residualForward(currentTarget(), "rms_norm_residual", 1, args, eps)
		},
		func(primals, cotangents, _ []*mlxc.Array) []*mlxc.Array {
			dy := cotangents[0].AsType(primals[1].DType())
			grads := rmsNormBackward(currentTarget(), primals[0], primals[2], dy, eps)
			return []*mlxc.Array{grads[0], dy, grads[1]}
		})[0]
}

// AddRMSNorm returns h = x + residual and its root-mean-square norm over the last axis, h·rsqrt(mean(h²)+eps)·weight.
// One kernel computes both. h is rounded to x's dtype before it is normalized.
//
// x has shape (…,D) and is float32, float16 or bfloat16. residual and both results have x's shape and dtype. weight has
// shape (D) and x's dtype; nil stands for ones. eps must be finite and not negative.
//
// x and residual have the same gradient: dx of [RMSNorm] at h, plus the cotangent of h. One kernel computes it.
func AddRMSNorm(x, residual, weight *mlxc.Array, eps float32) (sum, norm *mlxc.Array) {
	const op = "ops.AddRMSNorm"
	key := normKey{op, eps}
	if both := recorded(key, x, residual, weight); both != nil {
		return both[0], both[1]
	}
	if err := checkResidualNorm(x, residual, weight, eps); err != nil {
		err = opError(op, err, x, residual, weight)
		return mlxc.InvalidArray(err), mlxc.InvalidArray(err)
	}
	if !kernelsAvailable(op) {
		sum = x.Add(residual)
		return sum, mlxc.RMSNorm(sum, weight, eps)
	}
	results := withGradient(key, []*mlxc.Array{x, residual, weight},
		func(args []*mlxc.Array) []*mlxc.Array {
			return residualForward(currentTarget(), "add_rms_norm", 2, args, eps)
		},
		func(primals, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			grads := rmsNormBackwardWithSum(currentTarget(), outputs[0], primals[2], cotangents[1], cotangents[0], eps)
			return []*mlxc.Array{grads[0], grads[0], grads[1]}
		})
	if len(results) != 2 { // a failed operation has one result, the error
		return results[0], results[0]
	}
	return results[0], results[1]
}

func checkResidualNorm(x, residual, weight *mlxc.Array, eps float32) error {
	if err := checkNorm(x, weight, eps); err != nil {
		return err
	}
	return checkLike("residual", residual, x)
}

// residualForward launches a kernel of rms_norm_residual.metal. args are x, residual and weight. The kernel has
// `outputs` outputs with x's shape and dtype.
func residualForward(on target, kernel string, outputs int, args []*mlxc.Array, eps float32) []*mlxc.Array {
	x, residual, weight := args[0], args[1], args[2]
	width := max(x.Dim(-1), 1)
	rows := x.Size() / width
	g := rowGeometryFor(on.backend, x.DType(), rows, width)
	template := rowTemplate{dtype: x.DType(), geometry: g, hasWeight: weight != nil}
	if weight == nil {
		weight = x // not read
	}
	return on.launch(residualKernels.kernel(kernel), customkernels.Launch{
		Grid:        [3]int{g.groups * g.threads},
		Threadgroup: [3]int{g.threads},
		Template:    template.weightedArgs(),
		Outputs:     slices.Repeat([]mlxc.Output{{Shape: x.Shape(), DType: x.DType()}}, outputs),
	}, append([]*mlxc.Array{x, residual, weight}, rowScalars(rows, width, eps)...)...)
}

var residualKernels = newShaderFile("rms_norm_residual.metal")

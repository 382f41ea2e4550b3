package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// RMSNorm is the root-mean-square norm over the last axis,
// x·rsqrt(mean(x²)+eps)·weight, with this project's gradient.
//
// x has shape (…,D) and is float32, float16 or bfloat16. weight has shape (D) and
// x's dtype; nil stands for ones. eps must not be negative. The result has x's
// shape and dtype.
//
// The gradient is that of three kernels, which keep rsqrt(mean(x²)+eps) of every
// row in float32 between them: with r that value, g = dy·weight and s = Σ g·x over
// a row, dx = r·(g − x·s·r²/D) and dweight = Σ dy·x·r over the rows.
func RMSNorm(x, weight *mlxc.Array, eps float32) *mlxc.Array {
	const op = "ops.RMSNorm"
	if err := checkNorm(x, weight, eps); err != nil {
		return mlxc.InvalidArray(normError(op, err, x, weight))
	}
	if !kernelsAvailable(op) {
		return mlxc.RMSNorm(x, weight, eps)
	}
	forward := func(args []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{mlxc.RMSNorm(args[0], at(args, 1), eps)}
	}
	backward := func(primals, cotangents, _ []*mlxc.Array) []*mlxc.Array {
		return rmsNormBackward(onCurrentDevice(), primals[0], at(primals, 1), cotangents[0], eps)
	}
	args := []*mlxc.Array{x}
	if weight != nil {
		args = append(args, weight)
	}
	return mlxc.CustomVJP(forward, backward)(args)[0]
}

// at returns element i, nil if there is none.
func at(arrays []*mlxc.Array, i int) *mlxc.Array {
	if i >= len(arrays) {
		return nil
	}
	return arrays[i]
}

// normError leaves an error alone that an operand brought with it.
func normError(op string, err error, operands ...*mlxc.Array) error {
	var carried *mlxc.Error
	if errors.As(err, &carried) {
		return err
	}
	return mlxc.NewError(op, err, operands...)
}

// checkNorm checks the arguments that the norms share.
func checkNorm(x, weight *mlxc.Array, eps float32) error {
	if err := x.Err(); err != nil {
		return err
	}
	if weight != nil {
		if err := weight.Err(); err != nil {
			return err
		}
	}
	if x.NDim() == 0 {
		return errors.New("x has no axis to normalise over")
	}
	if !slices.Contains(gradientDTypes, x.DType()) {
		return fmt.Errorf("x is %v: the gradient's kernels take float32, float16 and bfloat16; convert with AsType", x.DType())
	}
	if weight != nil {
		if weight.NDim() != 1 || weight.Dim(0) != x.Dim(-1) {
			return fmt.Errorf("weight must have one axis of %d elements, like x's last", x.Dim(-1))
		}
		if weight.DType() != x.DType() {
			return fmt.Errorf("x is %v and weight %v: convert one with AsType", x.DType(), weight.DType())
		}
	}
	if !(eps >= 0) || math.IsInf(float64(eps), 0) {
		return fmt.Errorf("eps is %v: it must be finite and not negative", eps)
	}
	return nil
}

// rmsNormBackward returns dx and, with a weight, dweight.
func rmsNormBackward(on launcher, x, weight, dy *mlxc.Array, eps float32) []*mlxc.Array {
	width := x.Dim(-1)
	if x.Size() == 0 {
		grads := []*mlxc.Array{mlxc.Zeros(x.DType(), x.Shape()...)}
		if weight != nil {
			grads = append(grads, mlxc.Zeros(weight.DType(), width))
		}
		return grads
	}
	dy = dy.AsType(x.DType())
	rows := x.Size() / width
	row := rowGeometry(on.device, width)
	groups := min(rows, row.groups)
	nRows, nWidth, scalarEps := mlxc.Scalar(uint32(rows)), mlxc.Scalar(uint32(width)), mlxc.Scalar(eps)
	defer nRows.Free()
	defer nWidth.Free()
	defer scalarEps.Free()
	dtype := mlxc.TemplateArg{Name: "T", Value: x.DType()}

	rmsInv := on.launch(rmsNormKernels.get("rms_norm_compute_rms_inv"), customkernels.Launch{
		Grid:        [3]int{groups * row.threads},
		Threadgroup: [3]int{row.threads},
		Template:    []mlxc.TemplateArg{dtype, {Name: "C", Value: row.chunk}},
		Outputs:     []mlxc.Output{{Shape: []int{rows}, DType: mlxc.Float32}},
	}, x, nRows, nWidth, scalarEps)[0]
	defer rmsInv.Free()

	w := weight
	if w == nil {
		w = dy // not read
	}
	dx := on.launch(rmsNormKernels.get("rms_norm_backward_dx"), customkernels.Launch{
		Grid:        [3]int{groups * row.threads},
		Threadgroup: [3]int{row.threads},
		Template:    []mlxc.TemplateArg{dtype, {Name: "C", Value: row.chunk}, {Name: "HAS_WEIGHT", Value: weight != nil}},
		Outputs:     []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}},
	}, x, w, dy, rmsInv, nRows, nWidth)[0]
	if weight == nil {
		return []*mlxc.Array{dx}
	}

	column := columnGeometry(on.device)
	lanes := min(column.threads, 32)
	columnGroups := (width + lanes*column.chunk - 1) / (lanes * column.chunk)
	dw := on.launch(rmsNormKernels.get("rms_norm_backward_dw"), customkernels.Launch{
		Grid:        [3]int{columnGroups * column.threads},
		Threadgroup: [3]int{column.threads},
		Template:    []mlxc.TemplateArg{dtype, {Name: "C", Value: column.chunk}},
		Outputs:     []mlxc.Output{{Shape: []int{width}, DType: weight.DType()}},
	}, x, dy, rmsInv, nRows, nWidth)[0]
	return []*mlxc.Array{dx, dw}
}

var rmsNormKernels = family("rms_norm_backward.metal")

package ops

import (
	"errors"
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// MatMul returns the matrix product a·b. It has gradients for a and b.
//
// a has shape (…,K) and dtype float32, float16 or bfloat16; b has shape (K,N) and a's dtype. The result has shape (…,N).
// With dy the cotangent of the result, da = dy·bᵀ and db = aᵀ·dy, where the axes of a before the last count as one.
//
// On Linux CPUs, MLX multiplies matrices with the reference BLAS, on one core and without vector instructions. There,
// kernels of this project compute the product and its gradients. They add in float32 and round once, and results have
// the same bits for any number of threads. On GPUs, on macOS and without a C++ compiler, MLX computes them.
func MatMul(a, b *mlxc.Array) *mlxc.Array {
	const op = "ops.MatMul"
	if err := checkMatMul(a, b); err != nil {
		return mlxc.InvalidArray(opError(op, err, a, b))
	}
	if !hasSlowProducts(currentTarget()) || !kernelsAvailable(op) {
		return a.MatMul(b)
	}
	return withGradient(op, []*mlxc.Array{a, b},
		func(args []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{matMulForward(currentTarget(), args[0], args[1])}
		},
		func(primals, cotangents, _ []*mlxc.Array) []*mlxc.Array {
			return matMulBackward(currentTarget(), primals[0], primals[1], cotangents[0])
		})[0]
}

func checkMatMul(a, b *mlxc.Array) error {
	if err := errors.Join(checkRows("a", a), requireArray("b", b)); err != nil {
		return err
	}
	switch {
	case b.NDim() != 2 || b.Dim(0) != a.Dim(-1):
		return fmt.Errorf("b has shape %v; it must be [%d, columns]: one row for each column of a, which has shape %v",
			b.Shape(), a.Dim(-1), a.Shape())
	case b.DType() != a.DType():
		return fmt.Errorf("a is %v and b is %v; they must be equal: convert one with AsType", a.DType(), b.DType())
	}
	return nil
}

// asMatrix returns x with its axes before the last as one.
func asMatrix(x *mlxc.Array) *mlxc.Array {
	rows := 1
	for _, n := range x.Shape()[:x.NDim()-1] {
		rows *= n
	}
	return x.Reshape(rows, x.Dim(-1))
}

func matMulForward(on target, a, b *mlxc.Array) *mlxc.Array {
	return scoped(func() []*mlxc.Array {
		shape := a.Shape()
		shape[len(shape)-1] = b.Dim(1)
		return []*mlxc.Array{matrixProduct(on, matrix{array: asMatrix(a)}, matrix{array: b}).Reshape(shape...)}
	})[0]
}

// matMulBackward returns da and db.
func matMulBackward(on target, a, b, dy *mlxc.Array) []*mlxc.Array {
	return scoped(func() []*mlxc.Array {
		dy := asMatrix(dy.AsType(a.DType()))
		da := matrixProduct(on, matrix{array: dy}, matrix{array: b, transposed: true})
		db := matrixProduct(on, matrix{array: asMatrix(a), transposed: true}, matrix{array: dy})
		return []*mlxc.Array{da.Reshape(a.Shape()...), db}
	})
}

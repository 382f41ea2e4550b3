package optim

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// GlobalNorm returns √Σx² over all elements of all arrays of a tree, of shape (). It is float32, or float64 if an array
// is.
func GlobalNorm[P any](t P) (*mlxc.Array, error) {
	arrays, err := tree.Flatten(t)
	if err != nil {
		return nil, err
	}
	var norm *mlxc.Array
	mlxc.WithScope(func() {
		sum := mlxc.Zeros(mlxc.Float32)
		for _, a := range arrays {
			sum = sum.Add(a.AsType(precise(a)).Square().Sum())
		}
		norm = sum.Sqrt().Keep()
	})
	return norm, norm.Err()
}

// ClipByGlobalNorm scales all gradients by limit/norm if their global norm exceeds limit, which must be positive
// (Pascanu et al., "On the difficulty of training recurrent neural networks", 2013, algorithm 1). It returns the
// gradients in their own dtypes, and the norm before clipping, of shape (). If the norm is NaN or infinite, all
// returned gradients are NaN. A float32 norm is infinite if an element exceeds about 2e19.
func ClipByGlobalNorm[P any](grads P, limit float64) (clipped P, norm *mlxc.Array, err error) {
	if !(limit > 0) {
		return clipped, nil, mlxc.NewError("optim.ClipByGlobalNorm", fmt.Errorf("the limit is %v: it must be positive",
			limit))
	}
	norm, err = GlobalNorm(grads)
	if err != nil {
		return clipped, nil, err
	}
	mlxc.WithScope(func() {
		// LessEqual is false for a NaN norm, so the factor becomes NaN.
		one := mlxc.Ones(norm.DType())
		longest := mlxc.Full(norm.DType(), mlxc.Scalar(float32(limit)))
		// For an infinite norm, longest/norm is 0 and would hide it; norm·0 makes the factor NaN.
		shorter := longest.Div(norm).Add(norm.MulScalar(0))
		factor := mlxc.Where(norm.LessEqual(longest), one, shorter)
		clipped, err = tree.Map(func(g *mlxc.Array) *mlxc.Array {
			d := precise(g)
			return g.AsType(d).Mul(factor.AsType(d)).AsType(g.DType()).Keep()
		}, grads)
	})
	return clipped, norm, err
}

// precise returns the dtype of arithmetic with an array: float64 for float64, else float32.
func precise(a *mlxc.Array) mlxc.DType {
	if a.DType() == mlxc.Float64 {
		return mlxc.Float64
	}
	return mlxc.Float32
}

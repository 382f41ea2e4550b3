package optim

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// GlobalNorm returns √Σ|x|² over all elements of all arrays of a tree, of shape (). It is float32, or float64 if an
// array is. Arrays of integers or booleans are an error.
func GlobalNorm[P any](t P) (*mlxc.Array, error) {
	arrays, err := tree.Flatten(t)
	if err != nil {
		return nil, err
	}
	for _, a := range arrays {
		if d := a.DType(); a.Err() == nil && !d.IsFloating() && d != mlxc.Complex64 {
			return nil, mlxc.NewError("optim.GlobalNorm", fmt.Errorf("the dtype of an array is %v: it must be "+
				"floating-point or complex", d))
		}
	}
	var norm *mlxc.Array
	mlxc.WithScope(func() {
		sum := mlxc.Zeros(mlxc.Float32)
		for _, a := range arrays {
			if a.DType() == mlxc.Complex64 {
				sum = sum.Add(a.Imag().Square().Sum())
				a = a.Real()
			}
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
		factor := mlxc.Where(norm.LessEqualScalar(limit), mlxc.Ones(norm.DType()), norm.RDivScalar(limit))
		factor = factor.Add(norm.MulScalar(0)) // NaN for a norm that is NaN or infinite
		clipped, err = tree.Map(func(g *mlxc.Array) *mlxc.Array {
			if g.DType() == mlxc.Complex64 {
				return g.Mul(factor.AsType(mlxc.Complex64)).Keep()
			}
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

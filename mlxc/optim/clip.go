package optim

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// GlobalNorm returns √Σx² over all elements of all arrays of a tree, in float32, or in
// float64 if one of them is. It has the shape ().
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

// ClipByGlobalNorm scales all gradients by the same factor, so that their global norm is
// at most limit, which must be positive: by limit/norm where the norm is larger, else
// not (Pascanu et al., "On the difficulty of training recurrent neural networks", 2013,
// algorithm 1). It returns them in their own dtypes, and the norm that they had, of
// shape (). Where that is infinite, as of float32 elements from 2e19 on, or not a number, none
// of the gradients that come back is a number.
func ClipByGlobalNorm[P any](grads P, limit float64) (clipped P, norm *mlxc.Array, err error) {
	if !(limit > 0) {
		return clipped, nil, mlxc.NewError("optim.ClipByGlobalNorm", fmt.Errorf("the limit is %v: it must be positive", limit))
	}
	norm, err = GlobalNorm(grads)
	if err != nil {
		return clipped, nil, err
	}
	mlxc.WithScope(func() {
		// With ≤, so that a norm that is not a number gives a factor that is none.
		one := mlxc.Ones(norm.DType())
		longest := mlxc.Full(norm.DType(), mlxc.Scalar(float32(limit)))
		// Of an infinite norm longest/norm is 0, which would hide it, and 0 times it is not a number.
		shorter := longest.Div(norm).Add(norm.MulScalar(0))
		factor := mlxc.Where(norm.LessEqual(longest), one, shorter)
		clipped, err = tree.Map(func(g *mlxc.Array) *mlxc.Array {
			d := precise(g)
			return g.AsType(d).Mul(factor.AsType(d)).AsType(g.DType()).Keep()
		}, grads)
	})
	return clipped, norm, err
}

// precise is the dtype of arithmetic with an array.
func precise(a *mlxc.Array) mlxc.DType {
	if a.DType() == mlxc.Float64 {
		return mlxc.Float64
	}
	return mlxc.Float32
}

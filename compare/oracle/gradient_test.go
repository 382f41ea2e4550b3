package oracle

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// requireGradient checks a gradient against its forward function at random inputs of the given shapes. It also requires
// that CheckDirectional detects a relative error of 1e-3 in each tensor of the gradient. The inputs in fixed follow the
// random inputs and are not differentiated.
func requireGradient(t *testing.T, f Func, gradient Gradient, shapes [][]int, fixed ...Tensor) {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, uint64(len(shapes))))
	var in []Tensor
	for _, shape := range shapes {
		in = append(in, New(shape...))
	}
	in = like(in, rng)
	constant := map[int]bool{}
	for _, x := range fixed {
		constant[len(in)] = true
		in = append(in, x)
	}
	require.NoError(t, CheckDirectional(f, gradient, in, constant, rng), "shapes %v", shapes)
	for k := range shapes {
		off := func(in, ct []Tensor) []Tensor {
			grads := gradient(in, ct)
			grads[k] = Tensor{Shape: grads[k].Shape, Data: append([]float64(nil), grads[k].Data...)}
			for i := range grads[k].Data {
				grads[k].Data[i] *= 1.001
			}
			return grads
		}
		require.Error(t, CheckDirectional(f, off, in, constant, rng), "gradient %d, shapes %v", k, shapes)
	}
}

// list and table return tensors of one and two axes.
func list(values ...float64) Tensor { return Tensor{Shape: []int{len(values)}, Data: values} }

func table(width int, values ...float64) Tensor {
	return Tensor{Shape: []int{len(values) / width, width}, Data: values}
}

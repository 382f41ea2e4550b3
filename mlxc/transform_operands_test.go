package mlxc_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// operandCase is an operation with several float32 operands.
// isThere reports whether MLX has a rule. A missing rule must be an error that says so.
func isThere(t *testing.T, err error, message ...any) bool {
	t.Helper()
	if err != nil {
		require.Regexp(t, "(?i)not (yet )?(implemented|supported)|NYI|Cannot calculate|Can only handle|invalid arg "+
			"index|No JVP", err.Error(), message...)
	}
	return err == nil
}

// Compares gradients with respect to every subset of operands with differences.
func TestGradientsOfEveryOperand(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	const h, off = 4e-3, 1e-2
	for name, c := range operandCases() {
		t.Run(name, func(t *testing.T) {
			value := c.f(c.operands)
			require.NoError(t, value.Err())
			cotangent := counting(value.Shape()...).AddScalar(1).Sin()
			for choice := 1; choice < 1<<len(c.operands); choice++ {
				var at []int
				var primals, directions arrays
				for i, a := range c.operands {
					if choice>>i&1 == 1 {
						at = append(at, i)
						primals, directions = append(primals, a), append(directions, normal(uint64(40+i), a.Shape()...))
					}
				}
				f := func(chosen arrays) arrays {
					all := append(arrays{}, c.operands...)
					for k, i := range at {
						all[i] = chosen[k]
					}
					return arrays{c.f(all)}
				}
				along := func(h float64) float64 {
					moved := make(arrays, len(at))
					for k := range at {
						moved[k] = primals[k].Add(directions[k].MulScalar(h))
					}
					sum := 0.0
					for _, v := range wide(t, f(moved)[0].Mul(cotangent)) {
						sum += v
					}
					return sum
				}
				want := (along(h) - along(-h)) / (2 * h)
				message := fmt.Sprintf("operands %v", at)
				_, grads, err := mlxc.VJP(f, primals, arrays{cotangent})
				if isThere(t, err, message) {
					got := 0.0
					for k := range at {
						require.Equal(t, primals[k].Shape(), grads[k].Shape(), message)
						got += wide(t, grads[k].Mul(directions[k]).Sum())[0]
					}
					require.InDelta(t, want, got, off*math.Max(1, math.Abs(want)), message)
				}
				_, tangents, err := mlxc.JVP(f, primals, directions)
				if isThere(t, err, message) {
					got := wide(t, tangents[0].Mul(cotangent).Sum())[0]
					require.InDelta(t, want, got, off*math.Max(1, math.Abs(want)), message)
				}
			}
		})
	}
}

// Compares Vmap over every subset of operands, and gradients inside it, with a loop.
func TestVmapOfEveryOperand(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	for name, c := range operandCases() {
		t.Run(name, func(t *testing.T) {
			value := c.f(c.operands)
			require.NoError(t, value.Err())
			cotangent := counting(value.Shape()...).AddScalar(1).Sin()
			gradient := func(a arrays) arrays {
				_, grads, err := mlxc.VJP(func(a arrays) arrays { return arrays{c.f(a)} }, a, arrays{cotangent})
				if err != nil {
					return arrays{mlxc.InvalidArray(err)}
				}
				return grads
			}
			for choice := 1; choice < 1<<len(c.operands); choice++ {
				axes, args := make([]int, len(c.operands)), make(arrays, len(c.operands))
				for i, a := range c.operands {
					axes[i], args[i] = mlxc.Unmapped, a
					if choice>>i&1 == 1 {
						axes[i], args[i] = 0, mlxc.Stack(0, a, a.MulScalar(1.1))
					}
				}
				for what, f := range map[string]mlxc.Func{
					"value":    func(a arrays) arrays { return arrays{c.f(a)} },
					"gradient": gradient,
				} {
					got := mlxc.Vmap(f, axes, nil)(args)
					if !isThere(t, got[0].Err(), what) {
						continue
					}
					for k := range 2 {
						one := make(arrays, len(args))
						for i, a := range args {
							one[i] = a
							if axes[i] == 0 {
								one[i] = at(a, k, 0)
							}
						}
						for i, want := range f(one) {
							require.InDeltaSlice(t, wide(t, want), wide(t, at(got[i], k, 0)), 1e-3,
								"%s of %v: result %d of element %d", what, axes, i, k)
						}
					}
				}
			}
		})
	}
}

// The gradient of MLX's pad, which is part of the gradient of a convolution's weight, reads past the end of the
// padding. The result usually has a wrong shape, which becomes an error.
func TestGradientsOfAnotherShape(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	x, w, c := normal(1, 2, 9, 4), normal(2, 6, 3, 4), mlxc.ConvConfig{Stride: []int{2}, Padding: []int{1}}
	weightGradient := func(a arrays) arrays {
		y := mlxc.Conv1D(a[0], w, c)
		_, grads, err := mlxc.VJP(func(b arrays) arrays { return arrays{mlxc.Conv1D(a[0], b[0], c)} }, arrays{w},
			arrays{mlxc.OnesLike(y)})
		require.NoError(t, err)
		return arrays{grads[0].Sum()}
	}
	for range 20 {
		_, byVJP, err := mlxc.VJP(weightGradient, arrays{x}, arrays{mlxc.Scalar[float32](1)})
		if err == nil {
			require.Equal(t, x.Shape(), byVJP[0].Shape())
		}
		byGrad, err := mlxc.Grad(weightGradient)(arrays{x})
		if err == nil {
			require.Equal(t, x.Shape(), byGrad[0].Shape())
		}
	}
}

// For empty arrays, MLX's gradient rules for products and for extremes would divide by the number of elements.
func TestDerivativesOfEmptyArrays(t *testing.T) {
	x := mlxc.Zeros(mlxc.Float32, 3, 0)
	for _, f := range []operation{
		func(a *mlxc.Array) *mlxc.Array { return a.Prod(1) },
		func(a *mlxc.Array) *mlxc.Array { return a.ProdKeepDims(1) },
		func(a *mlxc.Array) *mlxc.Array { return a.Square().Prod() },
	} {
		values, grads, err := mlxc.VJP(single(f), arrays{x}, arrays{mlxc.OnesLike(f(x))})
		require.NoError(t, err)
		requireClose(t, mlxc.OnesLike(f(x)), values[0])
		requireClose(t, x, grads[0])
		_, tangents, err := mlxc.JVP(single(f), arrays{x}, arrays{x})
		require.NoError(t, err)
		requireClose(t, mlxc.ZerosLike(f(x)), tangents[0])
	}
	one := mlxc.Ones(mlxc.Float32, 3, 1)
	for _, scan := range []func(a *mlxc.Array, axis int, c mlxc.ScanConfig) *mlxc.Array{
		(*mlxc.Array).CumMaxWith,
		(*mlxc.Array).CumMinWith,
	} {
		f := func(a *mlxc.Array) *mlxc.Array { return scan(a, 1, mlxc.ScanConfig{Exclusive: true}) }
		_, grads, err := mlxc.VJP(single(f), arrays{one}, arrays{one})
		require.NoError(t, err)
		requireClose(t, mlxc.ZerosLike(one), grads[0])
	}
}

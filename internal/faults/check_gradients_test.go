//go:build mlxheaders

package faults_test

import (
	"fmt"
	"math"
	"math/cmplx"

	mlx "github.com/mlxgrad/mlxgrad/internal/faults/unguarded"
)

var gradientChecks = map[string]check{
	"slice-gradient-single-element": func() string {
		f := func(x mlx.Array) mlx.Array { return x.Slice(0, 2, 2) }
		return floats(gradient(f, mlx.Full(0, 2), mlx.Full(1, 1)), 1, 0)
	},
	"rope-gradient-single-pair": func() string {
		f := func(x mlx.Array) mlx.Array { return x.RoPE(2, true, mlx.Array{}) }
		return floats(gradient(f, mlx.Full(1, 1, 1, 2), mlx.New([]float32{1, 2}, 1, 1, 2)), 1, 2)
	},
	"rope-offset-gradient": func() string {
		x := mlx.Full(1, 1, 1, 2)
		f := func(offset mlx.Array) mlx.Array { return x.RoPE(2, false, offset) }
		return floats(gradient(f, mlx.Scalar[int32](1), mlx.Full(1, 1, 1, 2)), 0)
	},
	"conv-gradient-asymmetric-padding": func() string { return convShapes(5, 1, 0, 1) },
	"conv-gradient-dilated-input":      func() string { return convShapes(2, 0, 3, 2) },
	"conv-gradient-large-padding":      func() string { return convShapes(3, 40, 40, 1) },
	"cummax-gradient-nan": func() string {
		nan := mlx.Full(float32(math.NaN()), 1000)
		f := func(x mlx.Array) mlx.Array { return x.CumMax(true) }
		return floats(gradient(f, nan, mlx.Full(1, 1000)).Sum(0), 1000)
	},
	"power-gradient-zero": func() string {
		f := func(x mlx.Array) mlx.Array { return x.Power(mlx.Scalar[float32](0)) }
		return floats(gradient(f, mlx.Scalar[float32](0), mlx.Scalar[float32](1)), 0)
	},
	"addmm-jvp": func() string {
		one := mlx.Full(1, 1, 1)
		ones := []mlx.Array{one, one, one}
		f := func(a []mlx.Array) []mlx.Array { return []mlx.Array{a[0].AddMM(a[1], a[2], 2, 3)} }
		return floats(mlx.JVP(f, ones, ones)[0], 3+2+2)
	},
	"block-masked-mm-mask-gradient": func() string {
		ones := mlx.Full(1, 32, 32)
		f := func(mask mlx.Array) mlx.Array { return ones.BlockMaskedMM(ones, mask) }
		return floats(gradient(f, mlx.Full(2, 1, 1), ones), 32*32*32)
	},
	"gather-mm-gradient-sorted": func() string {
		ids := mlx.New([]uint32{0, 0, 1}, 3)
		of := func(sorted bool) []float32 {
			f := func(a []mlx.Array) []mlx.Array { return []mlx.Array{a[0].GatherMM(a[1], ids, sorted)} }
			operands := []mlx.Array{mlx.Arange(4).Reshape(1, 1, 4), mlx.Arange(40).Reshape(2, 4, 5)}
			return mlx.VJP(f, operands, []mlx.Array{mlx.Arange(15).Reshape(3, 1, 5)})[1].Read()
		}
		return differ(of(true), of(false))
	},
	"gather-qmm-scale-gradient": func() string {
		w, scales, biases := mlx.Arange(64*64).Reshape(64, 64).Quantize()
		w, scales, biases = w.Reshape(1, 64, 16), scales.Reshape(1, 64, 1), biases.Reshape(1, 64, 1)
		f := func(biases mlx.Array) mlx.Array {
			return mlx.Arange(64).Reshape(1, 1, 64).GatherQMM(w, scales, biases, mlx.New([]uint32{0}, 1))
		}
		var want []float32
		for i := range 64 {
			want = append(want, float32(64*i))
		}
		return floats(gradient(f, biases, mlx.Full(1, 1, 1, 64)), want...)
	},
	"pad-value-gradient": func() string {
		f := func(value mlx.Array) mlx.Array { return mlx.Full(0, 3).Pad(value) }
		return floats(gradient(f, mlx.Scalar[float32](1), mlx.Full(1, 5)), 2)
	},
	"vjp-output-twice": func() string {
		f := func(a []mlx.Array) []mlx.Array {
			y := a[0].Mul(mlx.Scalar[float32](2))
			return []mlx.Array{y, y}
		}
		one := mlx.Scalar[float32](1)
		return floats(mlx.VJP(f, []mlx.Array{one}, []mlx.Array{one, one})[0], 4)
	},
	"nested-gradient-untraces": func() string {
		x := mlx.Full(1, 3)
		f := func(p mlx.Array) mlx.Array {
			y := p.Mul(mlx.Scalar[float32](2))
			mlx.VJP(mlx.Of(func(a mlx.Array) mlx.Array { return a.Mul(y) }), []mlx.Array{x}, []mlx.Array{x})
			mlx.Eval(y)
			return y
		}
		return floats(gradient(f, x, x), 2, 2, 2)
	},
}

// convShapes compares the shapes of the gradients of a convolution of n elements, `dilation` apart, with their operands.
func convShapes(n, low, high, dilation int) string {
	x, w := mlx.Full(1, 1, n, 1), mlx.Full(1, 1, 3, 1)
	f := func(a []mlx.Array) []mlx.Array { return []mlx.Array{a[0].Conv1D(a[1], low, high, dilation)} }
	grads := mlx.VJP(f, []mlx.Array{x, w}, []mlx.Array{mlx.Full(1, 1, (n-1)*dilation+1+low+high-2, 1)})
	if d := differ(grads[0].Shape(), x.Shape()); d != "" {
		return d
	}
	return differ(grads[1].Shape(), w.Shape())
}

var complexChecks = map[string]check{
	"complex-vjp-conjugate": func() string {
		z := complex128(0.3 + 0.4i)
		return near(gradient(mlx.Array.Sqrt, mlx.Scalar(complex64(z)), mlx.Scalar[complex64](1)), cmplx.Conj(0.5/cmplx.Sqrt(z)))
	},
	"complex-power-vjp": func() string {
		z, p := complex128(0.3+0.4i), complex128(1.5+0.5i)
		f := func(z mlx.Array) mlx.Array { return z.Power(mlx.Scalar(complex64(p))) }
		return near(gradient(f, mlx.Scalar(complex64(z)), mlx.Scalar[complex64](1)), cmplx.Conj(p*cmplx.Pow(z, p-1)))
	},
	"complex-sign-gradient": func() string {
		one := []mlx.Array{mlx.Scalar[complex64](1)}
		return near(mlx.JVP(mlx.Of(mlx.Array.Sign), []mlx.Array{mlx.Scalar[complex64](3 + 4i)}, one)[0], 0.128-0.096i)
	},
}

// near returns "" if a is the number, up to rounding.
func near(a mlx.Array, want complex128) string {
	if got := a.ReadComplex()[0]; cmplx.Abs(complex128(got)-want) > 1e-4 {
		return fmt.Sprintf("%v instead of %v", got, want)
	}
	return ""
}

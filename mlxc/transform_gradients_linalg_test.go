package mlxc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Gradients of MLX, and of compositions in this package, along a random direction: the derivative of ⟨c, f(x)⟩ equals a
// central difference.
func TestGradientsOfLinearAlgebra(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	other := mlxtest.Dominant(30, 4, 4)
	ids := mlxc.MatMulIDs{Left: mlxc.FromSlice([]uint32{0, 1, 1}), Right: mlxc.FromSlice([]uint32{1, 0, 1})}
	weight := normal(31, 64, 64).Quantize(mlxc.QuantizeConfig{})
	abs2 := func(a *mlxc.Array) *mlxc.Array { return a.Abs().Square() }
	for name, c := range map[string]struct {
		x *mlxc.Array
		f func(a *mlxc.Array) *mlxc.Array
	}{
		"solve b":     {normal(8, 4, 2), func(b *mlxc.Array) *mlxc.Array { return other.Solve(b) }},
		"norm":        {normal(10, 3, 4), func(a *mlxc.Array) *mlxc.Array { return a.Norm(1) }},
		"norm of all": {normal(10, 3, 4), func(a *mlxc.Array) *mlxc.Array { return a.Norm() }},
		"norm 3":      {normal(10, 3, 4), func(a *mlxc.Array) *mlxc.Array { return a.NormOrd(3, 0) }},
		"cross":       {normal(11, 2, 3), func(a *mlxc.Array) *mlxc.Array { return a.Cross(normal(12, 3), -1) }},
		"fft":         {normal(13, 2, 5), func(a *mlxc.Array) *mlxc.Array { return abs2(a.FFT(mlxc.FFTConfig{N: []int{7}})) }},
		"rfft":        {normal(13, 2, 6), func(a *mlxc.Array) *mlxc.Array { return abs2(a.RFFT(mlxc.FFTConfig{})) }},
		"rfft2 ortho": {normal(13, 4, 5), func(a *mlxc.Array) *mlxc.Array { return abs2(a.RFFT2(mlxc.FFTConfig{Norm: mlxc.FFTOrtho})) }},
		"irfft":       {normal(14, 2, 4), func(a *mlxc.Array) *mlxc.Array { return a.IRFFT(mlxc.FFTConfig{}) }},
		"irfft odd":   {normal(14, 2, 4), func(a *mlxc.Array) *mlxc.Array { return a.IRFFT(mlxc.FFTConfig{N: []int{7}}) }},
		"fftshift":    {normal(14, 5), func(a *mlxc.Array) *mlxc.Array { return a.FFTShift().Mul(a) }},
		"addmm":       {normal(15, 3, 4), func(a *mlxc.Array) *mlxc.Array { return a.Sum(0).AddMM(a, other, 2, -3) }},
		"inner":       {normal(15, 3, 4), func(a *mlxc.Array) *mlxc.Array { return a.Inner(a) }},
		"outer":       {normal(15, 4), func(a *mlxc.Array) *mlxc.Array { return a.Outer(a) }},
		"kron":        {normal(15, 2, 2), func(a *mlxc.Array) *mlxc.Array { return a.Kron(a) }},
		"vecdot":      {normal(15, 2, 3), func(a *mlxc.Array) *mlxc.Array { return a.VecDot(a.Square(), 0) }},
		"tensordot": {normal(15, 2, 3, 4), func(a *mlxc.Array) *mlxc.Array {
			return a.TensorDot(a, []int{0, 2},
				[]int{0, 2})
		}},
		"einsum": {normal(15, 4, 4), func(a *mlxc.Array) *mlxc.Array {
			return mlxc.Einsum("ij,kj,ki->k", a,
				other, a)
		}},
		"hadamard": {normal(15, 2, 8), func(a *mlxc.Array) *mlxc.Array { return a.HadamardTransform(0).Square() }},
		"gather_mm left": {normal(16, 2, 3, 4), func(a *mlxc.Array) *mlxc.Array {
			return a.GatherMM(normal(17, 2, 4,
				5), ids)
		}},
		"gather_mm right": {normal(16, 2, 4, 5), func(b *mlxc.Array) *mlxc.Array {
			return normal(17, 2, 3,
				4).GatherMM(b, ids)
		}},
		"block_masked_mm": {normal(18, 40, 33), func(a *mlxc.Array) *mlxc.Array {
			return a.BlockMaskedMM(normal(19, 33, 35),
				mlxc.BlockMasks{Size: 32, Left: mlxc.FromSlice([]bool{true, false, true, true}, 2, 2)})
		}},
		"conv1d": {normal(20, 2, 9, 4), func(a *mlxc.Array) *mlxc.Array {
			return mlxc.Conv1D(a, normal(21, 6, 3, 2), mlxc.ConvConfig{Stride: []int{2}, Padding: []int{1}, Groups: 2})
		}},
		"conv2d": {normal(20, 1, 5, 6, 2), func(a *mlxc.Array) *mlxc.Array {
			return mlxc.Conv2D(a, normal(21, 3, 2, 3, 2), mlxc.ConvConfig{Stride: []int{2, 1}, Dilation: []int{2, 1}})
		}},
		"conv2d weight": {normal(21, 3, 2, 3, 2), func(w *mlxc.Array) *mlxc.Array {
			return mlxc.Conv2D(normal(20, 2, 5, 6, 2), w, mlxc.ConvConfig{Stride: []int{2, 1}, Padding: []int{1}})
		}},
		"conv3d weight": {normal(21, 2, 2, 2, 2, 2), func(w *mlxc.Array) *mlxc.Array {
			return mlxc.Conv3D(normal(20, 1, 3, 4, 3, 2), w, mlxc.ConvConfig{Padding: []int{1}})
		}},
		"conv_transpose2d": {normal(20, 1, 3, 4, 2), func(a *mlxc.Array) *mlxc.Array {
			return mlxc.ConvTranspose2D(a, normal(21, 3, 2, 3, 2), mlxc.ConvTransposeConfig{
				Stride:  []int{2, 3},
				Padding: []int{1}, OutputPadding: []int{1},
			})
		}},
		"conv_transpose1d weight": {normal(21, 3, 3, 2), func(w *mlxc.Array) *mlxc.Array {
			return mlxc.ConvTranspose1D(normal(20, 1, 4, 2), w, mlxc.ConvTransposeConfig{Stride: []int{2}})
		}},
		"conv_general": {normal(20, 1, 5, 2), func(a *mlxc.Array) *mlxc.Array {
			return mlxc.ConvGeneral(a, normal(21, 3, 2, 2), mlxc.ConvGeneralConfig{
				Stride:      []int{2},
				PaddingHigh: []int{3},
			})
		}},
		"conv_general weight": {normal(21, 3, 2, 2), func(w *mlxc.Array) *mlxc.Array {
			return mlxc.ConvGeneral(normal(20, 1, 5, 2), w, mlxc.ConvGeneralConfig{
				Stride:        []int{2},
				InputDilation: []int{3},
			})
		}},
		"conv_transpose1d output padding": {normal(20, 1, 5, 2), func(a *mlxc.Array) *mlxc.Array {
			return mlxc.ConvTranspose1D(a, normal(21, 3, 2, 2), mlxc.ConvTransposeConfig{OutputPadding: []int{1}})
		}},
		"conv_transpose1d output padding, stride": {normal(20, 1, 5, 2), func(a *mlxc.Array) *mlxc.Array {
			return mlxc.ConvTranspose1D(a, normal(21, 3, 3, 2), mlxc.ConvTransposeConfig{
				OutputPadding: []int{2},
				Stride:        []int{2}, Padding: []int{1}, Dilation: []int{2},
			})
		}},
		"conv_transpose1d output padding, weight": {normal(21, 3, 3, 2), func(w *mlxc.Array) *mlxc.Array {
			return mlxc.ConvTranspose1D(normal(20, 1, 5, 2), w, mlxc.ConvTransposeConfig{
				OutputPadding: []int{2},
				Stride:        []int{2}, Padding: []int{1}, Dilation: []int{2},
			})
		}},
		"conv_general flipped": {normal(20, 1, 5, 2), func(a *mlxc.Array) *mlxc.Array {
			return mlxc.ConvGeneral(a, normal(21, 3, 2, 2), mlxc.ConvGeneralConfig{
				Flip: true, InputDilation: []int{2},
				PaddingLow: []int{1},
			})
		}},
		"quantized_matmul": {
			normal(22, 3, 64),
			func(a *mlxc.Array) *mlxc.Array { return a.QuantizedMatMul(weight, true) },
		},
		"quantized_matmul columns": {
			normal(22, 3, 64),
			func(a *mlxc.Array) *mlxc.Array { return a.QuantizedMatMul(weight, false) },
		},
		"softmax": {normal(23, 2, 5), func(a *mlxc.Array) *mlxc.Array { return a.Softmax(0) }},
		"rope": {
			normal(24, 1, 2, 3, 6),
			func(a *mlxc.Array) *mlxc.Array { return mlxc.RoPE(a, mlxc.RoPEConfig{Dims: 4}) },
		},
		"rope traditional": {normal(24, 1, 2, 3, 6), func(a *mlxc.Array) *mlxc.Array {
			return mlxc.RoPE(a, mlxc.RoPEConfig{Dims: 4, Traditional: true, Offset: 2})
		}},
		"rope of two": {normal(24, 1, 2, 3, 6), func(a *mlxc.Array) *mlxc.Array {
			return mlxc.RoPE(a,
				mlxc.RoPEConfig{Dims: 2, Traditional: true})
		}},
		"rope dynamic": {normal(24, 2, 2, 3, 4), func(a *mlxc.Array) *mlxc.Array {
			return mlxc.RoPEDynamic(a, mlxc.FromSlice([]int32{1, 5}), mlxc.RoPEConfig{})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			y := c.f(c.x)
			require.NoError(t, y.Err())
			cotangent, direction := normal(40, y.Shape()...), normal(41, c.x.Shape()...)
			_, grads, err := mlxc.VJP(single(c.f), arrays{c.x}, arrays{cotangent})
			require.NoError(t, err)
			const h = 1e-2
			along := func(step float64) *mlxc.Array {
				return c.f(c.x.Add(direction.MulScalar(step))).Mul(cotangent).AsType(mlxc.Float64).Sum()
			}
			want := wide(t, along(h).Sub(along(-h)).DivScalar(2*h))
			// The tolerance covers rounding of both sums' terms.
			scale := wide(t, grads[0].Mul(direction).Abs().Sum())[0]
			require.InDelta(t, want[0], wide(t, grads[0].Mul(direction).Sum())[0], 2e-3*max(scale, 1))
		})
	}
}

// MLX has no gradient for factorizations.
func TestLinearAlgebraWithoutGradients(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	for name, f := range map[string]func(a *mlxc.Array) *mlxc.Array{
		"Inverse":  (*mlxc.Array).Inv,
		"Cholesky": func(a *mlxc.Array) *mlxc.Array { return a.Cholesky(false) },
		"LUF":      (*mlxc.Array).Det,
		"Eigh":     func(a *mlxc.Array) *mlxc.Array { return a.Eigvalsh(false) },
		"SVD":      (*mlxc.Array).SingularValues,
	} {
		a := mlxtest.Dominant(1, 4, 4)
		_, _, err := mlxc.VJP(single(f), arrays{a}, arrays{f(a)})
		require.ErrorContains(t, err, "Not implemented for "+name+". (MLX has no gradient for this operation: use "+
			"StopGradient")
	}
}

// With alpha or beta 0, AddMM ignores infinities and NaN in every mode.
func TestAddMMIgnoresOperands(t *testing.T) {
	inf := mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(math.Inf(1))), 2, 2)
	ones := mlxc.Ones(mlxc.Float32, 2, 2)
	for _, c := range []struct {
		a, x        *mlxc.Array
		alpha, beta float32
		want        float32
	}{{inf, ones, 1, 0, 2}, {inf, ones, 2, 0, 4}, {ones, inf, 0, 1, 1}, {ones, inf, 0, 3, 3}} {
		want := []float32{c.want, c.want, c.want, c.want}
		f := func(x arrays) arrays { return arrays{x[0].AddMM(x[1], x[2], c.alpha, c.beta)} }
		in := arrays{c.a, c.x, c.x}
		require.Equal(t, want, floats(t, f(in)[0]))
		compiled, err := mlxc.Compile(f).Call(in...)
		require.NoError(t, err)
		require.Equal(t, want, floats(t, compiled[0]))
		out, _, err := mlxc.VJP(f, in, arrays{ones})
		require.NoError(t, err)
		require.Equal(t, want, floats(t, out[0]))
	}
}

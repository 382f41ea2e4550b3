package mlxc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Wrong calls of linear algebra, transforms, random numbers, convolutions and quantized arrays, and the required parts
// of their errors. MLX would end the process for many of them.
func TestWrongLinearAlgebra(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	m, v := normal(1, 3, 4), normal(2, 4)
	square, ints, empty := normal(3, 3, 3), mlxc.Ones(mlxc.Int32, 3, 3), mlxc.Zeros(mlxc.Float32, 0, 64)
	key := mlxc.RandomKey(1)
	nan := mlxc.FromSlice([]float32{float32(math.NaN()), 1, 1, 2}, 2, 2)
	second := func(_, b *mlxc.Array) error { return b.Err() }
	third := func(_, _, c *mlxc.Array) error { return c.Err() }
	q := normal(4, 64, 64).Quantize(mlxc.QuantizeConfig{})
	x := normal(5, 2, 64)
	scaled := q
	scaled.GlobalScale = mlxc.Scalar[float32](2)
	signal, kernel := normal(6, 1, 8, 4), normal(7, 2, 3, 4)
	onGPU := func(f func() *mlxc.Array) (err error) {
		mlxc.WithPlaceholderGPU(func() { err = f().Err() })
		return err
	}
	for _, c := range []struct {
		name  string
		err   error
		parts []string
	}{
		{"an inverse of a matrix that is not square", m.Inv().Err(), []string{"linalg_inv", "float32(3,4)", "square"}},
		{"an inverse of integers", ints.Inv().Err(), []string{"linalg_inv", "int32(3,3)", "float32 or float64"}},
		{"an inverse of a vector", v.Inv().Err(), []string{"linalg_inv", "float32(4)", "2 dimensions"}},
		{
			"a singular matrix", mlxc.Eval(mlxc.Ones(mlxc.Float32, 2, 2).Inv()),
			[]string{"Eval", "LU factorization failed"},
		},
		{"linear algebra on a GPU", onGPU(square.Inv), []string{"linalg_inv", "float32(3,3)", "WithDevice(CPU, …)"}},
		{
			"factors on a GPU", onGPU(func() *mlxc.Array { _, _, vh := square.SVD(); return vh }),
			[]string{"linalg_svd", "WithDevice(CPU, …)"},
		},
		{"the second of two factors", second(m.Eig()), []string{"linalg_eig", "square"}},
		{"the third of three factors", third(ints.LU()), []string{"linalg_lu", "int32(3,3)"}},
		{"singular values of a vector", v.SingularValues().Err(), []string{"linalg_svd", "float32(4)"}},
		{
			"a right-hand side of another size", square.Solve(v).Err(),
			[]string{"linalg_solve", "float32(3,3), float32(4)"},
		},
		{"a cross product of 4 elements", v.Cross(v, 0).Err(), []string{"cross", "2 or 3"}},
		{"a norm over three axes", normal(8, 2, 2, 2).Norm(0, 1, 2).Err(), []string{"norm", "too many axes"}},
		{"an unknown norm", square.NormOrd(3).Err(), []string{"norm", "Invalid ord 3"}},
		{"an inner product of different sizes", m.Inner(square).Err(), []string{
			"inner", "float32(3,4), float32(3,3)",
			"last dimension",
		}},
		{"a product of integers", ints.MatMul(ints).Err(), []string{
			"matmul", "int32(3,3), int32(3,3)",
			"floating point",
		}},
		{"tensordot's axis", m.TensorDot(v, []int{2}, []int{0}).Err(), []string{"tensordot", "no axis 2"}},
		{
			"tensordot's axis twice", m.TensorDot(m, []int{0, -2}, []int{0, 1}).Err(),
			[]string{"tensordot", "axis -2 of operand 1 is repeated"},
		},
		{"an invalid subscript", mlxc.Einsum("i(->", m).Err(), []string{"einsum", "letters"}},
		{"subscripts for another array", mlxc.Einsum("ijk->i", m).Err(), []string{"einsum", "float32(3,4)", "3"}},
		{
			"hadamard_transform of 11 elements", normal(9, 2, 11).HadamardTransform(0).Err(),
			[]string{"hadamard_transform", "size 11"},
		},
		{
			"hadamard_transform of 6 elements", normal(9, 2, 6).HadamardTransform(0).Err(),
			[]string{"hadamard_transform", "size 6"},
		},
		{
			"segmented_mm of different inner sizes", m.SegmentedMM(square, mlxc.Zeros(mlxc.Uint32, 1, 2)).Err(),
			[]string{"segmented_mm", "a has 4 columns, but b has 3 rows"},
		},
		{
			"segmented_mm of batches", normal(10, 2, 3, 3).SegmentedMM(square, mlxc.Zeros(mlxc.Uint32, 1, 2)).Err(),
			[]string{"segmented_mm", "must be matrices"},
		},
		{
			"blocks of 33", square.BlockMaskedMM(square, mlxc.BlockMasks{Size: 33, Out: mlxc.Ones(mlxc.Bool, 1, 1)}).Err(),
			[]string{"block_masked_mm", "32, 64"},
		},
		{"ids of matrices in an empty batch", mlxc.Zeros(mlxc.Float32, 0, 3, 3).GatherMM(square,
			mlxc.MatMulIDs{Left: mlxc.Zeros(mlxc.Int32, 1)}).Err(), []string{"gather_mm", "the batch is empty"}},
		{
			"float ids of matrices", square.GatherMM(square, mlxc.MatMulIDs{Right: v}).Err(),
			[]string{"gather_mm", "the ids are float32"},
		},
		{
			"gather_mm of float16", square.AsType(mlxc.Float16).GatherMM(square.AsType(mlxc.Float16),
				mlxc.MatMulIDs{}).Err(),
			[]string{"gather_mm", "float16(3,3)", "float32 only"},
		},

		{
			"a transform of a scalar", mlxc.Scalar[float32](1).FFT(mlxc.FFTConfig{}).Err(),
			[]string{"fft", "float32()", "0 axes"},
		},
		{"a transform of two axes", v.FFT2(mlxc.FFTConfig{}).Err(), []string{"fft2", "must have 2 or more"}},
		{
			"a transform along two axes of one", m.FFT(mlxc.FFTConfig{Axes: []int{0, 1}}).Err(),
			[]string{"fft", "the axes are [0 1]: the number of axes must be 1"},
		},
		{"a transform's axis", m.FFTN(mlxc.FFTConfig{Axes: []int{2}}).Err(), []string{"fftn", "no axis 2"}},
		{
			"a transform's axis twice", m.FFTN(mlxc.FFTConfig{Axes: []int{1, -1}}).Err(),
			[]string{"fftn", "Duplicated axis"},
		},
		{
			"a transform of an empty axis", mlxc.Zeros(mlxc.Float32, 2, 0).RFFT(mlxc.FFTConfig{}).Err(),
			[]string{"rfft", "the transform is 0"},
		},
		{"a transform of a negative size", m.IFFT(mlxc.FFTConfig{N: []int{-1}}).Err(), []string{"ifft", "the transform is -1"}},
		{
			"fewer transform sizes than axes", m.IRFFTN(mlxc.FFTConfig{N: []int{3}}).Err(),
			[]string{"irfftn", "[3]", "[0 1]"},
		},
		{"a huge transform", m.FFTN(mlxc.FFTConfig{N: []int{1 << 30, 1 << 30}}).Err(), []string{"fftn", "address space"}},
		{"an unknown FFT norm", m.FFT(mlxc.FFTConfig{Norm: 3}).Err(), []string{"fft", "Norm is 3"}},
		{"fftfreq of 0 samples", mlxc.FFTFreq(0, 1).Err(), []string{"fftfreq", "n and d"}},
		{"rfftfreq with a spacing of 0", mlxc.RFFTFreq(4, 0).Err(), []string{"rfftfreq", "n and d"}},
		{"a window of negative size", mlxc.Hanning(-1).Err(), []string{"hanning", "-1 samples"}},
		{"a window beyond 32 bits", mlxc.Bartlett(1 << 40).Err(), []string{"bartlett", "32 bits"}},

		{
			"random bits of a float dtype", mlxc.RandomBits(key, mlxc.Float32, 2).Err(),
			[]string{"random_bits", "float32", "uint8, uint16 or uint32"},
		},
		{
			"a negative shape", mlxc.RandomGumbel(key, mlxc.Float32, 2, -3).Err(),
			[]string{"random_gumbel", "negative axis"},
		},
		{
			"a shape beyond memory", mlxc.RandomBernoulli(key, mlxc.Scalar[float32](0.5), 1<<30, 1<<30).Err(),
			[]string{"random_bernoulli", "address space"},
		},
		{
			"integers beyond int8", mlxc.RandomInt(key, 0, 129, mlxc.Int8, 2).Err(),
			[]string{"random_randint", "int8 holds -128 … 127, but the range is 0 … 128"},
		},
		{
			"integers below 0", mlxc.RandomInt(key, -1, 3, mlxc.Uint64, 2).Err(),
			[]string{"uint64 holds 0 … 9223372036854775807"},
		},
		{
			"an empty range of integers", mlxc.RandomInt(key, 3, 3, mlxc.Int32, 2).Err(),
			[]string{"random_randint", "high is 3"},
		},
		{
			"integer probabilities", mlxc.RandomBernoulli(key, ints).Err(),
			[]string{"random_bernoulli", "float"},
		},
		{
			"means of another shape", mlxc.RandomNormalBroadcast(key, m, nil, mlxc.Float32, 4).Err(),
			[]string{"random_normal", "(3,4) cannot be broadcast to (4)"},
		},
		{
			"categorical without classes", mlxc.RandomCategorical(key, mlxc.Zeros(mlxc.Float32, 2, 0), -1).Err(),
			[]string{"random_categorical", "no class"},
		},
		{"categorical's axis", mlxc.RandomCategorical(key, m, 2).Err(), []string{"random_categorical", "no axis 2"}},
		{
			"categorical with 0 draws", mlxc.RandomCategoricalN(key, m, 1, 0).Err(),
			[]string{"random_categorical", "0 draws"},
		},
		{"permutation's axis", mlxc.RandomPermutation(key, m, 2).Err(), []string{"random_permutation", "no axis 2"}},
		{
			"a permutation of negative size", mlxc.RandomPermutationArange(key, -1).Err(),
			[]string{"random_permutation", "n is -1"},
		},
		{"a split into 0 keys", mlxc.RandomSplit(key, 0)[0].Err(), []string{"random_split", "0 keys"}},
		{
			"covariances of another size", mlxc.RandomMultivariateNormal(key, v, square, 2).Err(),
			[]string{"random_multivariate_normal", "compatible"},
		},

		{
			"a convolution of a vector", mlxc.Conv1D(v, v, mlxc.ConvConfig{}).Err(),
			[]string{"conv1d", "float32(4)", "must have 3"},
		},
		{
			"a convolution of other channels", mlxc.Conv1D(signal, normal(7, 2, 3, 3), mlxc.ConvConfig{}).Err(),
			[]string{"conv", "float32(1,8,4), float32(2,3,3)", "channels"},
		},
		{
			"conv1d of an empty batch", mlxc.Conv1D(mlxc.Zeros(mlxc.Float32, 0, 8, 4), kernel, mlxc.ConvConfig{}).Err(),
			[]string{"conv1d", "an axis of size 0"},
		},
		{
			"a stride of 0", mlxc.Conv1D(signal, kernel, mlxc.ConvConfig{Stride: []int{0}}).Err(),
			[]string{"conv1d", "stride is 0"},
		},
		{
			"strides for other axes", mlxc.Conv1D(signal, kernel, mlxc.ConvConfig{Stride: []int{1, 2}}).Err(),
			[]string{"conv1d", "2 entries"},
		},
		{
			"a kernel beyond the input", mlxc.Conv1D(signal, kernel, mlxc.ConvConfig{Dilation: []int{4}}).Err(),
			[]string{"conv1d", "spans 9", "only 8"},
		},
		{
			"a padding beyond 32 bits", mlxc.Conv1D(signal, kernel, mlxc.ConvConfig{Padding: []int{1 << 30}}).Err(),
			[]string{"conv1d", "2³¹−1"},
		},
		{
			"a negative number of groups", mlxc.Conv1D(signal, kernel, mlxc.ConvConfig{Groups: -1}).Err(),
			[]string{"conv1d", "Groups is -1"},
		},
		{
			"a convolution of float64", mlxc.Conv1D(signal.AsType(mlxc.Float64), kernel, mlxc.ConvConfig{}).Err(),
			[]string{"conv1d", "float64(1,8,4)", "AsType(Float32)"},
		},
		{"a convolution with complex numbers", mlxc.Conv1D(signal, kernel.AsType(mlxc.Complex64),
			mlxc.ConvConfig{}).Err(), []string{"conv1d", "complex64(", "real and imaginary"}},
		{"a transposed convolution of complex numbers", mlxc.ConvTranspose1D(signal.AsType(mlxc.Complex64), kernel,
			mlxc.ConvTransposeConfig{}).Err(), []string{"conv_transpose1d", "complex64(1,8,4)", "real and imaginary"}},
		{"a transposed stride of 0", mlxc.ConvTranspose1D(signal, kernel,
			mlxc.ConvTransposeConfig{Stride: []int{0}}).Err(), []string{"conv_transpose1d", "the stride is 0"}},
		{"padding beyond the kernel", mlxc.ConvTranspose1D(signal, kernel,
			mlxc.ConvTransposeConfig{Padding: []int{3}}).Err(), []string{"conv_transpose1d", "axis 0 is 3"}},

		{
			"an unknown mode", x.Quantize(mlxc.QuantizeConfig{Mode: "int3"}).Err(),
			[]string{"quantize", `"int3"`, "mxfp8"},
		},
		{"7 bits", x.Quantize(mlxc.QuantizeConfig{Bits: 7}).Err(), []string{"quantize", "2, 3, 4, 5, 6 and 8"}},
		{
			"groups of 7", normal(5, 2, 70).Quantize(mlxc.QuantizeConfig{GroupSize: 7}).Err(),
			[]string{"quantize", "32, 64, and 128"},
		},
		{
			"rows that groups do not divide", m.Quantize(mlxc.QuantizeConfig{}).Err(),
			[]string{"quantize", "float32(3,4)", "divisible"},
		},
		{"quantize without elements", empty.Quantize(mlxc.QuantizeConfig{}).Err(), []string{"quantize", "no elements"}},
		{
			"float64 to quantize", x.AsType(mlxc.Float64).Quantize(mlxc.QuantizeConfig{}).Err(),
			[]string{"quantize", "AsType(Float32)"},
		},
		{
			"weights without biases", x.QuantizedMatMul(mlxc.Quantized{Weight: q.Weight, Scales: q.Scales}, true).Err(),
			[]string{"quantized_matmul", "Biases"},
		},
		{"scales of other rows", x.QuantizedMatMul(mlxc.Quantized{
			Weight: q.Weight,
			Scales: q.Scales.Index(mlxc.Range(0, 1)),
			Biases: q.Biases,
		}, true).Err(), []string{"quantized_matmul", "the scales have the shape", "per row of the weight"}},
		{"biases without rows", mlxc.Quantized{
			Weight: q.Weight, Scales: q.Scales,
			Biases: mlxc.Zeros(mlxc.Float32, 0, 1),
		}.Dequantize(mlxc.Float32).Err(), []string{
			"dequantize",
			"the biases have the shape (0,1)",
		}},
		{"biases of float64", x.QuantizedMatMul(mlxc.Quantized{
			Weight: q.Weight, Scales: q.Scales,
			Biases: q.Biases.AsType(mlxc.Float64),
		}, true).Err(), []string{"quantized_matmul", "AsType(Float32)"}},
		{
			"weights without scales", mlxc.Quantized{Weight: q.Weight}.Dequantize(mlxc.Float32).Err(),
			[]string{"dequantize", "Scales is nil"},
		},
		{"another inner size", m.QuantizedMatMul(q, true).Err(), []string{"quantized_matmul", "float32(3,4)"}},
		{
			"scales without a weight", mlxc.Quantized{Scales: v, Biases: v}.Dequantize(mlxc.Float32).Err(),
			[]string{"dequantize", "nil"},
		},
		{"qqmm in affine mode", x.QQMatMul(q, nil).Err(), []string{"qqmm", "affine"}},
		{
			"qqmm of several rows on a CPU", x.QQMatMul(x.Quantize(mlxc.QuantizeConfig{Mode: mlxc.MXFP8}), nil).Err(),
			[]string{"qqmm", "on a CPU", "single row"},
		},
		{"gather_qqmm on a CPU", x.GatherQQMM(x.Quantize(mlxc.QuantizeConfig{Mode: mlxc.MXFP8}), mlxc.MatMulIDs{},
			nil).Err(), []string{"gather_qqmm", "GPUs only"}},
		{"a global scale on a CPU", x.GatherQMM(scaled, mlxc.MatMulIDs{}, true).Err(), []string{"gather_qmm", "needs a GPU"}},
		{"a product with a global scale", x.QuantizedMatMul(scaled, true).Err(), []string{"quantized_matmul", "GlobalScale"}},

		{"rope of a vector", mlxc.RoPE(v, mlxc.RoPEConfig{}).Err(), []string{"rope", "3 dimensions"}},
		{"rope of 3 dimensions", mlxc.RoPE(signal, mlxc.RoPEConfig{Dims: 3}).Err(), []string{"rope", "even"}},
		{"a negative base", mlxc.RoPE(signal, mlxc.RoPEConfig{Base: -1}).Err(), []string{"rope", "base is -1"}},
		{
			"two offsets", mlxc.RoPEDynamic(signal, mlxc.Scalar[int32](1), mlxc.RoPEConfig{Offset: 1}).Err(),
			[]string{"rope", "offset"},
		},
		{
			"a float offset", mlxc.RoPEDynamic(signal, mlxc.Scalar[float32](1), mlxc.RoPEConfig{}).Err(),
			[]string{"rope", "integer"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Error(t, c.err)
			for _, p := range c.parts {
				require.ErrorContains(t, c.err, p)
			}
			require.NotContains(t, c.err.Error(), ".cpp")
		})
	}
	// After all cases the library still works.
	mlxtest.Near(t, []float64{math.NaN(), math.NaN()}, nan.Eigvals().Abs(), 0)
	mlxtest.Near(t, []float64{2}, mlxc.FromSlice([]float32{0, 2, -1, 3}, 2, 2).Det(), 1e-6)
}

package valuetest

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A shapeless compiled function also reduces axes of size 1. If no axis is longer than 1, MLX itself plans the
// reduction from memory outside of its lists.
func TestShapelessReductionsOverOneElement(t *testing.T) {
	type reduction = func(a *mlxc.Array, axes ...int) *mlxc.Array
	for name, reduce := range map[string]reduction{
		"Sum": (*mlxc.Array).Sum, "Prod": (*mlxc.Array).Prod, "Max": (*mlxc.Array).Max, "Min": (*mlxc.Array).Min,
		"All": (*mlxc.Array).All, "Any": (*mlxc.Array).Any, "Mean": (*mlxc.Array).Mean, "SumKeepDims": (*mlxc.Array).SumKeepDims,
	} {
		for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Int8, mlxc.Bool} {
			f := mlxc.CompileShapeless(single(func(a *mlxc.Array) *mlxc.Array { return reduce(a, 0, -1) }))
			for _, shape := range [][]int{{3, 5, 2}, {1, 5, 1}, {1, 1, 1}, {1, 4, 2}} {
				a := counting(shape...).AsType(d)
				want := reduce(a, 0, -1)
				out, err := f.Call(a)
				require.NoError(t, err)
				require.Equal(t, want.DType(), out[0].DType(), "%s of %v%v", name, d, shape)
				requireArray(t, want.Shape(), wide(t, want), out[0])
			}
			f.Close()
		}
	}
}

// PadEdge, PadReflect and PadSymmetric are lazy: a padding that exceeds the memory costs nothing until it is evaluated.
func TestPaddingIsLazy(t *testing.T) {
	a := mlxc.FromSlice([]float32{1, 2, 3})
	for name, pad := range map[string]func(a *mlxc.Array, padding ...mlxc.Padding) *mlxc.Array{
		"PadEdge": (*mlxc.Array).PadEdge, "PadReflect": (*mlxc.Array).PadReflect, "PadSymmetric": (*mlxc.Array).PadSymmetric,
	} {
		const most = math.MaxInt32 - 4
		require.Equal(t, []int{most + 3}, pad(a, mlxc.Padding{After: most}).Shape(), name)
	}
	require.Equal(t, []float32{2, 1, 2, 3, 2, 1, 2}, floats(t, a.PadReflect(mlxc.Padding{Before: 1, After: 3})))
}

// If elements are NaN or infinite, the gradients of CumMax and CumMin write only inside the operand's gradient. The
// gradient of a NaN and of the elements after it is zero.
func TestGradientsOfCumMaxAndCumMinOfNaN(t *testing.T) {
	testdevice.CPUOnly(t, "uses float64 or an operation that MLX supports on CPUs only")
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	special := []float32{0, 1, -1, inf, -inf, nan, 2}
	for name, scan := range map[string]func(a *mlxc.Array, axis int, c mlxc.ScanConfig) *mlxc.Array{
		"CumMax": (*mlxc.Array).CumMaxWith, "CumMin": (*mlxc.Array).CumMinWith,
	} {
		for i := range 200 {
			c := mlxc.ScanConfig{Reverse: i%2 == 0, Exclusive: i%4 < 2}
			v := make([]float32, 4*16)
			for k := range v {
				v[k] = special[(k*k*7+i*k+i)%len(special)]
			}
			mlxc.WithScope(func() {
				a := mlxc.FromSlice(v, 4, 16)
				f := single(func(a *mlxc.Array) *mlxc.Array { return scan(a, 1, c) })
				out, grads, err := mlxc.VJP(f, arrays{a}, arrays{mlxc.OnesLike(a)})
				require.NoError(t, err)
				near(t, wide(t, scan(a, 1, c)), out[0], 0)
				for k, g := range floats(t, grads[0]) {
					require.True(t, g >= 0 && g <= 16, "%s %+v of %v: the gradient of element %d is %v", name, c, v, k,
						g)
				}
			})
		}
	}
	a := mlxc.FromSlice([]float32{1, 3, 2, nan, 5})
	_, grads, err := mlxc.VJP(single(func(a *mlxc.Array) *mlxc.Array { return a.CumMax(0) }), arrays{a},
		arrays{mlxc.OnesLike(a)})
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2, 0, 0, 0}, floats(t, grads[0]))
}

// CumMax and CumMin of complex numbers return NaN from the first element on whose real or imaginary part is NaN. Their
// gradients write only inside the operand's gradient.
func TestCumMaxAndCumMinOfComplexNaN(t *testing.T) {
	testdevice.CPUOnly(t, "MLX orders complex NaN differently on CUDA")
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	parts := []float32{0, 1, -1, inf, -inf, nan, 2}
	isNaN := func(v complex64) bool { return math.IsNaN(float64(real(v))) || math.IsNaN(float64(imag(v))) }
	for name, scan := range map[string]func(a *mlxc.Array, axis int, c mlxc.ScanConfig) *mlxc.Array{
		"CumMax": (*mlxc.Array).CumMaxWith, "CumMin": (*mlxc.Array).CumMinWith,
	} {
		for i := range 50 {
			c := mlxc.ScanConfig{Reverse: i%2 == 0, Exclusive: i%4 < 2}
			v := make([]complex64, 16*4)
			for k := range v {
				v[k] = complex(parts[(k*k*7+i*k+i)%len(parts)], parts[(k*3+i)%len(parts)])
			}
			mlxc.WithScope(func() {
				a := mlxc.FromSlice(v, 4, 16).Transpose()
				f := single(func(a *mlxc.Array) *mlxc.Array { return scan(a, 0, c) })
				out, grads, err := mlxc.VJP(f, arrays{a}, arrays{mlxc.OnesLike(a)})
				require.NoError(t, err)
				for _, of := range (arrays{scan(a, 0, c), out[0]}) {
					got, err := mlxc.ToSlice[complex64](of.Transpose())
					require.NoError(t, err)
					for row := range 4 {
						seen := false
						for k := range 16 {
							at := k
							if c.Reverse {
								at = 15 - k
							}
							e := v[row*16+at]
							if !c.Exclusive {
								seen = seen || isNaN(e)
							}
							require.Equal(t, seen, isNaN(got[row*16+at]), "%s %+v of %v: element %d", name, c,
								v[row*16:row*16+16], at)
							seen = seen || isNaN(e)
						}
					}
				}
				got, err := mlxc.ToSlice[complex64](grads[0])
				require.NoError(t, err)
				for k, g := range got {
					require.True(t, real(g) >= 0 && real(g) <= 16 && imag(g) == 0,
						"%s %+v of %v: the gradient of element %d is %v", name, c, v, k, g)
				}
			})
		}
	}
}

// The singular values of a matrix with an infinity are NaN. LAPACK would end the process with exit status 0.
func TestNormsOfInfinity(t *testing.T) {
	testdevice.CPUOnly(t, "uses float64 or an operation that MLX supports on CPUs only")
	inf := float32(math.Inf(1))
	a := mlxc.Full(mlxc.Float32, mlxc.Scalar(inf), 31, 31)
	nan := []float64{math.NaN()}
	near(t, nan, a.NuclearNorm(), 0)
	near(t, nan, a.NormOrd(2), 0)
	near(t, nan, a.NormOrdKeepDims(-2, 1, 0), 0)
	near(t, []float64{math.NaN(), 3},
		mlxc.Stack(1, mlxc.Full(mlxc.Float32, mlxc.Scalar(inf), 3, 3), identity(3)).NuclearNorm(0, 2), 1e-6)
	require.Equal(t, []int{1, 2, 1}, mlxc.Stack(1, identity(3), identity(3)).NuclearNormKeepDims(0, 2).Shape())
	near(t, []float64{2}, identity(3).MulScalar(2).NormOrd(2), 1e-6)
	require.Error(t, mlxc.Ones(mlxc.Float32, 2, 2, 2).NuclearNorm().Err())
}

// MLX multiplies the strides and dilations of a convolution in 32 bits. A stride or dilation beyond the input's size
// has the same effect as the input's size.
func TestConvolutionsWithLongSteps(t *testing.T) {
	x, w := counting(1, 1, 2, 3, 4), counting(4, 2, 1, 2, 4)
	c := mlxc.ConvConfig{Stride: []int{5, 2, 1}, Padding: []int{2}, Dilation: []int{3, 1, 1}}
	want := mlxc.Conv3D(x, w, c)
	require.NoError(t, want.Err())
	c.Stride = []int{math.MaxInt32, 2, 1}
	c.Dilation = []int{3, math.MaxInt32, 1}
	for range 50 {
		mlxc.WithScope(func() { same(t, want, mlxc.Conv3D(x, w, c), 0) })
	}
}

// SegmentedMM supports all layouts. For float16 and bfloat16 on the CPU, MLX itself uses the segment's length as the
// row stride.
func TestSegmentedMMOfEveryFloat(t *testing.T) {
	testdevice.CPUOnly(t, "uses float64 or an operation that MLX supports on CPUs only")
	floating(t, func(t *testing.T, d mlxc.DType) {
		a, b := matrices(1, 4, 5).AsType(d), matrices(2, 5, 3).AsType(d)
		segments := mlxc.FromSlice([]uint32{1, 3, 0, 5, 2, 2, 3, 5}, 4, 2)
		for _, x := range (arrays{a, columnMajor(a), strided(a)}) {
			for _, y := range (arrays{b, columnMajor(b), strided(b)}) {
				got := x.SegmentedMM(y, segments)
				require.Equal(t, d, got.DType())
				for i, segment := range [][2]int{{1, 3}, {0, 5}, {2, 2}, {3, 5}} {
					k := mlxc.Range(segment[0], segment[1])
					want := product(wide(t, a.Index(mlxc.All, k)), wide(t, b.Index(k)), 4, segment[1]-segment[0], 3)
					near(t, want, got.Index(mlxc.At(i)), 0)
				}
			}
		}
	})
}

// The parts of a reversed array have all their elements. MLX's Split treats an axis with a negative stride like a
// broadcast axis, as if it held one element.
func TestPartsOfReversedArrays(t *testing.T) {
	for _, shape := range [][]int{{2, 2}, {4, 6}, {2, 4, 3}} {
		for axis := range shape {
			for reversed := range 1 << len(shape) {
				at := slices.Repeat([]mlxc.Index{mlxc.All}, len(shape))
				for i := range shape {
					if reversed>>i&1 == 1 {
						at[i] = mlxc.All.Step(-1)
					}
				}
				a := counting(shape...).Index(at...)
				dense := mlxc.FromSlice(floats(t, a), shape...)
				parts, want := a.SplitAt(axis, 1), dense.SplitAt(axis, 1)
				parts, want = append(parts, a.Unstack(axis)...), append(want, dense.Unstack(axis)...)
				for i, p := range parts {
					requireArray(t, want[i].Shape(), wide(t, want[i].MulScalar(2)), p.Add(p))
					requireArray(t, want[i].Shape(), wide(t, want[i].Add(want[i].Exp())), want[i].Exp().Add(p))
				}
			}
		}
	}
	a := mlxc.FromSlice([]int8{1, 1, 1, 1}, 2, 2)
	b := mlxc.FromSlice([]int8{1, 5, 3, 4}, 2, 2).Index(mlxc.All, mlxc.All.Step(-1))
	requireArray(t, []int{3, 2}, []float64{0, 0, 0, 0, -1, 2}, a.Cross(b, 0))
}

// The gradients of GatherMM and GatherQMM are the same with and without MatMulIDs.Sorted, for ids of the left and of
// the right operand, and if several products share a matrix.
func TestGradientsOfSortedIDs(t *testing.T) {
	testdevice.CPUOnly(t, "multiplies float32 of any size")
	ids := func(shape []int, v ...uint32) *mlxc.Array { return mlxc.FromSlice(v, shape...) }
	for name, c := range map[string]struct {
		a           []int
		left, right *mlxc.Array
	}{
		"each":          {[]int{2}, nil, ids([]int{2}, 0, 2)},
		"one":           {[]int{1}, nil, ids([]int{4}, 0, 0, 1, 2)},
		"two axes":      {[]int{2, 2}, nil, ids([]int{2, 2}, 0, 0, 1, 2)},
		"column":        {[]int{2, 1}, nil, ids([]int{2}, 0, 2)},
		"left":          {[]int{3}, ids([]int{3}, 0, 0, 2), nil},
		"left of one":   {[]int{2}, ids([]int{1}, 0), nil},
		"left and both": {[]int{2}, ids([]int{3}, 0, 0, 1), ids([]int{3}, 1, 2, 2)},
	} {
		t.Run(name, func(t *testing.T) {
			const n = 32
			a, b := normal(1, append(slices.Clone(c.a), 2, n)...), normal(2, 3, n, n)
			q := b.Quantize(mlxc.QuantizeConfig{GroupSize: 32})
			for product, f := range map[string]func(p arrays, sorted bool) *mlxc.Array{
				"GatherMM": func(p arrays, sorted bool) *mlxc.Array {
					return p[0].GatherMM(p[1], mlxc.MatMulIDs{Left: c.left, Right: c.right, Sorted: sorted})
				},
				"GatherQMM": func(p arrays, sorted bool) *mlxc.Array {
					w := q
					w.Scales = p[1]
					return p[0].GatherQMM(w, mlxc.MatMulIDs{Left: c.left, Right: c.right, Sorted: sorted}, true)
				},
			} {
				in := arrays{a, b}
				if product == "GatherQMM" {
					in[1] = q.Scales
				}
				gradients := func(sorted bool) arrays {
					g := func(p arrays) arrays { return arrays{f(p, sorted)} }
					_, grads, err := mlxc.VJP(g, in, arrays{normal(3, g(in)[0].Shape()...)})
					require.NoError(t, err, product)
					return grads
				}
				sorted, plain := gradients(true), gradients(false)
				for i := range plain {
					require.Equal(t, plain[i].Shape(), sorted[i].Shape(), product)
					near(t, wide(t, plain[i]), sorted[i], 1e-3)
				}
			}
		})
	}
}

// The gradients of GatherQMM equal the gradients of products with the dequantized matrices, also for scales and biases.
func TestGradientsOfScalesOfGatheredMatrices(t *testing.T) {
	testdevice.CPUOnly(t, "multiplies float32 of any size")
	ids := mlxc.FromSlice([]uint32{0, 2})
	for _, n := range []int{32, 64} {
		for _, transpose := range []bool{true, false} {
			q := normal(1, 3, n, 32).Quantize(mlxc.QuantizeConfig{GroupSize: 32})
			k, m := n, 32
			if transpose {
				k, m = m, k
			}
			with := func(p arrays) mlxc.Quantized {
				w := q
				w.Scales, w.Biases = p[1], p[2]
				return w
			}
			in := arrays{normal(2, 2, 5, k), q.Scales, q.Biases}
			cotangent := arrays{normal(3, 2, 5, m)}
			out, grads, err := mlxc.VJP(func(p arrays) arrays {
				return arrays{p[0].GatherQMM(with(p), mlxc.MatMulIDs{Right: ids}, transpose)}
			}, in, cotangent)
			require.NoError(t, err)
			want, wantGrads, err := mlxc.VJP(func(p arrays) arrays {
				w := with(p).Dequantize(mlxc.Float32).Take(ids, 0)
				if transpose {
					w = w.SwapAxes(-1, -2)
				}
				return arrays{p[0].MatMul(w)}
			}, in, cotangent)
			require.NoError(t, err)
			near(t, wide(t, want[0]), out[0], 1e-3)
			for i := range grads {
				require.Equal(t, wantGrads[i].Shape(), grads[i].Shape())
				near(t, wide(t, wantGrads[i]), grads[i], 1e-3)
			}
		}
	}
}

// In MLX's gradient of MaskedScatter, each false after the last true adds zero to the next element of the source. If
// the source has no further element, the write is out of bounds, here by megabytes.
func TestGradientOfMaskedScatterStaysInTheSource(t *testing.T) {
	mask := mlxc.FromSlice([]bool{true, false, true, false})
	scatter := func(in []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{in[0].MaskedScatter(mask, in[1]).Square().Sum()}
	}
	grads, err := mlxc.Grad(scatter, 0,
		1)([]*mlxc.Array{mlxc.FromSlice([]float32{1, 2, 3, 4}), mlxc.FromSlice([]float32{5, 6})})
	require.NoError(t, err)
	require.Equal(t, []float32{0, 4, 0, 8}, floats(t, grads[0]))
	require.Equal(t, []float32{10, 12}, floats(t, grads[1]))

	const n = 1 << 22
	all := mlxc.Ones(mlxc.Bool, n)
	tooMany := func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{in[0].MaskedScatter(all, in[1]).Sum()} }
	value, grads, err := mlxc.ValueAndGrad(tooMany,
		1)([]*mlxc.Array{mlxc.Zeros(mlxc.Float32, n), mlxc.Ones(mlxc.Float32, 7)})
	require.NoError(t, err)
	require.ErrorContains(t, mlxc.Eval(value...), "does not have enough elements")
	require.ErrorContains(t, mlxc.Eval(grads...), "does not have enough elements")
}

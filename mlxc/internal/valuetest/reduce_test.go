package valuetest

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// groups returns the elements that a reduction over axes combines, one slice for each element of its row-major result.
// x holds the operand's elements in row-major order. No axes stand for all.
func groups(x []float64, shape, axes []int) [][]float64 {
	over := make([]bool, len(shape))
	for _, axis := range axes {
		over[(axis+len(shape))%len(shape)] = true
	}
	if len(axes) == 0 {
		for i := range over {
			over[i] = true
		}
	}
	n := 1
	for i, size := range shape {
		if !over[i] {
			n *= size
		}
	}
	out := make([][]float64, n)
	for flat, v := range x {
		rest, place, stride := flat, 0, 1
		for i := len(shape) - 1; i >= 0; i-- {
			if !over[i] {
				place += rest % shape[i] * stride
				stride *= shape[i]
			}
			rest /= shape[i]
		}
		out[place] = append(out[place], v)
	}
	return out
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

// squares returns the sum of the squared deviations from the mean.
func squares(x []float64) (s float64) {
	for _, v := range x {
		s += (v - sum(x)/float64(len(x))) * (v - sum(x)/float64(len(x)))
	}
	return s
}

func init() {
	const (
		stays        = iota // the operand's dtype; bool and small integers become 32 bits wide
		exactly             // the operand's dtype
		computes            // float32 for bool and integers
		computesReal        // also float32 for complex64
		isBool              // bool
		isInteger           // int32
	)
	type reduction = func(a *mlxc.Array, axes ...int) *mlxc.Array
	type part struct {
		got, keep reduction
		want      func(x []float64) float64
	}
	truth := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	for _, c := range []struct {
		name  string
		parts []part
		dtype int
	}{
		{"mlx_sum_axes", []part{{(*mlxc.Array).Sum, (*mlxc.Array).SumKeepDims, sum}}, stays},
		{"mlx_prod_axes", []part{{(*mlxc.Array).Prod, (*mlxc.Array).ProdKeepDims, func(x []float64) float64 {
			p := 1.0
			for _, v := range x {
				p *= v
			}
			return p
		}}}, stays},
		{
			"mlx_mean_axes",
			[]part{{
				(*mlxc.Array).Mean, (*mlxc.Array).MeanKeepDims,
				func(x []float64) float64 { return sum(x) / float64(len(x)) },
			}},
			computes,
		},
		{"mlx_median_axes", []part{{(*mlxc.Array).Median, (*mlxc.Array).MedianKeepDims, func(x []float64) float64 {
			x = slices.Sorted(slices.Values(x))
			return (x[len(x)/2] + x[(len(x)-1)/2]) / 2
		}}}, computes},
		{"mlx_var_axes", []part{
			{
				(*mlxc.Array).Var, (*mlxc.Array).VarKeepDims,
				func(x []float64) float64 { return squares(x) / float64(len(x)) },
			},
			{
				(*mlxc.Array).SampleVar, (*mlxc.Array).SampleVarKeepDims,
				func(x []float64) float64 { return squares(x) / float64(len(x)-1) },
			},
		}, computesReal},
		{"mlx_std_axes", []part{
			{
				(*mlxc.Array).Std, (*mlxc.Array).StdKeepDims,
				func(x []float64) float64 { return math.Sqrt(squares(x) / float64(len(x))) },
			},
			{
				(*mlxc.Array).SampleStd, (*mlxc.Array).SampleStdKeepDims,
				func(x []float64) float64 { return math.Sqrt(squares(x) / float64(len(x)-1)) },
			},
		}, computesReal},
		{"mlx_max_axes", []part{{(*mlxc.Array).Max, (*mlxc.Array).MaxKeepDims, slices.Max[[]float64]}}, exactly},
		{"mlx_min_axes", []part{{(*mlxc.Array).Min, (*mlxc.Array).MinKeepDims, slices.Min[[]float64]}}, exactly},
		{
			"mlx_all_axes",
			[]part{{
				(*mlxc.Array).All, (*mlxc.Array).AllKeepDims,
				func(x []float64) float64 { return truth(!slices.Contains(x, 0)) },
			}},
			isBool,
		},
		{"mlx_any_axes", []part{{(*mlxc.Array).Any, (*mlxc.Array).AnyKeepDims, func(x []float64) float64 {
			return truth(slices.ContainsFunc(x, func(v float64) bool { return v != 0 }))
		}}}, isBool},
		{
			"mlx_count_nonzero_axes",
			[]part{{(*mlxc.Array).CountNonzero, (*mlxc.Array).CountNonzeroKeepDims, func(x []float64) float64 {
				n := 0.0
				for _, v := range x {
					n += truth(v != 0)
				}
				return n
			}}},
			isInteger,
		},
		{
			"mlx_logsumexp_axes",
			[]part{{(*mlxc.Array).LogSumExp, (*mlxc.Array).LogSumExpKeepDims, func(x []float64) float64 {
				s := 0.0
				for _, v := range x {
					s += math.Exp(v)
				}
				return math.Log(s)
			}}},
			computes,
		},
	} {
		value(c.name, func(t *testing.T) {
			// Some zeros, a row of zeros and a row without zeros. Products stay small.
			x := []float64{1, 2, 0, -1, 2, 1, 0, 0, 0, 0, 0, 0, 1, -1, 1, 2, 3, 1, 1, 2, 1, 0, -2, 1}
			for _, d := range mlxc.DTypes() {
				a := mlxc.FromSlice(x, 4, 3, 2).AsType(mlxc.Int8).AsType(d).Transpose() // (2,3,4)
				if d == mlxc.Complex64 || d >= mlxc.Uint8 && d <= mlxc.Uint64 {
					a = a.Square() // complex and unsigned dtypes have no sign
				}
				in, off := wide(t, a), 4e-6
				if d.IsFloating() {
					off = 2 * floatDTypes[d]
				}
				for _, axes := range [][]int{nil, {0}, {1}, {-1}, {1, 2}, {0, -1}, {2, 0}, {0, 1, 2}} {
					for _, p := range c.parts {
						got, kept := p.got(a, axes...), p.keep(a, axes...)
						var shape, keptShape []int
						for i, n := range a.Shape() {
							if len(axes) == 0 || slices.Contains(axes, i) || slices.Contains(axes, i-3) {
								n = 1
							} else {
								shape = append(shape, n)
							}
							keptShape = append(keptShape, n)
						}
						require.Equal(t, append([]int{}, shape...), got.Shape())
						require.Equal(t, keptShape, kept.Shape())
						values := wide(t, got)
						require.Equal(t, values, wide(t, kept))
						require.Equal(t, reducedDType(d, c.dtype), got.DType(), d)
						for i, group := range groups(in, a.Shape(), axes) {
							closeTo(t, p.want(group), values[i], off, "%v over %v of %v", d, axes, group)
						}
					}
				}
			}
		})
	}
	for _, c := range []struct {
		name      string
		got, keep func(*mlxc.Array, int) *mlxc.Array
		better    func(a, b float64) bool
	}{
		{
			"mlx_argmax_axis", (*mlxc.Array).ArgMax, (*mlxc.Array).ArgMaxKeepDims,
			func(a, b float64) bool { return a > b },
		},
		{
			"mlx_argmin_axis", (*mlxc.Array).ArgMin, (*mlxc.Array).ArgMinKeepDims,
			func(a, b float64) bool { return a < b },
		},
	} {
		value(c.name, func(t *testing.T) {
			for _, d := range mlxc.DTypes() {
				if d == mlxc.Complex64 {
					continue
				}
				a := mlxc.FromSlice([]int8{3, 1, 2, 3, 0, 5, 1, 1, 0, 4, 5, 2}, 4, 3).AsType(d).Transpose()
				in := wide(t, a)
				for _, axis := range []int{0, 1, -1} {
					got, kept := c.got(a, axis), c.keep(a, axis)
					places := read[uint32](t, got)
					for i, group := range groups(in, []int{3, 4}, []int{axis}) {
						best := 0
						for k, v := range group {
							if c.better(v, group[best]) {
								best = k
							}
						}
						require.EqualValues(t, best, places[i], "%v along %d of %v", d, axis, group)
					}
					require.Equal(t, 1, kept.Dim(axis))
					require.Equal(t, wide(t, got), wide(t, kept))
				}
			}
		})
	}
	value("mlx_softmax_axes", func(t *testing.T) {
		for d, off := range floatDTypes {
			a := steps(d, -4, 4, 12).Reshape(2, 2, 3)
			in := wide(t, a)
			for _, axes := range [][]int{nil, {0}, {-1}, {1, 2}, {0, 2}} {
				for _, soft := range []*mlxc.Array{a.Softmax(axes...), a.SoftmaxPrecise(axes...)} {
					require.Equal(t, d, soft.DType())
					got := groups(wide(t, soft), a.Shape(), axes)
					for i, group := range groups(in, a.Shape(), axes) {
						total := 0.0
						for _, v := range group {
							total += math.Exp(v)
						}
						for k, v := range group {
							closeTo(t, math.Exp(v)/total, got[i][k], off, "%v over %v", d, axes)
						}
					}
				}
			}
		}
		ints := mlxc.FromSlice([]int32{0, 1, 0, 1}, 2, 2)
		require.Equal(t, mlxc.Float32, ints.Softmax(0).DType())
		require.InDeltaSlice(t, []float64{0.5, 0.5, 0.5, 0.5}, wide(t, ints.Softmax(0)), 1e-7)
		require.InDelta(t, 1/(1+math.E), wide(t, ints.Softmax(1))[0], 1e-7)
	})
	value("mlx_number_of_elements", func(t *testing.T) {
		a := counting(2, 3, 4)
		require.Equal(t, []int32{12}, read[int32](t, a.NumberOfElements(mlxc.Int32, false, 1, -1)))
		require.Equal(t, []float32{0.5}, floats(t, a.NumberOfElements(mlxc.Float32, true, 0)))
		require.Equal(t, []int64{24}, read[int64](t, a.NumberOfElements(mlxc.Int64, false)))
		require.Equal(t, []int32{1}, read[int32](t, mlxc.Scalar(true).NumberOfElements(mlxc.Int32, false)))
		// A shapeless compiled function counts the elements of each call's argument.
		f := mlxc.CompileShapeless(single(func(x *mlxc.Array) *mlxc.Array {
			return x.NumberOfElements(mlxc.Float32,
				false)
		}))
		for _, n := range []int{3, 5} {
			out, err := f.Call(mlxc.Zeros(mlxc.Float32, n, 2))
			require.NoError(t, err)
			require.Equal(t, []float32{float32(2 * n)}, floats(t, out[0]))
		}
	})
}

// reducedDType returns the dtype of a reduction's result for an operand of dtype d. The kinds are the constants in
// init.
func reducedDType(d mlxc.DType, kind int) mlxc.DType {
	const stays, exactly, computes, computesReal, isBool = 0, 1, 2, 3, 4
	switch kind {
	case exactly:
		return d
	case isBool:
		return mlxc.Bool
	case stays:
		switch d {
		case mlxc.Bool, mlxc.Int8, mlxc.Int16:
			return mlxc.Int32
		case mlxc.Uint8, mlxc.Uint16:
			return mlxc.Uint32
		}
		return d
	case computes, computesReal:
		if kind == computesReal && d == mlxc.Complex64 {
			return mlxc.Float32
		}
		if d == mlxc.Bool || d.IsInteger() {
			return mlxc.Float32
		}
		return d
	}
	return mlxc.Int32
}

// Reductions of empty arrays, NaN, infinities and complex numbers.
func TestReductionsOfSpecialValues(t *testing.T) {
	testdevice.CPUOnly(t, "compares with float64 in Go, with tolerances for MLX's CPU backend")
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	none := mlxc.Zeros(mlxc.Float32, 2, 0)
	require.Equal(t, []float32{0, 0}, floats(t, none.Sum(1)))
	require.Equal(t, []float32{1, 1}, floats(t, none.Prod(1)))
	require.Equal(t, []bool{true, true}, read[bool](t, none.All(1)))
	require.Equal(t, []bool{false, false}, read[bool](t, none.Any(1)))
	require.Equal(t, []int32{0, 0}, read[int32](t, none.CountNonzero(1)))
	for _, a := range []*mlxc.Array{none.Mean(1), none.Var(1), none.Std(1), none.SampleVar(1)} {
		require.True(t, math.IsNaN(wide(t, a)[1]))
	}
	require.Empty(t, floats(t, none.Sum(0)))
	require.True(t, math.IsNaN(wide(t, mlxc.Ones(mlxc.Float32, 1).SampleVar())[0]))

	x := mlxc.FromSlice([]float32{1, nan, 3, inf})
	for _, a := range []*mlxc.Array{x.Max(), x.Min(), x.Sum(), x.Mean(), x.LogSumExp(), x.Var(), x.Median()} {
		if v := wide(t, a)[0]; !math.IsNaN(v) && !math.IsInf(v, 1) {
			t.Errorf("%v of a NaN", v)
		}
	}
	require.True(t, math.IsNaN(wide(t, x.Max())[0]))
	require.True(t, math.IsNaN(wide(t, x.Min())[0]))
	require.Equal(t, []int32{4}, read[int32](t, x.CountNonzero()))
	require.Equal(t, []float64{math.Inf(-1)}, wide(t, mlxc.FromSlice([]float32{-inf, -inf}).LogSumExp()))

	z := mlxc.FromSlice([]complex64{1 + 1i, 2, -1i, 3})
	require.Equal(t, []complex64{6}, read[complex64](t, z.Sum()))
	require.Equal(t, []complex64{1.5}, read[complex64](t, z.Mean()))
	require.Equal(t, []complex64{(1 + 1i) * 2 * -1i * 3}, read[complex64](t, z.Prod()))
	require.Equal(t, []float32{0.5}, floats(t, mlxc.FromSlice([]complex64{1, 1i}).Var()))

	small := mlxc.FromSlice([]uint8{200, 100, 3})
	require.Equal(t, []uint32{303}, read[uint32](t, small.Sum()))
	require.Equal(t, []uint32{60000}, read[uint32](t, small.Prod()))
	require.Equal(t, []int8{3}, read[int8](t, mlxc.Scalar[int8](3).Max()))
}

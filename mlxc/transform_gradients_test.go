package mlxc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// smooth holds functions of a matrix of shape (3,4) with distinct elements between 0.2 and 0.8.
func smooth() map[string]operation {
	type op = func(*mlxc.Array) *mlxc.Array
	i, j := mlxc.FromSlice([]int32{2, 0, 2}), mlxc.FromSlice([]int32{1, 3, 1})
	w := mlxc.Linspace(mlxc.Float32, 1, 2, 4)
	start := mlxc.FromSlice([]int32{1, 1})
	p := []mlxc.Padding{{Axis: 0, Before: 1, After: 2}, {Axis: -1, Before: 2, After: 1}}
	all := map[string]operation{
		"arctan2":         func(a *mlxc.Array) *mlxc.Array { return a.Arctan2(w) },
		"arctan2 of":      func(a *mlxc.Array) *mlxc.Array { return w.Arctan2(a) },
		"logaddexp":       func(a *mlxc.Array) *mlxc.Array { return a.LogAddExp(w.Mul(a)) },
		"divmod":          func(a *mlxc.Array) *mlxc.Array { _, r := w.Add(a).DivMod(a.AddScalar(1)); return r },
		"remainder":       func(a *mlxc.Array) *mlxc.Array { return w.MulScalar(3.3).Remainder(a.AddScalar(0.5)) },
		"power":           func(a *mlxc.Array) *mlxc.Array { return a.Pow(w.Mul(a)) },
		"clip":            func(a *mlxc.Array) *mlxc.Array { return a.ClipTo(w.MulScalar(0.3), w.MulScalar(0.5)) },
		"where":           func(a *mlxc.Array) *mlxc.Array { return mlxc.Where(a.Greater(w.MulScalar(0.3)), a.Square(), a) },
		"nan_to_num":      func(a *mlxc.Array) *mlxc.Array { return a.NaNToNum(mlxc.NaNToNumConfig{}).Square() },
		"sum":             func(a *mlxc.Array) *mlxc.Array { return a.Sum(0).Square() },
		"prod":            func(a *mlxc.Array) *mlxc.Array { return a.Prod(1) },
		"prod of all":     func(a *mlxc.Array) *mlxc.Array { return a.Prod() },
		"mean":            func(a *mlxc.Array) *mlxc.Array { return a.MeanKeepDims(-1).Mul(a) },
		"median":          func(a *mlxc.Array) *mlxc.Array { return a.Median(1) },
		"median of odd":   func(a *mlxc.Array) *mlxc.Array { return a.Median(0) },
		"var":             func(a *mlxc.Array) *mlxc.Array { return a.Var(0) },
		"std":             func(a *mlxc.Array) *mlxc.Array { return a.SampleStd(1) },
		"max":             func(a *mlxc.Array) *mlxc.Array { return a.Max(1) },
		"min":             func(a *mlxc.Array) *mlxc.Array { return a.MinKeepDims(0).Mul(a) },
		"logsumexp":       func(a *mlxc.Array) *mlxc.Array { return a.LogSumExp(0) },
		"logsumexp 0 1":   func(a *mlxc.Array) *mlxc.Array { return a.LogSumExp() },
		"softmax":         func(a *mlxc.Array) *mlxc.Array { return a.Softmax(0) },
		"softmax last":    func(a *mlxc.Array) *mlxc.Array { return a.MulScalar(3).SoftmaxPrecise(-1) },
		"cumsum":          func(a *mlxc.Array) *mlxc.Array { return a.CumSum(1) },
		"cumsum reverse":  func(a *mlxc.Array) *mlxc.Array { return a.CumSumWith(0, mlxc.ScanConfig{Reverse: true}) },
		"cumsum without":  func(a *mlxc.Array) *mlxc.Array { return a.CumSumWith(0, mlxc.ScanConfig{Exclusive: true}) },
		"cumprod":         func(a *mlxc.Array) *mlxc.Array { return a.CumProd(1) },
		"cumprod reverse": func(a *mlxc.Array) *mlxc.Array { return a.CumProdWith(1, mlxc.ScanConfig{Reverse: true}) },
		"cumprod without": func(a *mlxc.Array) *mlxc.Array {
			return a.CumProdWith(1,
				mlxc.ScanConfig{Exclusive: true})
		},
		"cummax":       func(a *mlxc.Array) *mlxc.Array { return a.CumMax(1) },
		"cummin":       func(a *mlxc.Array) *mlxc.Array { return a.CumMinWith(0, mlxc.ScanConfig{Reverse: true}) },
		"logcumsumexp": func(a *mlxc.Array) *mlxc.Array { return a.LogCumSumExp(1) },
		"logcumsumexp reverse": func(a *mlxc.Array) *mlxc.Array {
			return a.LogCumSumExpWith(0, mlxc.ScanConfig{Reverse: true})
		},
		"diff":       func(a *mlxc.Array) *mlxc.Array { return a.Diff(2, 1) },
		"sort":       func(a *mlxc.Array) *mlxc.Array { return a.Sort(1) },
		"partition":  func(a *mlxc.Array) *mlxc.Array { return a.Partition(1, 0).Square().Sum() },
		"topk":       func(a *mlxc.Array) *mlxc.Array { return a.TopK(2, 1).Square().Sum(1) },
		"flip":       func(a *mlxc.Array) *mlxc.Array { return a.Flip(1) },
		"roll":       func(a *mlxc.Array) *mlxc.Array { return a.Roll(2, 1) },
		"roll all":   func(a *mlxc.Array) *mlxc.Array { return a.Roll(3) },
		"unflatten":  func(a *mlxc.Array) *mlxc.Array { return a.Unflatten(1, 2, 2) },
		"moveaxis":   func(a *mlxc.Array) *mlxc.Array { return a.MoveAxis(0, -1) },
		"pad":        func(a *mlxc.Array) *mlxc.Array { return a.Pad(mlxc.Scalar[float32](2), p...) },
		"pad value":  func(a *mlxc.Array) *mlxc.Array { return w.Pad(a.Index(mlxc.At(0), mlxc.At(1)), p[1]) },
		"pad both":   func(a *mlxc.Array) *mlxc.Array { return a.Pad(a.Index(mlxc.At(0), mlxc.At(1)), p...) },
		"pad edge":   func(a *mlxc.Array) *mlxc.Array { return a.PadEdge(p...) },
		"reflect":    func(a *mlxc.Array) *mlxc.Array { return a.PadReflect(p...) },
		"symmetric":  func(a *mlxc.Array) *mlxc.Array { return a.PadSymmetric(p...) },
		"as_strided": func(a *mlxc.Array) *mlxc.Array { return a.AsStrided([]int{5, 3}, []int{2, 1}, 1) },
		"diagonal":   func(a *mlxc.Array) *mlxc.Array { return a.Diagonal(1, 0, 1) },
		"diag":       func(a *mlxc.Array) *mlxc.Array { return a.Index(mlxc.At(1)).Diag(-1) },
		"trace":      func(a *mlxc.Array) *mlxc.Array { return a.Trace(0, 0, 1) },
		"meshgrid": func(a *mlxc.Array) *mlxc.Array {
			return mlxc.Meshgrid(mlxc.MeshgridConfig{}, a.Index(mlxc.At(0)), w)[0]
		},
		"unstack":         func(a *mlxc.Array) *mlxc.Array { u := a.Unstack(1); return u[0].Mul(u[3]) },
		"full_like":       func(a *mlxc.Array) *mlxc.Array { return mlxc.FullLike(a, a.Index(mlxc.At(0))) },
		"index":           func(a *mlxc.Array) *mlxc.Array { return a.Index(mlxc.Range(1, 3), mlxc.NewAxis, mlxc.All.Step(-2)) },
		"ids":             func(a *mlxc.Array) *mlxc.Array { return a.Index(mlxc.IDs(i), mlxc.IDs(j)) },
		"ids of a column": func(a *mlxc.Array) *mlxc.Array { return a.Index(mlxc.Range(1, 3), mlxc.IDs(j)) },
		"set_at": func(a *mlxc.Array) *mlxc.Array {
			return a.SetAt(a.Index(mlxc.At(0), mlxc.Range(0, 2)), mlxc.At(2), mlxc.Range(1, 3))
		},
		"add_at": func(a *mlxc.Array) *mlxc.Array { return a.AddAt(a.Index(mlxc.At(0)).Square(), mlxc.At(1)) },
		"mul_at": func(a *mlxc.Array) *mlxc.Array { return a.MulAt(a.Index(mlxc.At(0)).Square(), mlxc.At(1)) },
		"maximum_at": func(a *mlxc.Array) *mlxc.Array {
			return a.MaximumAt(a.Index(mlxc.At(0)).MulScalar(1.3),
				mlxc.At(1))
		},
		"minimum_at": func(a *mlxc.Array) *mlxc.Array {
			return a.MinimumAt(a.Index(mlxc.At(0)).MulScalar(1.3),
				mlxc.At(1))
		},
		"set_at ids": func(a *mlxc.Array) *mlxc.Array {
			return a.SetAt(a.Index(mlxc.At(0), mlxc.At(0)).Square(), mlxc.IDs(start),
				mlxc.IDs(j.Index(mlxc.Range(0, 2))))
		},
		"add_at ids": func(a *mlxc.Array) *mlxc.Array { return a.AddAt(a.Square(), mlxc.IDs(i)) },
		"gather":     func(a *mlxc.Array) *mlxc.Array { return a.Gather(arrays{start}, []int{1}, []int{2, 2}) },
		"put_along": func(a *mlxc.Array) *mlxc.Array {
			return a.PutAlongAxis(i.Reshape(3, 1), a.Sum(1).ExpandDims(1),
				1)
		},
		"masked_scatter": func(a *mlxc.Array) *mlxc.Array {
			return a.MaskedScatter(mlxc.Tri(mlxc.Bool, 3, 4, 0), a.Square().Flatten(0, 1))
		},
		"slice_dynamic": func(a *mlxc.Array) *mlxc.Array { return a.SliceDynamic(start, []int{0, 1}, []int{2, 2}) },
		"slice_update_dynamic": func(a *mlxc.Array) *mlxc.Array {
			return a.SliceUpdateDynamic(a.Index(mlxc.Range(0, 2), mlxc.Range(0, 2)).Square(), start, []int{0, 1})
		},
	}
	for name, f := range map[string]op{
		"arccos": (*mlxc.Array).Arccos, "arcsin": (*mlxc.Array).Arcsin, "arctan": (*mlxc.Array).Arctan,
		"arctanh": (*mlxc.Array).Arctanh,
		"arcsinh": (*mlxc.Array).Arcsinh, "cosh": (*mlxc.Array).Cosh, "sinh": (*mlxc.Array).Sinh,
		"tan":  (*mlxc.Array).Tan,
		"tanh": (*mlxc.Array).Tanh, "sin": (*mlxc.Array).Sin, "cos": (*mlxc.Array).Cos, "exp": (*mlxc.Array).Exp,
		"expm1": (*mlxc.Array).Expm1, "log": (*mlxc.Array).Log, "log2": (*mlxc.Array).Log2,
		"log10": (*mlxc.Array).Log10,
		"log1p": (*mlxc.Array).Log1p, "sigmoid": (*mlxc.Array).Sigmoid, "erf": (*mlxc.Array).Erf,
		"erfinv": (*mlxc.Array).ErfInv,
		"sqrt":   (*mlxc.Array).Sqrt, "rsqrt": (*mlxc.Array).Rsqrt, "square": (*mlxc.Array).Square,
		"reciprocal": (*mlxc.Array).Reciprocal,
		"degrees":    (*mlxc.Array).Degrees, "radians": (*mlxc.Array).Radians, "neg": (*mlxc.Array).Neg,
		"real":  (*mlxc.Array).Real,
		"floor": (*mlxc.Array).Floor, "ceil": (*mlxc.Array).Ceil, "trunc": (*mlxc.Array).Trunc,
		"round": (*mlxc.Array).Round,
	} {
		all[name] = f
	}
	all["arccosh"] = func(a *mlxc.Array) *mlxc.Array { return a.AddScalar(1).Arccosh() }
	all["abs"] = func(a *mlxc.Array) *mlxc.Array { return a.SubScalar(0.5).Abs() }
	all["sign"] = func(a *mlxc.Array) *mlxc.Array { return a.SubScalar(0.5).Sign().Mul(a) }
	return all
}

// smoothArgument returns n matrices for the functions of smooth. Their elements are not near 0.5 or each other.
func smoothArgument(n int) *mlxc.Array {
	order := normal(4, n*12).ArgSort(0).AsType(mlxc.Float32)
	return order.AddScalar(0.25).MulScalar(0.6/float64(n*12)).AddScalar(0.2).Reshape(n, 3, 4)
}

// Compares directional derivatives with difference quotients.
func TestGradients(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	const h = 2e-3
	x := smoothArgument(1).Squeeze(0)
	direction := normal(5, 3, 4)
	for name, f := range smooth() {
		t.Run(name, func(t *testing.T) {
			y := f(x)
			require.NoError(t, y.Err())
			cotangent := counting(y.Shape()...).AddScalar(1).Sin()
			along := func(h float64) float64 {
				values, sum := wide(t, f(x.Add(direction.MulScalar(h))).Mul(cotangent)), 0.0
				for _, v := range values {
					sum += v
				}
				return sum
			}
			want := (along(h) - along(-h)) / (2 * h)
			_, grads, err := mlxc.VJP(single(f), arrays{x}, arrays{cotangent})
			require.NoError(t, err)
			require.Equal(t, x.Shape(), grads[0].Shape())
			got := wide(t, grads[0].Mul(direction).Sum())[0]
			require.InDelta(t, want, got, 4e-3*math.Max(1, math.Abs(want)))
		})
	}
}

// Compares Vmap, and gradients inside it, with a loop.
func TestVmapOfSmoothOperations(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	x := smoothArgument(2)
	for name, f := range smooth() {
		t.Run(name, func(t *testing.T) {
			if name == "as_strided" { // MLX has no batching rule for it
				require.ErrorContains(t, mlxc.Vmap(single(f), nil, nil)(arrays{x})[0].Err(), "AsStrided")
				return
			}
			requireMapped(t, single(f), arrays{x}, []int{0}, 0)
			requireMapped(t, single(f), arrays{x.Transpose(1, 2, 0)}, []int{2}, -1)
			requireMapped(t, single(vjpOf(f)), arrays{x}, []int{0}, 0)
		})
	}
}

// The gradient of a power with the exponent 0 is 0, also at 0.
func TestGradientOfPowerZero(t *testing.T) {
	x := mlxc.FromSlice([]float32{0, 2})
	exponents := mlxc.FromSlice([]float32{0, 2})
	for name, c := range map[string]struct {
		f    func(a *mlxc.Array) *mlxc.Array
		want []float32
	}{
		"scalar": {func(a *mlxc.Array) *mlxc.Array { return a.PowScalar(0) }, []float32{0, 0}},
		"array":  {func(a *mlxc.Array) *mlxc.Array { return a.Pow(exponents) }, []float32{0, 4}},
	} {
		out, grads, err := mlxc.VJP(single(c.f), arrays{x}, arrays{mlxc.OnesLike(x)})
		require.NoError(t, err)
		require.Equal(t, floats(t, c.f(x)), floats(t, out[0]), name)
		require.Equal(t, c.want, floats(t, grads[0]), name)
		_, tangents, err := mlxc.JVP(single(c.f), arrays{x}, arrays{mlxc.OnesLike(x)})
		require.NoError(t, err)
		require.Equal(t, c.want, floats(t, tangents[0]), name)
	}
	require.Equal(t, []int32{0, 0, 0}, read[int32](t, mlxc.FromSlice([]int32{1, -1, 2}).Pow(mlxc.Scalar[int32](-1))))
}

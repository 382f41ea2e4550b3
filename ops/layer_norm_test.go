package ops

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// layerNormBackwards lists the implementations of the gradient.
var layerNormBackwards = []func(on target, x, weight, bias, dy *mlxc.Array, eps float32) []*mlxc.Array{
	layerNormBackward, layerNormBackwardSeparate,
}

// affine returns f as a function of x, then the weight if weighted, then the bias if biased.
func affine(weighted, biased bool, eps float32, f func(x, w, b *mlxc.Array, eps float32) *mlxc.Array) mlxc.Func {
	return func(args arrays) arrays {
		x, rest := args[0], args[1:]
		var w, b *mlxc.Array
		if weighted {
			w, rest = rest[0], rest[1:]
		}
		if biased {
			b = rest[0]
		}
		return arrays{f(x, w, b, eps)}
	}
}

// The gradient is right in the geometry of every backend. The host executor runs them all.
func TestLayerNormBackwardInEveryGeometry(t *testing.T) {
	for _, dtype := range gradientDTypes {
		for i, width := range []int{1, 31, 32, 33, 127, 1024, 4099, 7001, 8192, 8209} {
			for _, rows := range []int{1, 37} {
				if !inSample(i, dtype) {
					continue
				}
				t.Run(fmt.Sprintf("%v/%dx%d", dtype, rows, width), func(t *testing.T) {
					x, dy := normal(1, dtype, rows, width), normal(2, dtype, rows, width)
					w, b := normal(3, dtype, width), normal(4, dtype, width)
					_, want, err := mlxc.VJP(affine(true, true, 1e-5, mlxc.LayerNorm), arrays{x, w, b}, arrays{dy})
					require.NoError(t, err)
					for _, d := range backends {
						for _, backward := range layerNormBackwards {
							got := backward(target{backend: d}, x, w, b, dy, 1e-5)
							for i := range want {
								closeTo(t, want[i], got[i])
							}
						}
					}
				})
			}
		}
	}
}

// A gradient by hand. x̂ is (−1, −1, 1, 1) in both rows. In the first row g = (1, 0, 0, 4), mean(g) = 1.25 and
// mean(g·x̂) = 0.75. In the second g = (0, 2, 3, 0), mean(g) = 1.25 and mean(g·x̂) = 0.25.
func TestLayerNormByHand(t *testing.T) {
	for _, dtype := range gradientDTypes {
		x := mlxc.FromSlice([]float32{0, 0, 2, 2, 5, 5, 7, 7}, 2, 4).AsType(dtype)
		w := mlxc.FromSlice([]float32{1, 2, 3, 4}).AsType(dtype)
		b := mlxc.FromSlice([]float32{1, 0, -1, 0.5}).AsType(dtype)
		dy := mlxc.FromSlice([]float32{1, 0, 0, 1, 0, 1, 1, 0}, 2, 4).AsType(dtype)
		for _, f := range []func(x, w, b *mlxc.Array, eps float32) *mlxc.Array{LayerNorm, layerNormSeparate} {
			y, grads, err := mlxc.VJP(affine(true, true, 0, f), arrays{x, w, b}, arrays{dy})
			require.NoError(t, err)
			require.InDeltaSlice(t, []float32{0, -2, 2, 4.5, 0, -2, 2, 4.5}, mlxtest.Floats(t, y[0]), 1e-6)
			require.InDeltaSlice(t, []float32{0.5, -0.5, -2, 2, -1, 1, 1.5, -1.5}, mlxtest.Floats(t, grads[0]), 1e-6)
			require.InDeltaSlice(t, []float32{-1, -1, 1, 1}, mlxtest.Floats(t, grads[1]), 1e-6)
			require.InDeltaSlice(t, []float32{1, 1, 1, 1}, mlxtest.Floats(t, grads[2]), 1e-6)
		}
	}
}

func TestLayerNormUnderTransforms(t *testing.T) {
	for _, dtype := range gradientDTypes {
		x, dy := normal(1, dtype, 2, 5, 65), normal(2, dtype, 2, 5, 65)
		w, b := normal(3, dtype, 65), normal(4, dtype, 65)
		for i, c := range []struct {
			name             string
			weighted, biased bool
			args             arrays
		}{
			{"weight and bias", true, true, arrays{x, w, b}},
			{"weight", true, false, arrays{x, w}},
			{"bias", false, true, arrays{x, b}},
			{"neither", false, false, arrays{x}},
		} {
			if !inSample(i, dtype) {
				continue
			}
			for name, f := range map[string]func(x, w, b *mlxc.Array, eps float32) *mlxc.Array{
				"fused": LayerNorm, "separate": layerNormSeparate,
			} {
				t.Run(fmt.Sprintf("%v/%s/%s", dtype, c.name, name), func(t *testing.T) {
					ours := affine(c.weighted, c.biased, 1e-6, f)
					testUnderTransforms(t, ours, affine(c.weighted, c.biased, 1e-6, mlxc.LayerNorm), c.args, dy)
					t.Run("second derivatives are refused", func(t *testing.T) {
						grad := func(args arrays) arrays { return vjpOf(ours)(append(arrays{dy}, args...))[1:2] }
						_, _, err := mlxc.VJP(grad, c.args, arrays{x})
						require.ErrorContains(t, err, "layer_norm_b")
						require.ErrorContains(t, err, "no gradient")
					})
				})
			}
		}
	}
}

func TestLayerNormOfLayouts(t *testing.T) {
	parameters := func(x *mlxc.Array) (w, b *mlxc.Array) {
		d := x.Dim(-1)
		return normal(6, x.DType(), 2*d).Slice([]int{0}, []int{2 * d}, []int{2}), normal(7, x.DType(), 1).BroadcastTo(d)
	}
	testUnaryOfLayouts(t,
		func(x *mlxc.Array) *mlxc.Array { w, b := parameters(x); return LayerNorm(x, w, b, 1e-5) },
		func(x *mlxc.Array) *mlxc.Array { w, b := parameters(x); return mlxc.LayerNorm(x, w, b, 1e-5) })
}

func TestLayerNormWithoutElements(t *testing.T) {
	for _, shape := range [][]int{{0, 4}, {3, 0}, {2, 0, 5}} {
		x, w := mlxc.Zeros(mlxc.Float32, shape...), mlxc.Ones(mlxc.Float32, shape[len(shape)-1])
		for _, f := range []func(x, w, b *mlxc.Array, eps float32) *mlxc.Array{LayerNorm, layerNormSeparate} {
			_, grads, err := mlxc.VJP(affine(true, true, 1e-5, f), arrays{x, w, w}, arrays{x})
			require.NoError(t, err)
			require.Equal(t, shape, grads[0].Shape())
			require.Equal(t, make([]float32, w.Size()), mlxtest.Floats(t, grads[1]))
			require.Equal(t, make([]float32, w.Size()), mlxtest.Floats(t, grads[2]))
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestLayerNormWithoutElements)

// layerNormGradients64 computes the gradients in float64.
func layerNormGradients64(t *testing.T, x, w, dy *mlxc.Array, eps float64) (dx, dw, db []float64) {
	xs, ws, dys := mlxtest.Floats(t, x), mlxtest.Floats(t, w), mlxtest.Floats(t, dy)
	width := len(ws)
	dx, dw, db = make([]float64, len(xs)), make([]float64, width), make([]float64, width)
	for start := 0; start < len(xs); start += width {
		var mean, variance, meanG, meanGX float64
		for j := range width {
			mean += float64(xs[start+j]) / float64(width)
		}
		for j := range width {
			variance += math.Pow(float64(xs[start+j])-mean, 2) / float64(width)
		}
		r := 1 / math.Sqrt(variance+eps)
		normal := func(j int) float64 { return (float64(xs[start+j]) - mean) * r }
		g := func(j int) float64 { return float64(dys[start+j]) * float64(ws[j]) }
		for j := range width {
			meanG += g(j) / float64(width)
			meanGX += g(j) * normal(j) / float64(width)
		}
		for j := range width {
			dx[start+j] = r * (g(j) - meanG - normal(j)*meanGX)
			dw[j] += float64(dys[start+j]) * normal(j)
			db[j] += float64(dys[start+j])
		}
	}
	return dx, dw, db
}

// The gradient is accurate for rows whose sums would lose their digits if they were taken about zero or about a single
// element. The error is the rounding of the mean, in rows that a threadgroup holds and in wider ones.
func TestLayerNormGradientIsStable(t *testing.T) {
	const rows = 5
	for _, c := range []struct {
		name    string
		x       func(column int, v float32) float32
		dx, dw  float64 // tolerances relative to the largest element
		squares bool    // fit float32
	}{
		{"usual", func(_ int, v float32) float32 { return v }, 1e-6, 1e-6, true},
		{"far from zero", func(_ int, v float32) float32 { return 1e4 + v }, 1e-5, 1e-3, true},
		{"first element far from the others", func(column int, v float32) float32 {
			if column == 0 {
				return 3e4
			}
			return v
		}, 3e-6, 3e-6, true},
		{"tiny", func(_ int, v float32) float32 { return 1e-6 * v }, 1e-6, 1e-6, true},
		{"huge", func(_ int, v float32) float32 { return 1e15 * v }, 2e-6, 2e-6, true},
		{"squares overflow", func(_ int, v float32) float32 { return 1e28 * v }, 0, 0, false},
	} {
		for _, width := range []int{1000, 4096, 20001} {
			t.Run(fmt.Sprintf("%s/%d", c.name, width), func(t *testing.T) {
				data := mlxtest.Floats(t, normal(1, mlxc.Float32, rows, width))
				for i, v := range data {
					data[i] = c.x(i%width, v)
				}
				x, dy := mlxc.FromSlice(data, rows, width), normal(2, mlxc.Float32, rows, width)
				w, b := normal(3, mlxc.Float32, width), normal(4, mlxc.Float32, width)
				dx, dw, db := layerNormGradients64(t, x, w, dy, 1e-5)
				for _, d := range []mlxc.Backend{mlxc.BackendCPU, mlxc.BackendMetal} {
					for _, backward := range layerNormBackwards {
						got := backward(target{backend: d}, x, w, b, dy, 1e-5)
						if c.squares {
							within(t, dx, mlxtest.Floats(t, got[0]), c.dx)
							within(t, dw, mlxtest.Floats(t, got[1]), c.dw)
						} else {
							// 1/σ underflows to 0 in float32.
							require.Equal(t, make([]float32, rows*width), mlxtest.Floats(t, got[0]))
							require.Equal(t, make([]float32, width), mlxtest.Floats(t, got[1]))
						}
						within(t, db, mlxtest.Floats(t, got[2]), 1e-6)
					}
				}
			})
		}
	}
}

// within requires that elements agree up to a tolerance relative to the largest.
func within(t *testing.T, want []float64, got []float32, tolerance float64) {
	t.Helper()
	largest := 0.0
	for _, v := range want {
		largest = max(largest, math.Abs(v))
	}
	for i := range want {
		inDelta(t, want[i], float64(got[i]), tolerance*largest, "element %d", i)
	}
}

// In rows of equal values x̂ is zero, and so is dweight.
func TestLayerNormOfEqualValues(t *testing.T) {
	for _, dtype := range gradientDTypes {
		for _, width := range []int{1, 1000, 8209} {
			x := mlxc.Scalar[float32](0.1).AsType(dtype).BroadcastTo(3, width)
			dy, w, b := normal(2, dtype, 3, width), normal(3, dtype, width), normal(4, dtype, width)
			dx, _, _ := layerNormGradients64(t, x, w, dy, 1e-5)
			for _, d := range backends {
				for _, backward := range layerNormBackwards {
					got := backward(target{backend: d}, x, w, b, dy, 1e-5)
					eps := map[mlxc.DType]float64{mlxc.Float32: 1e-6, mlxc.Float16: 1e-3, mlxc.BFloat16: 8e-3}[dtype]
					within(t, dx, mlxtest.Floats(t, got[0]), eps)
					require.Equal(t, make([]float32, width), mlxtest.Floats(t, got[1]))
				}
			}
		}
	}
}

// A value that is not finite makes dx of its row and dweight NaN, as in MLX, and nothing else.
func TestLayerNormOfNonFiniteValues(t *testing.T) {
	for name, bad := range map[string]float32{"NaN": float32(math.NaN()), "infinity": float32(math.Inf(1))} {
		for _, width := range []int{100, 9000} {
			t.Run(fmt.Sprintf("%s/%d", name, width), func(t *testing.T) {
				data := mlxtest.Floats(t, normal(1, mlxc.Float32, 3, width))
				data[width+7] = bad
				x, dy := mlxc.FromSlice(data, 3, width), normal(2, mlxc.Float32, 3, width)
				w, b := normal(3, mlxc.Float32, width), normal(4, mlxc.Float32, width)
				_, want, err := mlxc.VJP(affine(true, true, 1e-5, mlxc.LayerNorm), arrays{x, w, b}, arrays{dy})
				require.NoError(t, err)
				for _, d := range backends {
					for _, backward := range layerNormBackwards {
						got := backward(target{backend: d}, x, w, b, dy, 1e-5)
						for i := range want {
							theirs, ours := mlxtest.Floats(t, want[i]), mlxtest.Floats(t, got[i])
							for j := range theirs {
								require.Equal(t, math.IsNaN(float64(theirs[j])), math.IsNaN(float64(ours[j])),
									"gradient %d, element %d", i, j)
							}
						}
						for j, v := range mlxtest.Floats(t, got[0]) {
							require.Equal(t, j/width == 1, math.IsNaN(float64(v)), "dx, element %d", j)
						}
					}
				}
			})
		}
	}
}

func TestLayerNormGradientIsReproducible(t *testing.T) {
	for _, dtype := range sampleDTypes(1) {
		for _, d := range backends {
			x, dy := normal(1, dtype, 199, 1025), normal(2, dtype, 199, 1025)
			w, b := normal(3, dtype, 1025), normal(4, dtype, 1025)
			for _, backward := range layerNormBackwards {
				var first [][]float32
				for range 20 {
					var again [][]float32
					for _, g := range backward(target{backend: d}, x, w, b, dy, 1e-5) {
						again = append(again, mlxtest.Floats(t, g))
					}
					if first == nil {
						first = again
					}
					require.Equal(t, first, again)
				}
			}
		}
	}
}

func TestLayerNormArgumentErrors(t *testing.T) {
	x, w := mlxc.Ones(mlxc.Float32, 2, 3), mlxc.Ones(mlxc.Float32, 3)
	freed := mlxc.Ones(mlxc.Float32, 3)
	freed.Free()
	for _, c := range []struct {
		name  string
		y     *mlxc.Array
		parts []string
	}{
		{"rank 0", LayerNorm(mlxc.Scalar[float32](1), nil, nil, 1e-5), []string{"float32()", "at least one axis"}},
		{
			"weight's width", LayerNorm(x, mlxc.Ones(mlxc.Float32, 4), w, 1e-5),
			[]string{"weight", "float32(2,3), float32(4), float32(3)", "must be [3]"},
		},
		{
			"bias's width", LayerNorm(x, w, mlxc.Ones(mlxc.Float32, 4), 1e-5),
			[]string{"bias", "float32(2,3), float32(3), float32(4)", "must be [3]"},
		},
		{"bias's rank", LayerNorm(x, nil, x, 1e-5), []string{"bias", "must be [3]"}},
		{"weight's dtype", LayerNorm(x, w.AsType(mlxc.Float16), nil, 1e-5), []string{"weight", "float16(3)", "AsType"}},
		{"bias's dtype", LayerNorm(x, w, w.AsType(mlxc.BFloat16), 1e-5), []string{"bias", "bfloat16(3)", "AsType"}},
		{"integers", LayerNorm(x.AsType(mlxc.Int32), nil, nil, 1e-5), []string{"int32(2,3)", "AsType"}},
		{
			"float64", layerNormSeparate(x.AsType(mlxc.Float64), nil, nil, 1e-5),
			[]string{"separate.LayerNorm", "float64", "AsType"},
		},
		{"negative eps", LayerNorm(x, w, w, -1), []string{"eps is -1"}},
		{"eps not a number", LayerNorm(x, w, w, float32(math.NaN())), []string{"eps"}},
		{"nil x", LayerNorm(nil, w, w, 1e-5), []string{"nil"}},
		{"freed bias", LayerNorm(x, w, freed, 1e-5), []string{"freed"}},
		{"an error passes through", LayerNorm(x.Add(mlxc.Ones(mlxc.Float32, 7)), w, w, 1e-5), []string{"add"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mlxc.Eval(c.y)
			for _, p := range c.parts {
				require.ErrorContains(t, err, p)
			}
			if c.name != "an error passes through" {
				require.ErrorContains(t, err, "LayerNorm")
			}
			require.NoError(t, mlxc.Eval(LayerNorm(x, w, w, 1e-5)))
		})
	}
}

func TestLayerNormGradientIsExportedForMetal(t *testing.T) {
	for _, c := range []struct {
		f           func(x, w, b *mlxc.Array, eps float32) *mlxc.Array
		rows, width int
		kernels     []string
	}{
		{LayerNorm, 8, 100, []string{"layer_norm_backward", "column_sum"}},
		{LayerNorm, 8, 7000, []string{"layer_norm_backward_statistics", "layer_norm_backward_columns", "column_sum"}},
		{layerNormSeparate, 8, 100, []string{"layer_norm_bwd_input", "layer_norm_bwd_gamma_partial"}},
		{
			layerNormSeparate, 1024, 100,
			[]string{"layer_norm_bwd_input", "layer_norm_bwd_gamma_partial", "layer_norm_bwd_gamma_reduce"},
		},
	} {
		for _, dtype := range gradientDTypes {
			x, w, b := normal(1, dtype, c.rows, c.width), normal(2, dtype, c.width), normal(3, dtype, c.width)
			exported := exportedKernelsOf(t, affine(true, true, 1e-5, c.f), x, w, b)
			require.Len(t, exported, len(c.kernels))
			for i, name := range c.kernels {
				require.Contains(t, exported[i], name)
			}
		}
	}
}

func TestLayerNormWithoutACompiler(t *testing.T) {
	defer func() { warnOnce = sync.Once{} }()
	withoutCompiler(t)
	x, dy := normal(1, mlxc.Float32, 3, 50), normal(2, mlxc.Float32, 3, 50)
	w, b := normal(3, mlxc.Float32, 50), normal(4, mlxc.Float32, 50)
	_, want, err := mlxc.VJP(affine(true, true, 1e-5, mlxc.LayerNorm), arrays{x, w, b}, arrays{dy})
	require.NoError(t, err)
	launches := customkernels.LaunchCount()
	_, got, err := mlxc.VJP(affine(true, true, 1e-5, LayerNorm), arrays{x, w, b}, arrays{dy})
	require.NoError(t, err)
	for i := range want {
		require.Equal(t, mlxtest.Floats(t, want[i]), mlxtest.Floats(t, got[i]))
	}
	require.Equal(t, launches, customkernels.LaunchCount())
}

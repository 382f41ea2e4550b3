package ops

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func mlxSoftmax(x *mlxc.Array) *mlxc.Array { return x.SoftmaxPrecise(-1) }

// The gradient is right in the geometry of every backend. The host executor runs them all.
func TestSoftmaxBackwardInEveryGeometry(t *testing.T) {
	for _, dtype := range gradientDTypes {
		for i, width := range []int{1, 31, 32, 33, 127, 1024, 4099, 8209, 16411} {
			for _, rows := range []int{1, 3, 37} {
				if !inSample(i, dtype) {
					continue
				}
				t.Run(fmt.Sprintf("%v/%dx%d", dtype, rows, width), func(t *testing.T) {
					// y is no softmax: the elements of a softmax of long rows are too small to test.
					y, dy := normal(1, dtype, rows, width), normal(2, dtype, rows, width)
					y32, dy32 := y.AsType(mlxc.Float32), dy.AsType(mlxc.Float32)
					want := y32.Mul(dy32.Sub(y32.Mul(dy32).Sum(-1).ExpandDims(-1))).AsType(dtype)
					for _, d := range backends {
						closeTo(t, want, softmaxBackward(target{backend: d}, y, dy))
					}
				})
			}
		}
	}
}

// The kernel of the value is right in the geometry of every backend, although only the CPU uses it. Its error is the
// rounding to T, in float32 a few roundings.
func TestSoftmaxForwardInEveryGeometry(t *testing.T) {
	for _, dtype := range gradientDTypes {
		for i, width := range []int{1, 31, 32, 33, 127, 1024, 4099, 16411, 32771} {
			for _, rows := range []int{1, 3, 37} {
				if !inSample(i, dtype) {
					continue
				}
				t.Run(fmt.Sprintf("%v/%dx%d", dtype, rows, width), func(t *testing.T) {
					x := normal(1, dtype, rows, width).MulScalar(3)
					values := mlxtest.Floats(t, x)
					want := make([]float64, len(values))
					for r := range rows {
						row, sum := values[r*width:][:width], 0.0
						for _, v := range row {
							sum += math.Exp(float64(v))
						}
						for j, v := range row {
							want[r*width+j] = math.Exp(float64(v)) / sum
						}
					}
					for _, d := range backends {
						y := softmaxRows(target{backend: d}, softmaxForwardKernels.kernel("softmax_forward"), x)
						require.Equal(t, x.Shape(), y.Shape())
						require.Equal(t, dtype, y.DType())
						// Half an ulp of T or of its subnormals, and the roundings of float32.
						half := map[mlxc.DType]float64{
							mlxc.Float32: 0x1p-24, mlxc.Float16: 0x1p-11, mlxc.BFloat16: 0x1p-8,
						}[dtype]
						least := map[mlxc.DType]float64{mlxc.Float16: 0x1p-25}[dtype]
						for i, got := range mlxtest.Floats(t, y) {
							inDelta(t, want[i], float64(got), want[i]*(half+5e-6)+least, "%v, element %d", d, i)
						}
					}
				})
			}
		}
	}
}

// A gradient by hand, dx = y·(dy − s) with y = (1/8, 1/8, 1/4, 1/2), dy = (1, −1, 2, 0) and s = 1/2.
func TestSoftmaxByHand(t *testing.T) {
	logits := make([]float32, 4)
	for i, p := range []float64{1, 1, 2, 4} {
		logits[i] = float32(math.Log(p))
	}
	for _, dtype := range gradientDTypes {
		x := mlxc.FromSlice(logits, 4).AsType(dtype)
		dy := mlxc.FromSlice([]float32{1, -1, 2, 0}, 4).AsType(dtype)
		y, dx, err := mlxc.VJP(unary(Softmax), arrays{x}, arrays{dy})
		require.NoError(t, err)
		eps := map[mlxc.DType]float64{mlxc.Float32: 1e-7, mlxc.Float16: 1e-3, mlxc.BFloat16: 8e-3}[dtype]
		require.InDeltaSlice(t, []float32{0.125, 0.125, 0.25, 0.5}, mlxtest.Floats(t, y[0]), eps)
		require.InDeltaSlice(t, []float32{0.0625, -0.1875, 0.375, -0.25}, mlxtest.Floats(t, dx[0]), eps)
	}
}

var _ = testdevice.AlsoOnGPU(TestSoftmaxByHand)

// At −∞ the value and the gradient are 0. A row of −∞ alone is NaN and does not affect other rows.
func TestSoftmaxOfInfinities(t *testing.T) {
	inf := float32(math.Inf(-1))
	x := mlxc.FromSlice([]float32{0, inf, 0, inf, inf, inf}, 2, 3)
	_, dx, err := mlxc.VJP(unary(Softmax), arrays{x}, arrays{mlxc.FromSlice([]float32{1, 5, 3, 1, 1, 1}, 2, 3)})
	require.NoError(t, err)
	got := mlxtest.Floats(t, dx[0])
	require.Equal(t, []float32{-0.5, 0, 0.5}, got[:3])
	for _, v := range got[3:] {
		require.True(t, math.IsNaN(float64(v)))
	}
}

var _ = testdevice.AlsoOnGPU(TestSoftmaxOfInfinities)

func TestSoftmaxUnderTransforms(t *testing.T) {
	for _, dtype := range gradientDTypes {
		x, dy := normal(1, dtype, 2, 5, 65), normal(2, dtype, 2, 5, 65)
		t.Run(dtype.String(), func(t *testing.T) {
			testUnaryUnderTransforms(t, Softmax, mlxSoftmax, x, dy)
			t.Run("second derivatives are refused", func(t *testing.T) {
				grad := func(args arrays) arrays { return vjpOf(unary(Softmax))(arrays{dy, args[0]})[1:] }
				_, _, err := mlxc.VJP(grad, arrays{x}, arrays{x})
				require.ErrorContains(t, err, "softmax_backward")
				require.ErrorContains(t, err, "no gradient")
			})
		})
	}
}

func TestSoftmaxWithoutACompiler(t *testing.T) { testUnaryWithoutCompiler(t, Softmax, mlxSoftmax) }

func TestSoftmaxOfLayouts(t *testing.T) { testUnaryOfLayouts(t, Softmax, mlxSoftmax) }

func TestSoftmaxGradientIsExportedForMetal(t *testing.T) {
	for _, dtype := range gradientDTypes {
		kernels := exportedKernels(t, Softmax, normal(1, dtype, 8, 100))
		require.Len(t, kernels, 1)
		require.Contains(t, kernels[0], "softmax_backward")
	}
}

func TestSoftmaxWithoutElements(t *testing.T) {
	for _, shape := range [][]int{{0, 4}, {3, 0}} {
		x := mlxc.Zeros(mlxc.Float16, shape...)
		y, grads, err := mlxc.VJP(unary(Softmax), arrays{x}, arrays{x})
		require.NoError(t, err)
		for _, a := range append(y, grads...) {
			require.NoError(t, mlxc.Eval(a))
			require.Equal(t, shape, a.Shape())
			require.Equal(t, mlxc.Float16, a.DType())
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestSoftmaxWithoutElements)

func TestSoftmaxArgumentErrors(t *testing.T) {
	x := mlxc.Ones(mlxc.Float32, 2, 3)
	freed := mlxc.Ones(mlxc.Float32, 3)
	freed.Free()
	for _, c := range []struct {
		name  string
		y     *mlxc.Array
		parts []string
	}{
		{"rank 0", Softmax(mlxc.Scalar[float32](1)), []string{"Softmax", "float32()", "at least one axis"}},
		{"integers", Softmax(x.AsType(mlxc.Int32)), []string{"Softmax", "int32(2,3)", "AsType"}},
		{"float64", Softmax(x.AsType(mlxc.Float64)), []string{"Softmax", "float64", "AsType"}},
		{"nil", Softmax(nil), []string{"Softmax", "nil"}},
		{"freed", Softmax(freed), []string{"Softmax", "freed"}},
		{"an error passes through", Softmax(x.Add(mlxc.Ones(mlxc.Float32, 7))), []string{"add"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mlxc.Eval(c.y)
			for _, p := range c.parts {
				require.ErrorContains(t, err, p)
			}
		})
	}
}

func TestSoftmaxGradientIsReproducible(t *testing.T) {
	for _, dtype := range gradientDTypes {
		y, dy := normal(1, dtype, 199, 1025), normal(2, dtype, 199, 1025)
		for _, d := range backends {
			want := mlxtest.Floats(t, softmaxBackward(target{backend: d}, y, dy))
			for range 19 {
				require.Equal(t, want, mlxtest.Floats(t, softmaxBackward(target{backend: d}, y, dy)))
			}
		}
	}
}

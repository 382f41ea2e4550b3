package ops

import (
	"errors"
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

type arrays = []*mlxc.Array

func normal(seed uint64, d mlxc.DType, shape ...int) *mlxc.Array {
	return mlxc.RandomNormal(mlxc.RandomKey(seed), d, shape...)
}

// closeTo requires that two arrays agree up to the rounding of the dtype. The tolerance is relative to the largest
// element and at least absolute, because sums of terms of size one may cancel in different orders of summation.
func closeTo(t testing.TB, want, got *mlxc.Array) {
	t.Helper()
	require.NoError(t, got.Err())
	require.Equal(t, want.Shape(), got.Shape())
	require.Equal(t, want.DType(), got.DType())
	eps := map[mlxc.DType]float64{mlxc.Float32: 1e-5, mlxc.Float16: 4e-3, mlxc.BFloat16: 3e-2}[want.DType()]
	w, g := mlxtest.Floats(t, want), mlxtest.Floats(t, got)
	largest := 1.0
	for _, v := range w {
		largest = max(largest, math.Abs(float64(v)))
	}
	for i := range w {
		inDelta(t, float64(w[i]), float64(g[i]), eps*largest, "element %d", i)
	}
}

// inDelta is require.InDelta for many elements. require.InDelta alone takes longer than the kernels.
func inDelta(t testing.TB, want, got, delta float64, message ...any) {
	t.Helper()
	if d := want - got; !(d >= -delta && d <= delta) {
		require.InDelta(t, want, got, delta, message...)
	}
}

func norm(weighted bool, eps float32, f func(x, w *mlxc.Array, eps float32) *mlxc.Array) mlxc.Func {
	return func(args arrays) arrays {
		var w *mlxc.Array
		if weighted {
			w = args[1]
		}
		return arrays{f(args[0], w, eps)}
	}
}

// rmsNormBackwards lists the implementations of the gradient.
var rmsNormBackwards = []func(on target, x, weight, dy *mlxc.Array, eps float32) []*mlxc.Array{
	rmsNormBackward, rmsNormBackwardSeparate,
}

// The gradient is right in the geometry of every backend. The host executor runs them all.
func TestRMSNormBackwardInEveryGeometry(t *testing.T) {
	for _, dtype := range gradientDTypes {
		for i, width := range []int{1, 31, 32, 33, 127, 1024, 4099, 8192, 8209} {
			for _, rows := range []int{1, 3, 37} {
				if !inSample(i, dtype) {
					continue
				}
				t.Run(fmt.Sprintf("%v/%dx%d", dtype, rows, width), func(t *testing.T) {
					x, w, dy := normal(1, dtype, rows, width), normal(2, dtype, width), normal(3, dtype, rows, width)
					_, want, err := mlxc.VJP(norm(true, 1e-5, mlxc.RMSNorm), arrays{x, w}, arrays{dy})
					require.NoError(t, err)
					for _, d := range backends {
						for _, backward := range rmsNormBackwards {
							got := backward(target{backend: d}, x, w, dy, 1e-5)
							closeTo(t, want[0], got[0])
							closeTo(t, want[1], got[1])
						}
					}
				})
			}
		}
	}
}

func TestRMSNormUnderTransforms(t *testing.T) {
	for _, dtype := range gradientDTypes {
		x, w, dy := normal(1, dtype, 2, 5, 65), normal(2, dtype, 65), normal(3, dtype, 2, 5, 65)
		for _, weighted := range []bool{true, false} {
			args := arrays{x, w}[:1]
			if weighted {
				args = arrays{x, w}
			}
			ours, theirs := norm(weighted, 1e-6, RMSNorm), norm(weighted, 1e-6, mlxc.RMSNorm)
			wantY, want, err := mlxc.VJP(theirs, args, arrays{dy})
			require.NoError(t, err)
			same := func(t *testing.T, y, got arrays) {
				closeTo(t, wantY[0], y[0])
				for i := range want {
					closeTo(t, want[i], got[i])
				}
			}
			vjp := func(f mlxc.Func) mlxc.Func {
				return func(args arrays) arrays {
					y, grads, err := mlxc.VJP(f, args[1:], args[:1])
					if err != nil {
						return arrays{mlxc.InvalidArray(err)}
					}
					return append(y, grads...)
				}
			}
			before := customkernels.LaunchCount()
			y, got, err := mlxc.VJP(ours, args, arrays{dy})
			require.NoError(t, err)
			require.Greater(t, customkernels.LaunchCount(), before, "no kernel was launched")
			t.Run("VJP", func(t *testing.T) { same(t, y, got) })
			t.Run("Checkpoint", func(t *testing.T) {
				y, got, err := mlxc.VJP(mlxc.Checkpoint(ours), args, arrays{dy})
				require.NoError(t, err)
				same(t, y, got)
			})
			t.Run("Compile", func(t *testing.T) {
				c := mlxc.Compile(vjp(ours))
				defer c.Close()
				for range 2 {
					out, err := c.Call(append(arrays{dy}, args...)...)
					require.NoError(t, err)
					same(t, out[:1], out[1:])
				}
			})
			t.Run("CompileShapeless is refused", func(t *testing.T) {
				c := mlxc.CompileShapeless(vjp(ours))
				defer c.Close()
				_, err := c.Call(append(arrays{dy}, args...)...)
				require.ErrorContains(t, err, "use Compile")
			})
			t.Run("ValueAndGrad", func(t *testing.T) {
				loss := func(f mlxc.Func) mlxc.Func {
					return func(args arrays) arrays { return arrays{f(args)[0].Mul(dy).Sum()} }
				}
				_, want, err := mlxc.ValueAndGrad(loss(theirs), 0)(args)
				require.NoError(t, err)
				_, got, err := mlxc.ValueAndGrad(loss(ours), 0)(args)
				require.NoError(t, err)
				closeTo(t, want[0], got[0])
			})
			t.Run("second derivatives are refused", func(t *testing.T) {
				grad := func(args arrays) arrays {
					_, grads, err := mlxc.VJP(ours, args, arrays{dy})
					if err != nil {
						return arrays{mlxc.InvalidArray(err)}
					}
					return grads[:1]
				}
				_, _, err := mlxc.VJP(grad, args, arrays{x})
				require.ErrorContains(t, err, "rms_norm_backward")
				require.ErrorContains(t, err, "no gradient")
			})
		}
	}
}

func TestRMSNormWithoutElements(t *testing.T) {
	for _, shape := range [][]int{{0, 4}, {3, 0}} {
		x, w := mlxc.Zeros(mlxc.Float32, shape...), mlxc.Ones(mlxc.Float32, shape[1])
		_, grads, err := mlxc.VJP(norm(true, 1e-5, RMSNorm), arrays{x, w}, arrays{x})
		require.NoError(t, err)
		require.Equal(t, shape, grads[0].Shape())
		require.Equal(t, make([]float32, shape[1]), mlxtest.Floats(t, grads[1]))
	}
}

var _ = testdevice.AlsoOnGPU(TestRMSNormWithoutElements)

func TestRMSNormOfTransposedAndStridedInputs(t *testing.T) {
	base := normal(1, mlxc.Float32, 66, 20)
	for name, x := range map[string]*mlxc.Array{
		"transposed": base.Transpose(),
		"strided":    base.Slice([]int{1, 0}, []int{66, 20}, []int{2, 3}),
		"broadcast":  normal(1, mlxc.Float32, 1, 40).BroadcastTo(7, 40),
	} {
		t.Run(name, func(t *testing.T) {
			w, dy := normal(2, mlxc.Float32, x.Dim(-1)), normal(3, mlxc.Float32, x.Dim(1), x.Dim(0)).Transpose()
			_, want, err := mlxc.VJP(norm(true, 1e-5, mlxc.RMSNorm), arrays{x, w}, arrays{dy})
			require.NoError(t, err)
			_, got, err := mlxc.VJP(norm(true, 1e-5, RMSNorm), arrays{x, w}, arrays{dy})
			require.NoError(t, err)
			closeTo(t, want[0], got[0])
			closeTo(t, want[1], got[1])
		})
	}
}

var _ = testdevice.AlsoOnGPU(TestRMSNormOfTransposedAndStridedInputs)

func TestRMSNormGradientIsReproducible(t *testing.T) {
	for _, dtype := range sampleDTypes(2) {
		for _, d := range backends {
			x, w, dy := normal(1, dtype, 199, 1025), normal(2, dtype, 1025), normal(3, dtype, 199, 1025)
			for _, backward := range rmsNormBackwards {
				first := backward(target{backend: d}, x, w, dy, 1e-5)
				dx, dw := mlxtest.Floats(t, first[0]), mlxtest.Floats(t, first[1])
				for range 19 {
					again := backward(target{backend: d}, x, w, dy, 1e-5)
					require.Equal(t, dx, mlxtest.Floats(t, again[0]))
					require.Equal(t, dw, mlxtest.Floats(t, again[1]))
				}
			}
		}
	}
}

func TestRMSNormArgumentErrors(t *testing.T) {
	x, w := mlxc.Ones(mlxc.Float32, 2, 3), mlxc.Ones(mlxc.Float32, 3)
	freed := mlxc.Ones(mlxc.Float32, 3)
	freed.Free()
	require.ErrorIs(t, RMSNorm(nil, w, 1e-5).Err(), mlxc.ErrNil)
	for _, c := range []struct {
		name  string
		y     *mlxc.Array
		parts []string
	}{
		{"rank 0", RMSNorm(mlxc.Scalar[float32](1), nil, 1e-5), []string{"float32()", "at least one axis"}},
		{"widths", RMSNorm(x, mlxc.Ones(mlxc.Float32, 4), 1e-5), []string{"float32(2,3), float32(4)", "must be [3]"}},
		{"weight's rank", RMSNorm(x, x, 1e-5), []string{"must be [3]"}},
		{"dtypes", RMSNorm(x, w.AsType(mlxc.Float16), 1e-5), []string{"float32(2,3), float16(3)", "AsType"}},
		{"integers", RMSNorm(x.AsType(mlxc.Int32), nil, 1e-5), []string{"int32(2,3)", "AsType"}},
		{"float64", RMSNorm(x.AsType(mlxc.Float64), nil, 1e-5), []string{"float64", "AsType"}},
		{"negative eps", RMSNorm(x, w, -1), []string{"eps is -1"}},
		{"eps not a number", RMSNorm(x, w, float32(math.NaN())), []string{"eps"}},
		{"nil x", RMSNorm(nil, w, 1e-5), []string{"x: the array is nil"}},
		{"freed weight", RMSNorm(x, freed, 1e-5), []string{"freed"}},
		{"an error passes through", RMSNorm(x.Add(mlxc.Ones(mlxc.Float32, 7)), w, 1e-5), []string{"add"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mlxc.Eval(c.y)
			for _, p := range c.parts {
				require.ErrorContains(t, err, p)
			}
			if c.name != "an error passes through" {
				require.ErrorContains(t, err, "RMSNorm")
			}
			require.NoError(t, mlxc.Eval(RMSNorm(x, w, 1e-5)))
		})
	}
}

// 64 goroutines compute gradients of shared lazy inputs concurrently. With the race detector this finds data races too.
func TestRMSNormFromManyGoroutines(t *testing.T) {
	x, w := normal(1, mlxc.Float32, 8, 300).Square(), normal(2, mlxc.Float32, 300)
	_, want, err := mlxc.VJP(norm(true, 1e-5, RMSNorm), arrays{x, w}, arrays{x})
	require.NoError(t, err)
	dx, dw := mlxtest.Floats(t, want[0]), mlxtest.Floats(t, want[1])
	lazy := normal(1, mlxc.Float32, 8, 300).Square()
	var wg sync.WaitGroup
	errs := make(chan error, 64)
	for range 64 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 5 {
				_, got, err := mlxc.VJP(norm(true, 1e-5, RMSNorm), arrays{lazy, w}, arrays{lazy})
				if err != nil {
					errs <- err
					return
				}
				gx, err1 := mlxc.ToSlice[float32](got[0])
				gw, err2 := mlxc.ToSlice[float32](got[1])
				if err1 != nil || err2 != nil || fmt.Sprint(gx) != fmt.Sprint(dx) || fmt.Sprint(gw) != fmt.Sprint(dw) {
					errs <- errors.Join(errors.New("the gradient differs from that of a single goroutine"), err1, err2)
					return
				}
			}
		}()
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

var _ = testdevice.AlsoOnGPU(TestRMSNormFromManyGoroutines)

// Without parameters the kernels have an output of one element that they do not access. MLX's CUDA allocator aligns such
// small arrays to 8 bytes, so their addresses must not select the order of a sum.
func TestNormsWithoutParametersIgnoreUnusedOutput(t *testing.T) {
	x, dy := normal(1, mlxc.Float32, 37, 128), normal(2, mlxc.Float32, 37, 128)
	for name, f := range map[string]mlxc.Func{
		"RMSNorm":   norm(false, 1e-5, RMSNorm),
		"LayerNorm": affine(false, false, 1e-5, LayerNorm),
	} {
		var want []float32
		for i := range 8 {
			_, grads, err := mlxc.VJP(f, arrays{x}, arrays{dy})
			require.NoError(t, err)
			got, err := mlxc.ToSlice[float32](grads[0])
			require.NoError(t, err)
			if i == 0 {
				want = got
			}
			require.Equal(t, want, got, "%s, gradient %d", name, i)
			scalar := mlxc.FromSlice([]float32{1}, 1).Add(x.Slice([]int{0, 0}, []int{1, 1}, nil).Reshape(1))
			defer scalar.Free() // its memory moves the next output of one element
			require.NoError(t, mlxc.Eval(scalar))
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestNormsWithoutParametersIgnoreUnusedOutput)

// A number that does not fit the kernels' 32-bit arguments is an error.
func TestRowsBeyond32BitsAreRefused(t *testing.T) {
	x := mlxc.Zeros(mlxc.Float16, 1<<17, 1<<16, 1) // never evaluated
	_, _, err := mlxc.VJP(norm(false, 1e-5, RMSNorm), arrays{x}, arrays{x})
	require.ErrorContains(t, err, "a size is 8589934592; it must be from 0 to 2³²−1")
	require.ErrorContains(t, uint32Arg(-1).Err(), "a size is -1; it must be from 0 to 2³²−1")
	require.NoError(t, uint32Arg(1<<32-1).Err())
}

package mlxc_test

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

// traced returns a compiled function that counts its traces.
func traced(t *testing.T) (call func(n int), traces *atomic.Int32) {
	t.Helper()
	traces = new(atomic.Int32)
	c := mlxc.Compile(func(a arrays) arrays { traces.Add(1); return arrays{a[0].Exp().Log().Sum()} })
	t.Cleanup(c.Close)
	return func(n int) {
		out, err := c.Call(mlxc.Ones(mlxc.Float32, n))
		require.NoError(t, err)
		require.InDelta(t, float32(n), floats(t, out[0])[0], 1e-3)
	}, traces
}

// The traces of the 64 most recently used signatures are kept; older signatures are traced again.
func TestCompileKeepsTheLastSignatures(t *testing.T) {
	call, traces := traced(t)
	for n := 1; n <= 64; n++ {
		call(n)
	}
	for n := 64; n >= 1; n-- {
		call(n)
	}
	require.EqualValues(t, 64, traces.Load())
	call(65) // replaces 64, the least recently used signature
	call(1)
	call(63)
	require.EqualValues(t, 65, traces.Load())
	call(64)
	require.EqualValues(t, 66, traces.Load())
}

func TestCompileMemoryForNewShapesIsBounded(t *testing.T) {
	const size = 1 << 18 // bytes of a constant
	c := mlxc.Compile(func(a arrays) arrays {
		constant := mlxc.RandomNormal(mlxc.RandomKey(uint64(a[0].Size())), mlxc.Float32, size/4)
		if err := mlxc.Eval(constant); err != nil {
			return arrays{mlxc.InvalidArray(err)}
		}
		return arrays{a[0].Sum().Add(constant.Max())}
	})
	before := mlxc.ActiveMemory()
	for n := 1; n <= 300; n++ {
		mlxc.WithScope(func() {
			out, err := c.Call(mlxc.Ones(mlxc.Float32, n))
			require.NoError(t, err)
			require.NoError(t, mlxc.Eval(out...))
		})
	}
	// The garbage collector frees the handles of f's arrays, and with them the arrays.
	require.Eventually(t, func() bool {
		runtime.GC()
		return mlxc.ActiveMemory()-before < 100*size
	}, 10*time.Second, 10*time.Millisecond)
	c.Close()
}

func TestClearCompileCache(t *testing.T) {
	call, traces := traced(t)
	call(2)
	call(2)
	require.EqualValues(t, 1, traces.Load())
	mlxc.ClearCompileCache()
	call(2)
	require.EqualValues(t, 2, traces.Load())
	// Also inside a function under a transform, which holds the lock that the compiler needs.
	x := mlxc.Ones(mlxc.Float32, 2)
	_, _, err := mlxc.VJP(func(a arrays) arrays { mlxc.ClearCompileCache(); return a }, arrays{x}, arrays{x})
	require.NoError(t, err)
	// The cache is cleared once the compiler has the lock.
	require.Eventually(t, func() bool { call(2); return traces.Load() == 3 }, 10*time.Second, time.Millisecond)
}

func TestCompileModes(t *testing.T) {
	call, traces := traced(t)
	before, err := mlxc.SetCompileMode(mlxc.CompileDisabled)
	require.NoError(t, err)
	require.Equal(t, mlxc.CompileEnabled, before)
	defer func() { _, _ = mlxc.SetCompileMode(before) }()
	call(3)
	call(3)
	require.EqualValues(t, 2, traces.Load(), "without compilation, the function runs at every call")
	for i, mode := range []mlxc.CompileMode{mlxc.CompileNoFuse, mlxc.CompileEnabled, mlxc.CompileNoSimplify} {
		_, err := mlxc.SetCompileMode(mode)
		require.NoError(t, err)
		call(3)
		call(3)
		if mode == mlxc.CompileNoSimplify { // compiles nothing where the compiler does not allow fusing
			require.Contains(t, []int32{5, 6}, traces.Load())
		} else {
			require.EqualValues(t, 3+i, traces.Load())
		}
	}
	for _, mode := range []mlxc.CompileMode{-1, 4} {
		_, err := mlxc.SetCompileMode(mode)
		require.ErrorContains(t, err, "the compile mode is")
	}
	last, err := mlxc.SetCompileMode(mlxc.CompileEnabled)
	require.NoError(t, err)
	require.Equal(t, mlxc.CompileNoSimplify, last)
}

// A function that failed once is traced again and returns its values.
func TestCompiledFunctionThatFailsOnce(t *testing.T) {
	for name, fail := range map[string]func(arrays) arrays{
		"panic": func(arrays) arrays { panic(errors.New("boom")) },
		"error": func(a arrays) arrays { return arrays{a[0].Add(mlxc.Ones(mlxc.Float32, 7))} },
		"nil":   func(arrays) arrays { return arrays{nil} },
	} {
		t.Run(name, func(t *testing.T) {
			first := true
			c := mlxc.Compile(func(a arrays) arrays {
				if first {
					first = false
					return fail(a)
				}
				return arrays{a[0].Square()}
			})
			defer c.Close()
			x := mlxc.FromSlice([]float32{2, 3})
			_, err := c.Call(x)
			require.Error(t, err)
			for range 2 {
				out, err := c.Call(x)
				require.NoError(t, err)
				require.Len(t, out, 1)
				require.Equal(t, []float32{4, 9}, floats(t, out[0]))
			}
		})
	}
}

func ExampleSetCompileMode() {
	// Without compilation, the original function runs, which shows whether a result depends on compilation.
	before, err := mlxc.SetCompileMode(mlxc.CompileDisabled)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _, _ = mlxc.SetCompileMode(before) }()
	square := mlxc.Compile(func(args []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{args[0].Square()} })
	y, err := square.Call(mlxc.FromSlice([]float32{1, 2}))
	fmt.Println(y[0], err)
	// Output: array([1, 4], dtype=float32) <nil>
}

// Without compilation, the function runs at every call, and its intermediate arrays are freed at the end of the call.
func TestIntermediatesOfUncompiledFunctionsAreFreed(t *testing.T) {
	previous, err := mlxc.SetCompileMode(mlxc.CompileDisabled)
	require.NoError(t, err)
	defer func() { _, _ = mlxc.SetCompileMode(previous) }()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // the collector must not free them
	const size = 1 << 20
	f := mlxc.Compile(func(a arrays) arrays {
		x := a[0]
		for range 16 {
			x = x.AddScalar(1).Square().Sqrt()
		}
		return arrays{x}
	})
	defer f.Close()
	mlxc.WithScope(func() {
		x := mlxc.Ones(mlxc.Float32, size/4)
		require.NoError(t, mlxc.Eval(x))
		before := mlxc.ActiveMemory()
		out, err := f.Call(x)
		require.NoError(t, err)
		require.Equal(t, float32(17), floats(t, out[0])[0])
		require.LessOrEqual(t, mlxc.ActiveMemory()-before, 3*size/2)
	})
}

func TestCompileTracesOncePerSignature(t *testing.T) {
	var traces atomic.Int32
	c := mlxc.Compile(func(args arrays) arrays {
		traces.Add(1)
		return arrays{args[0].Square().Add(args[0]).Sum()}
	})
	call := func(v ...float32) float32 {
		out, err := c.Call(mlxc.FromSlice(v))
		require.NoError(t, err)
		return floats(t, out[0])[0]
	}
	for range 3 {
		require.Equal(t, float32(8), call(1, 2))
		require.Equal(t, float32(2), call(1))
	}
	require.EqualValues(t, 2, traces.Load())

	// Inside a transform the original runs, so that it can be differentiated.
	_, vjps, err := mlxc.VJP(func(args arrays) arrays {
		out, err := c.Call(args...)
		require.NoError(t, err)
		return out
	}, arrays{mlxc.FromSlice([]float32{1, 2})}, arrays{mlxc.Scalar[float32](1)})
	require.NoError(t, err)
	require.Equal(t, []float32{3, 5}, floats(t, vjps[0]))

	c.Close()
	c.Close()
	_, err = c.Call(mlxc.FromSlice([]float32{1}))
	require.ErrorContains(t, err, "closed")
}

func TestShapelessCompile(t *testing.T) {
	var traces atomic.Int32
	c := mlxc.CompileShapeless(func(args arrays) arrays {
		traces.Add(1)
		return arrays{args[0].Square()}
	})
	for range 2 {
		for n := 1; n < 5; n++ {
			out, err := c.Call(mlxc.Ones(mlxc.Float32, n))
			require.NoError(t, err)
			require.Len(t, floats(t, out[0]), n)
		}
	}
	require.EqualValues(t, 5, traces.Load()) // once for all shapes, and once to check each shape
}

// A compiled function may have complex constants that are not finite (fault compile-complex-nan).
func TestCompileOfComplexConstants(t *testing.T) {
	x := mlxc.FromSlice([]complex64{1, 2i, 3})
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	functions := map[string]operation{}
	for _, c := range []complex64{complex(nan, 0), complex(0, nan), complex(inf, 1), complex(1, -inf)} {
		functions[fmt.Sprint(c)] = func(a *mlxc.Array) *mlxc.Array {
			return mlxc.Where(a.IsNaN().LogicalNot(), a.Add(a), mlxc.Scalar(c)).Mul(a)
		}
	}
	compare := func(name string, f operation, c *mlxc.Compiled) {
		defer c.Close()
		out, err := c.Call(x)
		require.NoError(t, err)
		want, err := mlxc.ToSlice[complex64](f(x))
		require.NoError(t, err)
		got, err := mlxc.ToSlice[complex64](out[0])
		require.NoError(t, err, name)
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), name) // NaN is not equal to itself
	}
	for name, f := range functions {
		compare(name, f, mlxc.Compile(single(f)))
		compare(name, f, mlxc.CompileShapeless(single(f)))
	}
	median := func(a *mlxc.Array) *mlxc.Array { return a.MedianKeepDims() }
	compare("MedianKeepDims", median, mlxc.Compile(single(median)))
}

func TestCompiledCloseDuringCalls(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2})
	for range 50 {
		c := mlxc.Compile(func(a arrays) arrays { return arrays{a[0].Square()} })
		var wg sync.WaitGroup
		for range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range 5 {
					if out, err := c.Call(x); err == nil {
						require.Equal(t, []float32{1, 4}, floats(t, out[0]))
					} else {
						require.ErrorContains(t, err, "closed")
					}
				}
			}()
		}
		wg.Add(1)
		go func() { defer wg.Done(); c.Close() }()
		wg.Wait()
	}
}

// A function that refers to its own compiled form is freed.
func TestCompiledThatItsFunctionReachesIsFreed(t *testing.T) {
	freed := make(chan bool, 1)
	func() {
		m := &model{weights: mlxc.FromSlice([]float32{1, 2})}
		m.step = mlxc.Compile(func(a arrays) arrays { return arrays{a[0].Add(m.weights)} })
		_, err := m.step.Call(mlxc.FromSlice([]float32{3, 4}))
		require.NoError(t, err)
		runtime.AddCleanup(m, func(c chan bool) { c <- true }, freed)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		// The next call into the library drops unused functions from the registry.
		return mlxc.Eval(mlxc.Ones(mlxc.Float32, 1)) == nil && len(freed) == 1
	}, 10*time.Second, time.Millisecond, "the model is still reachable")
}

// Inside another transform the original function runs. Its changes to the argument list do not affect the caller's
// list.
func TestCompiledInATransformCopiesItsArgumentList(t *testing.T) {
	var made *mlxc.Array
	compiled := mlxc.Compile(func(a arrays) arrays {
		a[0] = a[0].AddScalar(1)
		made = a[0]
		return arrays{a[0].Square()}
	})
	_, grads, err := mlxc.VJP(func(a arrays) arrays {
		args := arrays{a[0]}
		results, err := compiled.Call(args...)
		require.NoError(t, err)
		require.Same(t, a[0], args[0])
		made.Free()
		require.ErrorIs(t, made.Err(), mlxc.ErrFreed)
		return results
	}, arrays{mlxc.Scalar[float32](2)}, arrays{mlxc.Scalar[float32](1)})
	require.NoError(t, err)
	require.Equal(t, []float32{6}, floats(t, grads[0]))
}

func TestCompileDistinguishesStreams(t *testing.T) {
	var traces atomic.Int32
	c := mlxc.Compile(func(a arrays) arrays { traces.Add(1); return arrays{a[0].Square()} })
	x := mlxc.FromSlice([]float32{3})
	other, err := mlxc.NewStream(mlxc.CPU)
	require.NoError(t, err)
	call := func() {
		out, err := c.Call(x)
		require.NoError(t, err)
		require.Equal(t, []float32{9}, floats(t, out[0]))
	}
	call()
	mlxc.WithStream(other, call)
	mlxc.WithStream(nil, call)
	require.EqualValues(t, 2, traces.Load())
	_, err = mlxc.Trace(func(a arrays) (out arrays) {
		mlxc.WithPlaceholderGPU(func() { out, err = c.Call(a...) })
		return out
	}, arrays{x})
	require.NoError(t, err)
	call()
}

package mlxc_test

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// traced makes a compiled function that counts its traces.
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

// What was compiled for the 64 signatures that were used last is there, older ones are
// traced again.
func TestCompileKeepsTheLastSignatures(t *testing.T) {
	call, traces := traced(t)
	for n := 1; n <= 64; n++ {
		call(n)
	}
	for n := 64; n >= 1; n-- {
		call(n)
	}
	require.EqualValues(t, 64, traces.Load())
	call(65) // for which 64 goes, the one not used for longest
	call(1)
	call(63)
	require.EqualValues(t, 65, traces.Load())
	call(64)
	require.EqualValues(t, 66, traces.Load())
}

func TestCompileForEverNewShapesIsBounded(t *testing.T) {
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
	// What f made goes with its handles, which the garbage collector finds in its own time.
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
	// Inside a function under a transform too, which holds what the compiler needs.
	x := mlxc.Ones(mlxc.Float32, 2)
	_, _, err := mlxc.VJP(func(a arrays) arrays { mlxc.ClearCompileCache(); return a }, arrays{x}, arrays{x})
	require.NoError(t, err)
	// It is done once the compiler has the lock.
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
	require.EqualValues(t, 2, traces.Load(), "it runs at every call")
	for i, mode := range []mlxc.CompileMode{mlxc.CompileNoSimplify, mlxc.CompileNoFuse, mlxc.CompileEnabled} {
		_, err := mlxc.SetCompileMode(mode)
		require.NoError(t, err)
		call(3)
		call(3)
		require.EqualValues(t, 3+i, traces.Load())
	}
	for _, mode := range []mlxc.CompileMode{-1, 4} {
		_, err := mlxc.SetCompileMode(mode)
		require.ErrorContains(t, err, "there is no mode")
	}
	last, err := mlxc.SetCompileMode(mlxc.CompileEnabled)
	require.NoError(t, err)
	require.Equal(t, mlxc.CompileEnabled, last)
}

// A function that failed once is traced again, and gives its values.
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
	// To find out whether a result is compilation's: the original function runs.
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

// Where nothing is compiled, the function runs at every call, and what it makes on the way to its
// results goes with the call.
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

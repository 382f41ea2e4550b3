package mlxc_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

type arrays = []*mlxc.Array

func floats(t testing.TB, a *mlxc.Array) []float32 {
	t.Helper()
	v, err := mlxc.ToSlice[float32](a)
	require.NoError(t, err)
	return v
}

// f(x, w) = Σ x²·w has the gradients 2·x·w and x².
func weighted(args arrays) arrays {
	return arrays{args[0].Square().Mul(args[1]).Sum()}
}

func TestValueAndGrad(t *testing.T) {
	x, w := mlxc.FromSlice([]float32{1, 2, 3}), mlxc.FromSlice([]float32{4, 5, 6})
	values, grads, err := mlxc.ValueAndGrad(weighted, 0, 1)(arrays{x, w})
	require.NoError(t, err)
	require.Equal(t, []float32{4 + 20 + 54}, floats(t, values[0]))
	require.Equal(t, []float32{8, 20, 36}, floats(t, grads[0]))
	require.Equal(t, []float32{1, 4, 9}, floats(t, grads[1]))

	_, grads, err = mlxc.ValueAndGrad(weighted)(arrays{x, w})
	require.NoError(t, err)
	require.Len(t, grads, 1)

	_, _, err = mlxc.ValueAndGrad(weighted, 2)(arrays{x, w})
	require.ErrorContains(t, err, "there is no argument 2 among 2")
	_, _, err = mlxc.ValueAndGrad(func(a arrays) arrays { return a })(arrays{x})
	require.Error(t, err, "the first output is no scalar")
}

func TestCustomVJPIsUsed(t *testing.T) {
	f := mlxc.CustomVJP(
		func(args arrays) arrays { return arrays{args[0].Square()} },
		func(primals, cotangents, outputs arrays) arrays {
			// Not the true gradient, so that it can be told apart.
			return arrays{primals[0].MulScalar(100).Mul(cotangents[0]).Add(outputs[0])}
		})
	x := mlxc.FromSlice([]float32{1, 2})
	require.Equal(t, []float32{1, 4}, floats(t, f(arrays{x})[0]))
	_, vjps, err := mlxc.VJP(f, arrays{x}, arrays{mlxc.FromSlice([]float32{1, 10})})
	require.NoError(t, err)
	require.Equal(t, []float32{101, 2004}, floats(t, vjps[0]))
}

func TestCustomVJPWithWrongResults(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2})
	square := func(args arrays) arrays { return arrays{args[0].Square()} }
	for name, vjp := range map[string]mlxc.VJPFunc{
		"0 arrays, want 1":    func(_, _, _ arrays) arrays { return nil },
		"2 arrays, want 1":    func(p, c, _ arrays) arrays { return arrays{p[0], c[0]} },
		"has another shape":   func(_, _, _ arrays) arrays { return arrays{mlxc.Scalar[float32](1)} },
		"the array is nil":    func(_, _, _ arrays) arrays { return arrays{nil} },
		"cannot be broadcast": func(p, _, _ arrays) arrays { return arrays{p[0].Add(mlxc.FromSlice([]float32{1, 2, 3}))} },
	} {
		_, _, err := mlxc.VJP(mlxc.CustomVJP(square, vjp), arrays{x}, arrays{x})
		require.ErrorContains(t, err, name)
	}
}

func TestCheckpointComputesAgain(t *testing.T) {
	var runs atomic.Int32
	f := mlxc.Checkpoint(func(args arrays) arrays {
		runs.Add(1)
		return arrays{args[0].Square()}
	})
	x := mlxc.FromSlice([]float32{1, 2})
	_, vjps, err := mlxc.VJP(f, arrays{x}, arrays{mlxc.FromSlice([]float32{1, 1})})
	require.NoError(t, err)
	require.Equal(t, []float32{2, 4}, floats(t, vjps[0]))
	require.EqualValues(t, 2, runs.Load())
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
	c := mlxc.Compile(func(args arrays) arrays {
		traces.Add(1)
		return arrays{args[0].Square()}
	}, mlxc.CompileConfig{Shapeless: true})
	for n := 1; n < 5; n++ {
		out, err := c.Call(mlxc.Ones(mlxc.Float32, n))
		require.NoError(t, err)
		require.Len(t, floats(t, out[0]), n)
	}
	require.EqualValues(t, 1, traces.Load())
}

// usable checks that the library works, on this goroutine and on another.
func usable(t *testing.T) {
	t.Helper()
	check := func() error {
		x := mlxc.FromSlice([]float32{1, 2, 3})
		_, vjps, err := mlxc.VJP(func(args arrays) arrays { return arrays{args[0].Square()} }, arrays{x}, arrays{x})
		if err != nil {
			return err
		}
		if err := mlxc.AsyncEval(vjps...); err != nil {
			return err
		}
		got, err := mlxc.ToSlice[float32](vjps[0])
		if err == nil && got[2] != 18 {
			err = errors.New("wrong gradient")
		}
		return err
	}
	require.NoError(t, check())
	other := make(chan error, 1)
	go func() { other <- check() }()
	require.NoError(t, <-other)
}

func TestClosureThatEvaluates(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2, 3})
	constant := mlxc.FromSlice([]float32{1, 1, 1}).Add(mlxc.Scalar[float32](1))
	_, vjps, err := mlxc.VJP(func(args arrays) arrays {
		// Evaluates a captured array, a traced one, and nests a transform.
		require.Equal(t, []float32{2, 2, 2}, floats(t, constant))
		require.Equal(t, []float32{1, 4, 9}, floats(t, args[0].Square()))
		_, inner, err := mlxc.VJP(func(a arrays) arrays { return arrays{a[0].Square()} }, arrays{constant}, arrays{constant})
		require.NoError(t, err)
		return arrays{args[0].Mul(inner[0])}
	}, arrays{x}, arrays{x})
	require.NoError(t, err)
	require.Equal(t, []float32{8, 16, 24}, floats(t, vjps[0]))
	usable(t)
}

func TestClosureThatPanics(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2, 3})
	boom := errors.New("boom")
	bad := func(arrays) arrays { panic(boom) }
	calls := map[string]func() error{
		"VJP": func() error { _, _, err := mlxc.VJP(bad, arrays{x}, arrays{x}); return err },
		"ValueAndGrad": func() error {
			_, _, err := mlxc.ValueAndGrad(bad)(arrays{x})
			return err
		},
		"CustomVJP, forward": func() error {
			return mlxc.CustomVJP(bad, func(p, _, _ arrays) arrays { return p })(arrays{x})[0].Err()
		},
		"CustomVJP, backward": func() error {
			f := mlxc.CustomVJP(func(a arrays) arrays { return arrays{a[0].Square()} }, func(_, _, _ arrays) arrays { panic(boom) })
			_, _, err := mlxc.VJP(f, arrays{x}, arrays{x})
			return err
		},
		"Checkpoint": func() error { return mlxc.Checkpoint(bad)(arrays{x})[0].Err() },
		"Compile":    func() error { _, err := mlxc.Compile(bad).Call(x); return err },
		"Trace":      func() error { _, err := mlxc.Trace(bad, arrays{x}); return err },
		"nested": func() error {
			_, _, err := mlxc.VJP(func(a arrays) arrays {
				_, _, err := mlxc.VJP(bad, a, a)
				return arrays{mlxc.InvalidArray(err)}
			}, arrays{x}, arrays{x})
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			err := call()
			require.ErrorIs(t, err, boom)
			var p *mlxc.PanicError
			require.ErrorAs(t, err, &p)
			require.Contains(t, string(p.Stack), "transforms_test.go")
			usable(t)
		})
	}
}

// runtime.Goexit is how testify's require and testing's FailNow end a goroutine.
func TestClosureThatEndsItsGoroutine(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2, 3})
	quit := func(arrays) arrays { runtime.Goexit(); return nil }
	calls := map[string]func(){
		"VJP":          func() { _, _, _ = mlxc.VJP(quit, arrays{x}, arrays{x}) },
		"ValueAndGrad": func() { _, _, _ = mlxc.ValueAndGrad(quit)(arrays{x}) },
		"backward": func() {
			f := mlxc.CustomVJP(func(a arrays) arrays { return arrays{a[0].Square()} },
				func(_, _, _ arrays) arrays { runtime.Goexit(); return nil })
			_, _, _ = mlxc.VJP(f, arrays{x}, arrays{x})
		},
		"nested": func() {
			_, _, _ = mlxc.VJP(func(a arrays) arrays {
				_, _, _ = mlxc.VJP(quit, a, a)
				return a
			}, arrays{x}, arrays{x})
		},
		"Compile": func() { _, _ = mlxc.Compile(quit).Call(x) },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				returned, deferred := false, make(chan error, 1)
				var wg sync.WaitGroup
				wg.Add(1)
				go func() {
					defer wg.Done()
					defer func() {
						// Deferred calls may still use the library.
						_, err := mlxc.ToSlice[float32](x.Add(x))
						deferred <- err
					}()
					call()
					returned = true
				}()
				wg.Wait()
				require.NoError(t, <-deferred)
				require.False(t, returned, "the goroutine must end")
				usable(t)
			}
		})
	}
}

package mlxc_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

// The error messages explain misuse of placeholders without MLX's internal terms.
func TestPlaceholdersOutsideOfTheirFunction(t *testing.T) {
	var placeholder *mlxc.Array
	x := mlxc.Ones(mlxc.Float32, 2)
	leak := func(a arrays) arrays {
		placeholder = a[0].Square()
		return arrays{placeholder}
	}
	compiled := mlxc.Compile(leak)
	defer compiled.Close()
	_, err := compiled.Call(x)
	require.NoError(t, err)
	require.ErrorContains(t, mlxc.Eval(placeholder),
		"mlxc: Eval float32(2): the array is, or depends on, a placeholder of a function")
	require.NoError(t, mlxc.Vmap(leak, nil, nil)(arrays{x})[0].Err())
	require.Contains(t, placeholder.String(), "has no value outside the function")

	capturing := mlxc.Compile(func(a arrays) arrays { return arrays{a[0].Add(x)} })
	defer capturing.Close()
	_, err = capturing.Call(x)
	require.ErrorContains(t, err, "the function captures an array that is also one of its arguments")
	usable(t)
}

// usable requires that the library works, on this goroutine and on another.
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
		_, inner, err := mlxc.VJP(func(a arrays) arrays { return arrays{a[0].Square()} }, arrays{constant},
			arrays{constant})
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
			f := mlxc.CustomVJP(func(a arrays) arrays { return arrays{a[0].Square()} },
				func(_, _, _ arrays) arrays { panic(boom) })
			_, _, err := mlxc.VJP(f, arrays{x}, arrays{x})
			return err
		},
		"Checkpoint": func() error { return mlxc.Checkpoint(bad)(arrays{x})[0].Err() },
		"Vmap":       func() error { return mlxc.Vmap(bad, nil, nil)(arrays{x})[0].Err() },
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
			require.Contains(t, string(p.Stack), "runtime_closure_test.go")
			usable(t)
		})
	}
}

// require.FailNow of testify and FailNow of testing end a goroutine by runtime.Goexit.
func TestClosureThatEndsItsGoroutine(t *testing.T) {
	endsGoroutine(t)
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
		"Vmap":    func() { mlxc.Vmap(quit, nil, nil)(arrays{x}) },
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

func TestFunctionsWithoutOutputs(t *testing.T) {
	x := mlxc.FromSlice([]float32{1})
	none := func(arrays) arrays { return nil }
	require.ErrorContains(t, mlxc.Checkpoint(none)(arrays{x})[0].Err(), "no arrays")
	require.ErrorContains(t, mlxc.CustomVJP(none, func(p, _, _ arrays) arrays { return p })(arrays{x})[0].Err(),
		"no arrays")
	_, _, err := mlxc.ValueAndGrad(none)(arrays{x})
	require.ErrorContains(t, err, "no arrays")
	out, err := mlxc.Compile(none).Call(x)
	require.NoError(t, err)
	require.Empty(t, out)
	usable(t)
}

// A deferred call uses the library after its goroutine was ended inside a callback.
func TestDeferredTransformAfterGoexit(t *testing.T) {
	endsGoroutine(t)
	x := mlxc.FromSlice([]float32{1, 2})
	done := make(chan string, 1)
	go func() {
		defer func() {
			// End the goroutine a second time, on the thread that replaced the broken one.
			defer func() { done <- "ended" }()
			_, _, _ = mlxc.VJP(func(arrays) arrays { runtime.Goexit(); return nil }, arrays{x}, arrays{x})
			done <- "returned"
		}()
		_, _, _ = mlxc.VJP(func(arrays) arrays { runtime.Goexit(); return nil }, arrays{x}, arrays{x})
	}()
	require.Equal(t, "ended", <-done)
	usable(t)
}

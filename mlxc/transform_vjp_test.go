package mlxc_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
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
	require.ErrorContains(t, err, "not all of [2]")
	_, _, err = mlxc.ValueAndGrad(func(a arrays) arrays { return a })(arrays{x})
	requireMessage(t, err, "mlxc: ValueAndGrad float32(3): the function's first result float32(3): it must be a scalar, of shape (): take its Sum or Mean")
	_, err = mlxc.Grad(func(a arrays) arrays { return arrays{a[0].Take(a[1], 0).Sum()} }, 1)(arrays{x, mlxc.FromSlice([]int32{1})})
	requireMessage(t, err, "mlxc: Grad float32(3), int32(1): argument 1 is int32, which has no gradient: leave it out of the argnums")
	_, err = mlxc.Grad(func(a arrays) arrays { return arrays{a[0].AsType(mlxc.Bool).Sum()} })(arrays{x})
	require.ErrorContains(t, err, "the function's first result int32(): it has no gradient: return a floating-point number")
}

func TestAsFunc(t *testing.T) {
	square := func(a arrays) arrays { return arrays{a[0].Square().Sum()} }
	x := mlxc.FromSlice([]float32{1, 2, 3})
	require.Equal(t, []float32{2, 4, 6}, floats(t, mlxc.AsFunc(mlxc.Grad(square))(arrays{x})[0]))
	none := errors.New("none")
	failing := mlxc.AsFunc(func(arrays) (arrays, error) { return nil, none })
	require.ErrorIs(t, failing(nil)[0].Err(), none)
	_, _, err := mlxc.VJP(failing, arrays{x}, arrays{x})
	require.ErrorIs(t, err, none)
	_, err = mlxc.Grad(mlxc.AsFunc(nil))(arrays{x})
	require.ErrorContains(t, err, "the function is nil")
}

// What is to be computed again is not kept meanwhile, nor is what rules make.
func TestCheckpointGivesUpMemory(t *testing.T) {
	testdevice.CPUOnly(t, "a GPU queues all operations before it finishes the first, and keeps their inputs until then")
	const layers, size = 24, 1 << 18
	x := mlxc.Ones(mlxc.Float32, size)
	peak := func(layer mlxc.Func) int {
		var most int
		mlxc.WithScope(func() {
			require.NoError(t, mlxc.Eval(x))
			require.NoError(t, mlxc.Synchronize())
			before := mlxc.ActiveMemory()
			mlxc.ResetPeakMemory()
			grads, err := mlxc.Grad(func(a arrays) arrays {
				h := a
				for range layers {
					h = layer(h)
				}
				return arrays{h[0].Sum()}
			})(arrays{x})
			require.NoError(t, err)
			require.NoError(t, mlxc.Eval(grads...))
			most = mlxc.PeakMemory() - before
		})
		return most / (4 * size * layers) // in arrays for each layer
	}
	layer := func(a arrays) arrays {
		h := a[0].Sin()
		return arrays{h.Tanh().Mul(h.Sigmoid()).Mul(h.Exp()).Add(a[0])}
	}
	plain, checkpointed := peak(layer), peak(mlxc.Checkpoint(layer))
	require.GreaterOrEqual(t, plain, 5)
	require.LessOrEqual(t, checkpointed, 2)
}

func TestWhatRulesMakeIsFreed(t *testing.T) {
	var made, kept *mlxc.Array
	rule := func(a arrays) arrays {
		made, kept = a[0].MulScalar(2), a[0].MulScalar(3).Keep()
		return arrays{made}
	}
	f := mlxc.CustomFunction(single((*mlxc.Array).Square), mlxc.CustomRules{
		VJP:  func(p, _, _ arrays) arrays { return rule(p) },
		JVP:  func(p, _ arrays) arrays { return rule(p) },
		Vmap: func(a arrays, _ []bool) arrays { return rule(a) },
	})
	x, one := counting(3), mlxc.Ones(mlxc.Float32, 3)
	for name, run := range map[string]func() (arrays, error){
		"VJP":  func() (arrays, error) { _, out, err := mlxc.VJP(f, arrays{x}, arrays{one}); return out, err },
		"JVP":  func() (arrays, error) { _, out, err := mlxc.JVP(f, arrays{x}, arrays{one}); return out, err },
		"Vmap": func() (arrays, error) { return mlxc.Vmap(f, nil, nil)(arrays{x}), nil },
	} {
		t.Run(name, func(t *testing.T) {
			out, err := run()
			require.NoError(t, err)
			require.Equal(t, []float32{0, 2, 4}, floats(t, out[0]))
			require.ErrorIs(t, made.Err(), mlxc.ErrFreed)
			require.NoError(t, kept.Err())
		})
	}
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
		"0 arrays, want 1":       func(_, _, _ arrays) arrays { return nil },
		"2 arrays, want 1":       func(p, c, _ arrays) arrays { return arrays{p[0], c[0]} },
		"is not like argument 0": func(_, _, _ arrays) arrays { return arrays{mlxc.Scalar[float32](1)} },
		"the array is nil":       func(_, _, _ arrays) arrays { return arrays{nil} },
		"int32(2), float32(2)":   func(p, _, _ arrays) arrays { return arrays{p[0].AsType(mlxc.Int32)} },
		"cannot be broadcast":    func(p, _, _ arrays) arrays { return arrays{p[0].Add(mlxc.FromSlice([]float32{1, 2, 3}))} },
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

// Arguments that have no gradient are no hindrance where f has a rule for the others alone.
func TestCheckpointOfIDsAndKeys(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2, 3, 4})
	for name, c := range map[string]struct {
		f     func(x, other *mlxc.Array) *mlxc.Array
		other *mlxc.Array
	}{
		"a key": {func(x, key *mlxc.Array) *mlxc.Array {
			return x.Mul(mlxc.RandomBernoulli(key, mlxc.Scalar[float32](0.5), 4).AsType(mlxc.Float32))
		}, mlxc.RandomKey(1)},
		"ids":  {func(x, ids *mlxc.Array) *mlxc.Array { return x.Take(ids, 0).Square() }, mlxc.FromSlice([]int32{3, 0, 3})},
		"mask": {func(x, mask *mlxc.Array) *mlxc.Array { return mlxc.Where(mask, x, x.Square()) }, mlxc.FromSlice([]bool{true, false, true, false})},
	} {
		t.Run(name, func(t *testing.T) {
			f := func(a arrays) arrays { return arrays{c.f(a[0], a[1]).Sum()} }
			args := arrays{x, c.other}
			want, err := mlxc.Grad(f)(args)
			require.NoError(t, err)
			got, err := mlxc.Grad(mlxc.Checkpoint(f))(args)
			require.NoError(t, err)
			require.Equal(t, floats(t, want[0]), floats(t, got[0]))
			compiled := mlxc.Compile(mlxc.AsFunc(mlxc.Grad(mlxc.Checkpoint(f))))
			defer compiled.Close()
			out, err := compiled.Call(args...)
			require.NoError(t, err)
			require.Equal(t, floats(t, want[0]), floats(t, out[0]))
		})
	}
}

// The messages are for those who do not know MLX's insides.
func TestStandInsOutsideOfTheirFunction(t *testing.T) {
	var standIn *mlxc.Array
	x := mlxc.Ones(mlxc.Float32, 2)
	leak := func(a arrays) arrays {
		standIn = a[0].Square()
		return arrays{standIn}
	}
	compiled := mlxc.Compile(leak)
	defer compiled.Close()
	_, err := compiled.Call(x)
	require.NoError(t, err)
	require.ErrorContains(t, mlxc.Eval(standIn), "mlxc: Eval float32(2): the array stands for an argument of a function")
	require.NoError(t, mlxc.Vmap(leak, nil, nil)(arrays{x})[0].Err())
	require.Contains(t, standIn.String(), "has no value outside of it")

	capturing := mlxc.Compile(func(a arrays) arrays { return arrays{a[0].Add(x)} })
	defer capturing.Close()
	_, err = capturing.Call(x)
	require.ErrorContains(t, err, "the function captures an array that is among its arguments too")
	usable(t)
}

// An output that takes no cotangent does not shift those of the others.
func TestCheckpointPairsCotangentsWithOutputs(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2})
	f := mlxc.Checkpoint(func(a arrays) arrays { return arrays{a[0].StopGradient(), a[0].Square()} })
	_, grads, err := mlxc.VJP(f, arrays{x}, arrays{mlxc.FromSlice([]float32{100, 100}), mlxc.FromSlice([]float32{1, 1})})
	require.NoError(t, err)
	require.Equal(t, []float32{2, 4}, floats(t, grads[0]))
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
			require.Contains(t, string(p.Stack), "transforms_test.go")
			usable(t)
		})
	}
}

// runtime.Goexit is how testify's require and testing's FailNow end a goroutine.
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

func TestValueAndGradKeepsTheOrderOfItsArguments(t *testing.T) {
	x, w := mlxc.FromSlice([]float32{1, 2, 3}), mlxc.FromSlice([]float32{4, 5, 6})
	_, grads, err := mlxc.ValueAndGrad(weighted, 1, 0)(arrays{x, w})
	require.NoError(t, err)
	require.Equal(t, []float32{1, 4, 9}, floats(t, grads[0]))
	require.Equal(t, []float32{8, 20, 36}, floats(t, grads[1]))
	_, _, err = mlxc.ValueAndGrad(weighted, 1, 1)(arrays{x, w})
	require.ErrorContains(t, err, "named twice")
}

// Every output takes its own cotangent, also one without a gradient and one that is
// there twice.
func TestVJPPairsCotangentsWithOutputs(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2, 3})
	ones, hundreds := mlxc.Ones(mlxc.Float32, 3), mlxc.Full(mlxc.Float32, mlxc.Scalar[float32](100), 3)
	_, grads, err := mlxc.VJP(func(a arrays) arrays { return arrays{a[0].StopGradient(), a[0].Square()} },
		arrays{x}, arrays{hundreds, ones})
	require.NoError(t, err)
	require.Equal(t, []float32{2, 4, 6}, floats(t, grads[0]))
	_, grads, err = mlxc.VJP(func(a arrays) arrays { y := a[0].Square(); return arrays{y, y} }, arrays{x}, arrays{ones, ones})
	require.NoError(t, err)
	require.Equal(t, []float32{4, 8, 12}, floats(t, grads[0]))
	_, _, err = mlxc.VJP(func(a arrays) arrays { return a }, arrays{x}, arrays{x, x})
	require.ErrorContains(t, err, "1 outputs, but there are 2 cotangents")
}

func TestFunctionsWithoutOutputs(t *testing.T) {
	x := mlxc.FromSlice([]float32{1})
	none := func(arrays) arrays { return nil }
	require.ErrorContains(t, mlxc.Checkpoint(none)(arrays{x})[0].Err(), "no arrays")
	require.ErrorContains(t, mlxc.CustomVJP(none, func(p, _, _ arrays) arrays { return p })(arrays{x})[0].Err(), "no arrays")
	_, _, err := mlxc.ValueAndGrad(none)(arrays{x})
	require.ErrorContains(t, err, "no arrays")
	out, err := mlxc.Compile(none).Call(x)
	require.NoError(t, err)
	require.Empty(t, out)
	usable(t)
}

// A failed call gives as many invalid arrays as the function gave.
func TestFailedCustomFunctionsKeepTheirNumberOfOutputs(t *testing.T) {
	two := func(a arrays) arrays { return arrays{a[0].Add(mlxc.Ones(mlxc.Float32, 7)), a[0]} }
	x := mlxc.FromSlice([]float32{1, 2})
	for _, f := range []mlxc.Func{mlxc.Checkpoint(two), mlxc.CustomVJP(two, func(p, _, _ arrays) arrays { return p })} {
		out := f(arrays{x})
		require.Len(t, out, 2)
		require.ErrorContains(t, out[1].Err(), "broadcast")
	}
}

func TestCompiledCloseBesideCalls(t *testing.T) {
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

type model struct {
	weights *mlxc.Array
	step    *mlxc.Compiled
}

// A function that reaches its own compiled form is freed all the same.
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
		// The next call into the library forgets registered functions.
		return mlxc.Eval(mlxc.Ones(mlxc.Float32, 1)) == nil && len(freed) == 1
	}, 10*time.Second, time.Millisecond, "the model is still reachable")
}

// Inside another transform the original function runs. What it does to its list of arguments is
// its own affair there too.
func TestCompiledInATransformHasAListOfItsOwn(t *testing.T) {
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

// The gradient runs where the function ran, whatever is current when it is asked
// for.
func TestCustomVJPRunsOnTheStreamOfItsFunction(t *testing.T) {
	var device mlxc.Backend
	f := mlxc.CustomVJP(func(a arrays) arrays { return arrays{a[0].Square()} },
		func(p, c, _ arrays) arrays { device = mlxc.CurrentBackend(); return arrays{c[0]} })
	x := mlxc.FromSlice([]float32{1})
	mlxc.WithPlaceholderGPU(func() {
		_, _, err := mlxc.VJP(func(a arrays) (out arrays) {
			require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() { out = f(a) }))
			return out
		}, arrays{x}, arrays{x})
		require.NoError(t, err)
	})
	require.Equal(t, mlxc.BackendCPU, device)
}

// What a deferred call does after its goroutine was ended inside a callback.
func TestDeferredTransformAfterGoexit(t *testing.T) {
	endsGoroutine(t)
	x := mlxc.FromSlice([]float32{1, 2})
	done := make(chan string, 1)
	go func() {
		defer func() {
			// Ends the goroutine a second time, on the thread that took over.
			defer func() { done <- "ended" }()
			_, _, _ = mlxc.VJP(func(arrays) arrays { runtime.Goexit(); return nil }, arrays{x}, arrays{x})
			done <- "returned"
		}()
		_, _, _ = mlxc.VJP(func(arrays) arrays { runtime.Goexit(); return nil }, arrays{x}, arrays{x})
	}()
	require.Equal(t, "ended", <-done)
	usable(t)
}

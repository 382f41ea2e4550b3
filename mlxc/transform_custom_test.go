package mlxc_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

// marked is f(x, y) = x·y with recognizably wrong rules: gradients ×100, tangents ×1000, and +0.5 for a batch.
func marked(which mlxc.CustomRules) mlxc.Func {
	f := func(a arrays) arrays { return arrays{a[0].Mul(a[1])} }
	rules := mlxc.CustomRules{
		VJP: func(p, c, _ arrays) arrays {
			return arrays{p[1].Mul(c[0]).MulScalar(100), p[0].Mul(c[0]).MulScalar(100)}
		},
		JVP: func(p, d arrays) arrays {
			return arrays{p[1].Mul(d[0]).Add(p[0].Mul(d[1])).MulScalar(1000)}
		},
		Vmap: func(a arrays, mapped []bool) arrays {
			for i := range a {
				if !mapped[i] {
					a[i] = a[i].ExpandDims(0)
				}
			}
			return arrays{a[0].Mul(a[1]).AddScalar(0.5)}
		},
	}
	if which.VJP == nil {
		rules.VJP = nil
	}
	if which.JVP == nil {
		rules.JVP = nil
	}
	if which.Vmap == nil {
		rules.Vmap = nil
	}
	return mlxc.CustomFunction(f, rules)
}

var (
	aVJP  = func(_, _, _ arrays) arrays { return nil }
	aJVP  = func(_, _ arrays) arrays { return nil }
	aVmap = func(_ arrays, _ []bool) arrays { return nil }
)

func TestCustomFunction(t *testing.T) {
	x, y := mlxc.FromSlice([]float32{1, 2}), mlxc.FromSlice([]float32{3, 4})
	ones := mlxc.Ones(mlxc.Float32, 2)
	all := mlxc.CustomRules{VJP: aVJP, JVP: aJVP, Vmap: aVmap}
	for _, c := range []struct {
		name         string
		rules        mlxc.CustomRules
		vjp, jvp     float32 // factors
		whole        float32 // number that the Vmap rule adds
		mapped, both float32 // factors of VJP and JVP under Vmap
	}{
		{"no rules", mlxc.CustomRules{}, 1, 1, 0, 1, 1},
		{"vjp", mlxc.CustomRules{VJP: aVJP}, 100, 1, 0, 100, 1},
		{"jvp", mlxc.CustomRules{JVP: aJVP}, 1, 1000, 0, 1, 1000},
		{"vmap", mlxc.CustomRules{Vmap: aVmap}, 1, 1, 0.5, 1, 1},
		{"all", all, 100, 1000, 0.5, 100, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := marked(c.rules)
			require.Equal(t, []float32{3, 8}, floats(t, f(arrays{x, y})[0]))
			_, vjps, err := mlxc.VJP(f, arrays{x, y}, arrays{ones})
			require.NoError(t, err)
			require.Equal(t, []float32{3 * c.vjp, 4 * c.vjp}, floats(t, vjps[0]))
			require.Equal(t, []float32{1 * c.vjp, 2 * c.vjp}, floats(t, vjps[1]))
			_, jvps, err := mlxc.JVP(f, arrays{x, y}, arrays{ones, ones})
			require.NoError(t, err)
			require.Equal(t, []float32{4 * c.jvp, 6 * c.jvp}, floats(t, jvps[0]))
			// A constant argument: y is captured.
			_, jvps, err = mlxc.JVP(func(a arrays) arrays { return f(arrays{a[0], y}) }, arrays{x}, arrays{ones})
			require.NoError(t, err)
			require.Equal(t, []float32{3 * c.jvp, 4 * c.jvp}, floats(t, jvps[0]))

			g := mlxc.Vmap(f, nil, nil)
			require.Equal(t, []float32{3 + c.whole, 8 + c.whole}, floats(t, g(arrays{x, y})[0]))
			_, vjps, err = mlxc.VJP(g, arrays{x, y}, arrays{ones})
			require.NoError(t, err)
			require.Equal(t, []float32{3 * c.mapped, 4 * c.mapped}, floats(t, vjps[0]))
			_, jvps, err = mlxc.JVP(g, arrays{x, y}, arrays{ones, ones})
			require.NoError(t, err)
			require.Equal(t, []float32{4 * c.both, 6 * c.both}, floats(t, jvps[0]))

			// Vmap over the rows of `rows`; all elements share y.
			rows := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
			h := mlxc.Vmap(f, []int{0, mlxc.Unmapped}, nil)
			require.Equal(t, []float32{3 + c.whole, 8 + c.whole, 9 + c.whole, 16 + c.whole},
				floats(t, h(arrays{rows, y})[0]))
			_, vjps, err = mlxc.VJP(h, arrays{rows, y}, arrays{mlxc.Ones(mlxc.Float32, 2, 2)})
			require.NoError(t, err)
			require.Equal(t, []float32{4 * c.mapped, 6 * c.mapped}, floats(t, vjps[1]))
			_, jvps, err = mlxc.JVP(h, arrays{rows, y}, arrays{mlxc.Ones(mlxc.Float32, 2, 2), ones})
			require.NoError(t, err)
			require.Equal(t, []float32{4 * c.both, 6 * c.both, 6 * c.both, 8 * c.both}, floats(t, jvps[0]))

			// The gradient per element, and nested batches.
			each := mlxc.Vmap(func(a arrays) arrays {
				_, g, err := mlxc.VJP(f, a, arrays{mlxc.Scalar[float32](1)})
				if err != nil {
					return arrays{mlxc.InvalidArray(err)}
				}
				return g[:1]
			}, nil, nil)
			require.Equal(t, []float32{3 * c.vjp, 4 * c.vjp}, floats(t, each(arrays{x, y})[0]))
			require.Equal(t, []float32{3 + c.whole, 8 + c.whole},
				floats(t, mlxc.Vmap(g, nil, nil)(arrays{x.Reshape(1, 2), y.Reshape(1, 2)})[0]))

			compiled, err := mlxc.Compile(f).Call(x, y)
			require.NoError(t, err)
			require.Equal(t, []float32{3, 8}, floats(t, compiled[0]))
		})
	}
}

func TestCustomFunctionWithWrongResults(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2})
	square := func(args arrays) arrays { return arrays{args[0].Square()} }
	boom := errors.New("boom")
	jvp := func(rule mlxc.JVPFunc) error {
		_, _, err := mlxc.JVP(mlxc.CustomFunction(square, mlxc.CustomRules{JVP: rule}), arrays{x}, arrays{x})
		return err
	}
	vmap := func(rule mlxc.VmapFunc) error {
		return mlxc.Vmap(mlxc.CustomFunction(square, mlxc.CustomRules{Vmap: rule}), nil, nil)(arrays{x})[0].Err()
	}
	for want, err := range map[string]error{
		"the jvp's results: 0 arrays, want 1": jvp(func(_, _ arrays) arrays { return nil }),
		"the jvp's results: 2 arrays, want 1": jvp(func(_, d arrays) arrays { return arrays{d[0], d[0]} }),
		"CustomFunction float32(), float32(2): result 0 of the jvp must have the shape and dtype of output 0": jvp(func(_, d arrays) arrays { return arrays{d[0].Sum()} }),
		"int32(2), float32(2): result 0 of the jvp":                                                           jvp(func(_, d arrays) arrays { return arrays{d[0].AsType(mlxc.Int32)} }),
		"the array is nil":                     jvp(func(_, _ arrays) arrays { return arrays{nil} }),
		"panicked: boom":                       jvp(func(_, _ arrays) arrays { panic(boom) }),
		"the vmap's results: 0 arrays, want 1": vmap(func(arrays, []bool) arrays { return nil }),
		"CustomFunction float32(), float32(2): result 0 of the vmap must have the shape and dtype of the batch of " +
			"output 0": vmap(func(a arrays, _ []bool) arrays { return arrays{a[0].Sum()} }),
		"panicked: boo":       vmap(func(arrays, []bool) arrays { panic(boom) }),
		"the function is nil": mlxc.CustomFunction(nil, mlxc.CustomRules{})(arrays{x})[0].Err(),
	} {
		require.ErrorContains(t, err, want)
		usable(t)
	}
	require.ErrorIs(t, vmap(func(arrays, []bool) arrays { panic(boom) }), boom)
}

// runtime.Goexit in a rule ends the goroutine and leaves the library usable.
func TestRulesThatEndTheirGoroutine(t *testing.T) {
	endsGoroutine(t)
	x := mlxc.FromSlice([]float32{1, 2})
	f := mlxc.CustomFunction(func(a arrays) arrays { return arrays{a[0].Square()} }, mlxc.CustomRules{
		JVP:  func(_, _ arrays) arrays { runtime.Goexit(); return nil },
		Vmap: func(arrays, []bool) arrays { runtime.Goexit(); return nil },
	})
	for _, call := range []func(){
		func() { _, _, _ = mlxc.JVP(f, arrays{x}, arrays{x}) },
		func() { mlxc.Vmap(f, nil, nil)(arrays{x}) },
		func() { _, _, _ = mlxc.JVP(func(arrays) arrays { runtime.Goexit(); return nil }, arrays{x}, arrays{x}) },
	} {
		returned := false
		var wg sync.WaitGroup
		wg.Go(func() { call(); returned = true })
		wg.Wait()
		require.False(t, returned)
		usable(t)
	}
}

// 64 goroutines, each with its own values, use every transform concurrently.
func TestTransformsOnManyGoroutines(t *testing.T) {
	f := marked(mlxc.CustomRules{VJP: aVJP, JVP: aJVP, Vmap: aVmap})
	compiled := mlxc.Compile(f)
	defer compiled.Close()
	errs := make(chan error, 64)
	for g := range 64 {
		go func() {
			errs <- func() (err error) {
				for i := range 4 {
					mlxc.WithScope(func() {
						v := float32(1 + g*4 + i)
						x, y := mlxc.FromSlice([]float32{v, v}), mlxc.FromSlice([]float32{2, 3})
						check := func(a *mlxc.Array, want float32, e error) {
							if e == nil {
								var got []float32
								if got, e = mlxc.ToSlice[float32](a); e == nil && got[0] != want {
									e = fmt.Errorf("%v, want %v", got, want)
								}
							}
							err = errors.Join(err, e)
						}
						_, jvps, e := mlxc.JVP(f, arrays{x, y}, arrays{y, x})
						if e != nil {
							err = errors.Join(err, e)
							return
						}
						check(jvps[0], 1000*(4+v*v), nil)
						_, vjps, e := mlxc.VJP(f, arrays{x, y}, arrays{x})
						if e != nil {
							err = errors.Join(err, e)
							return
						}
						check(vjps[0], 200*v, nil)
						check(mlxc.Vmap(f, nil, nil)(arrays{x, y})[0], 2*v+0.5, nil)
						out, e := compiled.Call(x, y)
						if e != nil {
							err = errors.Join(err, e)
							return
						}
						check(out[0], 2*v, nil)
					})
				}
				return err
			}()
		}()
	}
	for range 64 {
		require.NoError(t, <-errs)
	}
}

func ExampleCustomFunction() {
	// A straight-through estimator: rounding with the derivative of the identity.
	round := mlxc.CustomFunction(
		func(args []*mlxc.Array) []*mlxc.Array {
			half := args[0].AddScalar(0.5)
			return []*mlxc.Array{half.AsType(mlxc.Int32).AsType(mlxc.Float32)}
		},
		mlxc.CustomRules{
			VJP: func(_, cotangents, _ []*mlxc.Array) []*mlxc.Array { return cotangents },
			JVP: func(_, tangents []*mlxc.Array) []*mlxc.Array { return tangents },
		})
	x, ones := mlxc.FromSlice([]float32{0.2, 1.7}), mlxc.Ones(mlxc.Float32, 2)
	values, grads, err := mlxc.VJP(round, []*mlxc.Array{x}, []*mlxc.Array{ones})
	fmt.Println(values[0], grads[0], err)
	// Output: array([0, 2], dtype=float32) array([1, 1], dtype=float32) <nil>
}

func TestArraysOfRulesAreFreed(t *testing.T) {
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
			// A recognizably wrong gradient.
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
		"0 arrays, want 1": func(_, _, _ arrays) arrays { return nil },
		"2 arrays, want 1": func(p, c, _ arrays) arrays { return arrays{p[0], c[0]} },
		"must have the shape and dtype of argument 0": func(_, _,
			_ arrays,
		) arrays {
			return arrays{mlxc.Scalar[float32](1)}
		},
		"the array is nil":     func(_, _, _ arrays) arrays { return arrays{nil} },
		"int32(2), float32(2)": func(p, _, _ arrays) arrays { return arrays{p[0].AsType(mlxc.Int32)} },
		"cannot be broadcast": func(p, _,
			_ arrays,
		) arrays {
			return arrays{p[0].Add(mlxc.FromSlice([]float32{1, 2, 3}))}
		},
	} {
		_, _, err := mlxc.VJP(mlxc.CustomVJP(square, vjp), arrays{x}, arrays{x})
		require.ErrorContains(t, err, name)
	}
}

// A failed call returns as many invalid arrays as the function has results.
func TestFailedCustomFunctionsKeepTheirNumberOfOutputs(t *testing.T) {
	two := func(a arrays) arrays { return arrays{a[0].Add(mlxc.Ones(mlxc.Float32, 7)), a[0]} }
	x := mlxc.FromSlice([]float32{1, 2})
	for _, f := range []mlxc.Func{mlxc.Checkpoint(two), mlxc.CustomVJP(two, func(p, _, _ arrays) arrays { return p })} {
		out := f(arrays{x})
		require.Len(t, out, 2)
		require.ErrorContains(t, out[1].Err(), "broadcast")
	}
}

// The gradient runs on the stream of the function, whichever stream is current at the time.
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

package mlxc_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// 64 goroutines concurrently build on the same lazy arrays, differentiate, compile, evaluate and free. Run with -race.
func TestGoroutinesShareEverything(t *testing.T) {
	const goroutines, rounds = 64, 20
	shared := mlxc.FromSlice([]float32{1, 2, 3, 4})
	lazy := shared.Square() // the first goroutine evaluates it
	// A pair of lazy outputs of one primitive, which refer to each other.
	_, pair, err := mlxc.VJP(func(a arrays) arrays { return arrays{a[0].Mul(a[1])} },
		arrays{lazy, shared}, arrays{shared})
	require.NoError(t, err)
	var traces atomic.Int32
	compiled := mlxc.Compile(func(a arrays) arrays {
		traces.Add(1)
		return arrays{a[0].Mul(a[0]).Add(a[1]).Exp().Log()}
	})
	work := func(id int) error {
		for round := range rounds {
			x := mlxc.FromSlice([]float32{float32(id), 1, 2, 3})
			sum := x.Add(lazy).Add(pair[round%2].MulScalar(0))
			_, vjps, err := mlxc.VJP(func(a arrays) arrays { return arrays{a[0].Mul(sum)} }, arrays{x}, arrays{lazy})
			if err != nil {
				return err
			}
			out, err := compiled.Call(vjps[0].MulScalar(0), x)
			if err != nil {
				return err
			}
			if round%3 == 0 {
				if err := mlxc.AsyncEval(out[0], sum); err != nil {
					return err
				}
			}
			got, err := mlxc.ToSlice[float32](vjps[0])
			if err != nil {
				return err
			}
			if want := float32(id) + 1; got[0] != want {
				return fmt.Errorf("got %v, want %v", got[0], want)
			}
			got, err = mlxc.ToSlice[float32](out[0])
			if err != nil {
				return err
			}
			if d := got[1] - 1; d > 1e-5 || d < -1e-5 {
				return fmt.Errorf("compiled: got %v, want 1", got[1])
			}
			mlxc.WithScope(func() { _ = sum.Add(lazy).String() })
			x.Free()
			sum.Free()
		}
		return nil
	}
	errs := make(chan error, goroutines)
	var wg sync.WaitGroup
	for id := range goroutines {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs <- work(id)
		}()
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, traces.Load(), "one trace serves all goroutines")
}

// 64 goroutines use every transform concurrently, on shared functions and on a shared array that is not evaluated yet.
// Run with -race.
func TestGoroutinesTransform(t *testing.T) {
	const goroutines, rounds = 64, 3
	w := mlxc.FromSlice([]float32{1, 2, 3}).AddScalar(1) // 2, 3, 4
	one := mlxc.Scalar[float32](1)
	square := func(a arrays) arrays { return arrays{a[0].Square()} }
	first := func(a arrays, err error) (*mlxc.Array, error) {
		if err != nil {
			return nil, err
		}
		return a[0], nil
	}
	// The gradient of Σ x²·w with respect to x, 2·x·w, by every transform.
	gradient := mlxc.ValueAndGrad(weighted, 0)
	gradientOf := func(f mlxc.Func) func(x *mlxc.Array) (*mlxc.Array, error) {
		return func(x *mlxc.Array) (*mlxc.Array, error) {
			_, grads, err := mlxc.VJP(f, arrays{x, w}, arrays{one})
			return first(grads, err)
		}
	}
	custom := mlxc.CustomVJP(weighted, func(p, c, _ arrays) arrays {
		return arrays{p[0].Mul(p[1]).MulScalar(2).Mul(c[0]), p[0].Square().Mul(c[0])}
	})
	// For a whole array and for its single elements.
	whole := func(a arrays) arrays {
		_, grads, err := gradient(a)
		if err != nil {
			return arrays{mlxc.InvalidArray(err)}
		}
		return grads
	}
	compiled, shapeless := mlxc.Compile(whole), mlxc.CompileShapeless(func(a arrays) arrays {
		return arrays{a[0].Mul(a[1]).MulScalar(2)}
	})
	vectorized := mlxc.Vmap(whole, []int{0, 0}, nil)
	transforms := map[string]func(x *mlxc.Array) (*mlxc.Array, error){
		"VJP": gradientOf(weighted),
		"ValueAndGrad": func(x *mlxc.Array) (*mlxc.Array, error) {
			_, grads, err := gradient(arrays{x, w})
			return first(grads, err)
		},
		"CustomVJP":        gradientOf(custom),
		"Checkpoint":       gradientOf(mlxc.Checkpoint(weighted)),
		"Compile":          func(x *mlxc.Array) (*mlxc.Array, error) { return first(compiled.Call(x, w)) },
		"CompileShapeless": func(x *mlxc.Array) (*mlxc.Array, error) { return first(shapeless.Call(x, w)) },
		"Vmap":             func(x *mlxc.Array) (*mlxc.Array, error) { return first(vectorized(arrays{x, w}), nil) },
		// The same from second derivatives: the gradient of Σ x³·w/3 is x²·w, and the gradient of its sum is 2·x·w.
		"nested": gradientOf(func(a arrays) arrays {
			_, vjps, err := mlxc.VJP(func(b arrays) arrays {
				return arrays{b[0].Mul(b[0]).Mul(b[0]).Mul(a[1]).DivScalar(3).Sum()}
			}, arrays{a[0]}, arrays{one})
			if err != nil {
				return arrays{mlxc.InvalidArray(err)}
			}
			return arrays{vjps[0].Sum()}
		}),
		"AsyncEval": func(x *mlxc.Array) (*mlxc.Array, error) {
			y := x.Mul(w).MulScalar(2)
			return y, mlxc.AsyncEval(y)
		},
		"Trace": func(x *mlxc.Array) (*mlxc.Array, error) {
			nodes, err := mlxc.Trace(square, arrays{x})
			if err == nil && len(nodes) == 0 {
				err = errors.New("an empty trace")
			}
			return x.Mul(w).MulScalar(2), err
		},
	}
	names := slices.Sorted(maps.Keys(transforms))
	work := func(id int) error {
		want := []float32{float32(4 * id), 6, 16}
		for round := range rounds {
			for k := range names {
				name := names[(id+round+k)%len(names)]
				var err error
				mlxc.WithScope(func() {
					var y *mlxc.Array
					if y, err = transforms[name](mlxc.FromSlice([]float32{float32(id), 1, 2})); err != nil {
						return
					}
					var got []float32
					if got, err = mlxc.ToSlice[float32](y); err == nil && !slices.EqualFunc(got, want, close32) {
						err = fmt.Errorf("got %v, want %v", got, want)
					}
				})
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
		return nil
	}
	errs := make(chan error, goroutines)
	for id := range goroutines {
		go func() { errs <- work(id) }()
	}
	for range goroutines {
		require.NoError(t, <-errs)
	}
}

func close32(a, b float32) bool { return max(a-b, b-a) <= 1e-4*max(1, b, -b) }

// A Free concurrent with uses of the same array gives correct values or ErrFreed.
func TestFreeDuringUse(t *testing.T) {
	for range 200 {
		x := mlxc.FromSlice([]float32{1, 2, 3})
		var wg sync.WaitGroup
		for range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				got, err := mlxc.ToSlice[float32](x.Add(x))
				if err != nil {
					require.ErrorIs(t, err, mlxc.ErrFreed)
					return
				}
				require.Equal(t, []float32{2, 4, 6}, got)
			}()
		}
		wg.Add(1)
		go func() { defer wg.Done(); x.Free() }()
		wg.Wait()
		require.ErrorIs(t, x.Err(), mlxc.ErrFreed)
	}
}

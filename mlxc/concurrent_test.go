package mlxc_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// 64 goroutines build on the same lazy arrays, differentiate, compile, evaluate
// and free at once. Run with -race.
func TestGoroutinesShareEverything(t *testing.T) {
	const goroutines, rounds = 64, 20
	shared := mlxc.FromSlice([]float32{1, 2, 3, 4})
	lazy := shared.Square() // evaluated by whoever comes first
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

// A Free beside uses of the same array gives right values or ErrFreed, nothing
// else.
func TestFreeBesideUse(t *testing.T) {
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

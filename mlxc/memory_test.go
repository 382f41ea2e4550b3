package mlxc_test

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// resident returns the process's resident memory in bytes, or 0 if it cannot be read or includes the memory of a
// sanitizer.
func resident(t *testing.T) int {
	if instrumented {
		return 0
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	require.NoError(t, err)
	return pages * os.Getpagesize()
}

func TestScopeFreesItsArrays(t *testing.T) {
	var kept, inner, dropped *mlxc.Array
	outside := mlxc.FromSlice([]float32{1})
	mlxc.WithScope(func() {
		dropped = mlxc.FromSlice([]float32{2})
		mlxc.WithScope(func() {
			inner = outside.Add(dropped).Keep() // to the outer scope
		})
		require.NoError(t, inner.Err())
		kept = inner.MulScalar(2).Keep()
		other := make(chan *mlxc.Array)
		go func() { other <- mlxc.FromSlice([]float32{5}) }()
		a := <-other
		require.NoError(t, a.Err())
	})
	require.ErrorIs(t, dropped.Err(), mlxc.ErrFreed)
	require.ErrorIs(t, inner.Err(), mlxc.ErrFreed)
	require.Equal(t, []float32{6}, floats(t, kept))
	require.NoError(t, outside.Err())
}

// A shape that exceeds memory is an error and does not end the process.
func TestShapesBeyondMemoryAreErrors(t *testing.T) {
	if instrumented || runtime.GOOS != "linux" || mlxc.GPU.Available() {
		skip.Platform(t, "only the CPU allocator on Linux needs this package's check: other allocators report the error themselves")
	}
	const n = 1 << 21
	x := mlxc.Ones(mlxc.Float32, n)
	require.NoError(t, mlxc.Eval(x))
	before := mlxc.ActiveMemory()
	for name, a := range map[string]*mlxc.Array{
		"zeros":     mlxc.Zeros(mlxc.Float32, n, n),
		"product":   x.Outer(x),
		"broadcast": x.ExpandDims(1).Add(x).Exp().Sum(),
		"random":    mlxc.RandomNormal(nil, mlxc.Float32, n, n),
	} {
		for range 2 {
			require.ErrorContains(t, mlxc.Eval(a), "out of memory: an array takes 17592186044416 bytes", name)
		}
		a.Free()
		usable(t)
	}
	require.Less(t, mlxc.ActiveMemory()-before, 1<<20)
}

func TestWithScopeErr(t *testing.T) {
	var made, kept *mlxc.Array
	want := errors.New("failed")
	require.Equal(t, want, mlxc.WithScopeErr(func() error {
		made, kept = mlxc.Scalar[int32](1), mlxc.Scalar[int32](2).Keep()
		return want
	}))
	require.ErrorIs(t, made.Err(), mlxc.ErrFreed)
	require.NoError(t, kept.Err())
	require.NoError(t, mlxc.WithScopeErr(func() error { return nil }))
}

func TestScopeEndsWhenItsFunctionPanics(t *testing.T) {
	var a *mlxc.Array
	require.Panics(t, func() {
		mlxc.WithScope(func() {
			a = mlxc.FromSlice([]float32{1})
			panic("boom")
		})
	})
	require.ErrorIs(t, a.Err(), mlxc.ErrFreed)
	b := mlxc.FromSlice([]float32{1})
	require.NoError(t, b.Err())
}

// A training loop of 10,000 steps, with and without a scope per step: MLX's active memory and the process's memory stay
// at their level after the first hundred steps.
func TestMemoryStaysFlat(t *testing.T) {
	steps, warm := 10_000, 100
	if instrumented {
		steps = 1000
	}
	step := mlxc.ValueAndGrad(func(a arrays) arrays {
		return arrays{mlxc.RMSNorm(a[0], a[1], 1e-5).Square().Sum()}
	}, 0, 1)
	for name, scoped := range map[string]bool{"scopes": true, "collector": false} {
		t.Run(name, func(t *testing.T) {
			x := mlxc.RandomNormal(mlxc.RandomKey(1), mlxc.Float32, 16, 256)
			w := mlxc.Ones(mlxc.Float32, 256)
			one := func() {
				_, grads, err := step(arrays{x, w})
				require.NoError(t, err)
				next := w.Sub(grads[1].MulScalar(1e-6)).Keep()
				require.NoError(t, mlxc.Eval(next, grads[0]))
				if scoped {
					w.Free()
				}
				w = next
			}
			var active, rss int
			for i := range steps {
				if i == warm {
					runtime.GC()
					active, rss = mlxc.ActiveMemory(), resident(t)
				}
				if scoped {
					mlxc.WithScope(one)
				} else {
					one()
				}
			}
			runtime.GC()
			grownActive, grownRSS := mlxc.ActiveMemory()-active, resident(t)-rss
			t.Logf("after %d steps: active memory %+d bytes, resident %+d bytes", steps, grownActive, grownRSS)
			allowed := 1 << 20 // one step's arrays are 50 KB
			if !scoped {
				// The garbage collector starts at 64 MiB of active memory and finishes some steps later; MLX's cache
				// holds as much again.
				allowed = 128 << 20
			}
			require.Less(t, grownActive, allowed)
			if rss > 0 {
				require.Less(t, grownRSS, 2*allowed+16<<20)
			}
		})
	}
}

func TestKeepAfterFree(t *testing.T) {
	for range 20 {
		mlxc.WithScope(func() {
			a := mlxc.FromSlice([]float32{1, 2, 3})
			a.Free()
			require.ErrorIs(t, a.Keep().Err(), mlxc.ErrFreed)
			b := mlxc.FromSlice([]float32{1}).Keep()
			b.Keep()
			b.Free()
		})
		runtime.GC()
		require.Equal(t, []float32{2}, floats(t, mlxc.FromSlice([]float32{1}).Add(mlxc.FromSlice([]float32{1}))))
	}
}

func TestKeepAndFreeFromManyGoroutines(t *testing.T) {
	for range 50 {
		var wg sync.WaitGroup
		var a *mlxc.Array
		mlxc.WithScope(func() {
			a = mlxc.FromSlice([]float32{1, 2, 3})
			for i := range 4 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					if i == 3 {
						a.Free()
					} else {
						a.Keep()
					}
				}()
			}
		})
		wg.Wait()
		require.ErrorIs(t, a.Err(), mlxc.ErrFreed, "Free wins over Keep")
	}
}

func TestPeakMemory(t *testing.T) {
	const size = 8 << 20
	mlxc.ResetPeakMemory()
	x := mlxc.Ones(mlxc.Float32, size/4)
	require.NoError(t, mlxc.Eval(x))
	active := mlxc.ActiveMemory() // of other tests' arrays too, which are freed at any time
	x.Free()
	require.GreaterOrEqual(t, active, size)
	require.GreaterOrEqual(t, mlxc.PeakMemory(), active)
	mlxc.ResetPeakMemory()
	require.Less(t, mlxc.PeakMemory(), active)
}

package mlxc

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// MLX releases Go functions and pinned memory together with the arrays that need them.
func TestUnusedFunctionsAreReleased(t *testing.T) {
	held := func() int {
		require.NoError(t, Eval(Ones(Float32, 1)))
		functions.mu.Lock()
		defer functions.mu.Unlock()
		return len(functions.byID) - len(functions.free)
	}
	f := CustomFunction(func(a []*Array) []*Array { return []*Array{a[0].Square()} }, CustomRules{
		VJP:  func(p, c, _ []*Array) []*Array { return []*Array{p[0].Mul(c[0])} },
		JVP:  func(p, d []*Array) []*Array { return []*Array{p[0].Mul(d[0])} },
		Vmap: func(a []*Array, _ []bool) []*Array { return []*Array{a[0].Square()} },
	})
	sum := func(a []*Array) []*Array { return []*Array{f(a)[0].Sum()} }
	for name, call := range map[string]func(x []*Array) ([]*Array, error){
		"call":       func(x []*Array) ([]*Array, error) { return f(x), nil },
		"JVP":        func(x []*Array) ([]*Array, error) { _, y, err := JVP(f, x, x); return y, err },
		"VJP":        func(x []*Array) ([]*Array, error) { _, y, err := VJP(f, x, x); return y, err },
		"Grad":       func(x []*Array) ([]*Array, error) { return Grad(sum)(x) },
		"Vmap":       func(x []*Array) ([]*Array, error) { return Vmap(f, nil, nil)(x), nil },
		"Checkpoint": func(x []*Array) ([]*Array, error) { _, y, err := VJP(Checkpoint(f), x, x); return y, err },
		"failure": func(x []*Array) ([]*Array, error) {
			_, _, err := VJP(sum, x, x)
			require.Error(t, err)
			return x,
				nil
		},
	} {
		before := held()
		for n := range 100 {
			WithScope(func() {
				y, err := call([]*Array{FromSliceNoCopy(make([]float32, n+2)).AddScalar(1)})
				require.NoError(t, err)
				require.NoError(t, Eval(y...))
			})
		}
		require.LessOrEqual(t, held()-before, 5, name)
	}
	// The garbage collector frees the arrays made while a function is traced, and runs late.
	eventually := func(most int) {
		require.Eventually(t, func() bool { runtime.GC(); return held() <= most }, 10*time.Second, 10*time.Millisecond)
	}
	compiled := Compile(f)
	before := held()
	for n := range 200 {
		WithScope(func() {
			_, err := compiled.Call(Ones(Float32, n+2))
			require.NoError(t, err)
		})
	}
	// Each of the 64 kept traces holds f and its rules.
	eventually(before + 64*4)
	ClearCompileCache()
	eventually(before)
	compiled.Close()
	eventually(before - 1)
}

// A handle queued because another goroutine held the graph lock is destroyed without another evaluation.
func TestQueuedHandlesAreDestroyed(t *testing.T) {
	a := Scalar[float32](1)
	a.cleanup.Stop()
	a.users.Store(freedBit | destroyedBit)
	freeQueue.add(handleWord(a.ctx))
	require.Eventually(t, func() bool { return freeQueue.waiting.Load() == 0 }, 10*time.Second, time.Millisecond)
}

package mlxc_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
)

const singularError = "LU factorization failed"

// onCPU runs a test on the CPU: GPUs have no factorizations.
func onCPU(t *testing.T, f func()) {
	t.Helper()
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, f))
}

func singularInverse() *mlxc.Array { return mlxc.Zeros(mlxc.Float32, 3, 3).Inv() }

// Failing and successful evaluations share a stream: each call returns its own error, and every value is correct.
func TestErrorsReachTheirEvaluation(t *testing.T) {
	inverse := func() error { return mlxc.Eval(singularInverse()) }
	deferred := func() error {
		x := singularInverse()
		if err := mlxc.AsyncEval(x); err != nil {
			return fmt.Errorf("AsyncEval: %w", err)
		}
		_, err := mlxc.ToSlice[float32](x.AddScalar(1))
		return err
	}
	want := []float32{3, 3, 3, 3}
	right := func(x *mlxc.Array, err error) error {
		if err != nil {
			return err
		}
		got, err := mlxc.ToSlice[float32](x)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%v instead of %v", got, want)
		}
		return err
	}
	sum := func() error {
		x := mlxc.Ones(mlxc.Float32, 3, 4).Sum(0)
		return right(x, mlxc.Eval(x))
	}
	deferredSum := func() error {
		x := mlxc.Ones(mlxc.Float32, 4).AddScalar(1)
		return right(x.AddScalar(1), mlxc.AsyncEval(x))
	}
	healthyInverse := func() error {
		x := mlxc.Eye(mlxc.Float32, 4, 4, 0).Inv().Sum(0).MulScalar(3)
		return right(x, mlxc.Eval(x))
	}
	const rounds = 500
	var wg sync.WaitGroup
	run := func(f func() error, fails bool) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			err := mlxc.WithDevice(mlxc.CPU, func() {
				for i := range rounds {
					var err error
					mlxc.WithScope(func() { err = f() })
					if fails && err == nil {
						t.Errorf("round %d: the inverse of a singular matrix gives no error", i)
					}
					if fails && err != nil && !isSingular(err) || !fails && err != nil {
						t.Errorf("round %d: %v", i, err)
					}
				}
			})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	for range 4 {
		run(inverse, true)
		run(deferred, true)
		run(sum, false)
		run(deferredSum, false)
		run(healthyInverse, false)
	}
	wg.Wait()
}

func isSingular(err error) bool { return err != nil && strings.Contains(err.Error(), singularError) }

// Arrays that depend on a failed array fail at every use: the requested array, an operand, or an array of a later call.
// Other arrays keep their values.
func TestFailedEvaluationFailsItsDependents(t *testing.T) {
	onCPU(t, func() {
		x := mlxc.Ones(mlxc.Float32, 3, 3).MulScalar(2) // singular
		inverse := x.Inv()
		sum := inverse.AddScalar(1)
		other := x.AddScalar(1)
		require.ErrorContains(t, mlxc.Eval(sum, other), singularError)
		for _, a := range []*mlxc.Array{sum, inverse, sum.Sum(), inverse.MatMul(x)} {
			requireSingular(t, a)
		}
		require.Equal(t, float32(2), floats(t, x)[0])
		require.Equal(t, float32(3), floats(t, other)[0])
		// The operand stays usable.
		require.NoError(t, mlxc.Eval(x.Add(mlxc.Eye(mlxc.Float32, 3, 3, 0)).Inv()))
	})
}

func requireSingular(t *testing.T, a *mlxc.Array) {
	t.Helper()
	require.ErrorContains(t, mlxc.Eval(a), singularError)
	_, err := mlxc.ToSlice[float32](a)
	require.ErrorContains(t, err, singularError)
	_, err = mlxc.Item[float32](a.Max())
	require.ErrorContains(t, err, singularError)
	require.Contains(t, a.String(), singularError)
	file := filepath.Join(t.TempDir(), "a.safetensors")
	require.ErrorContains(t, mlxio.SaveSafetensors(file, map[string]*mlxc.Array{"a": a}, nil), singularError)
	require.NoFileExists(t, file)
	require.False(t, a.IsReady())
}

// A read returns the error of AsyncEval, as do computations from arrays that still run.
func TestFailedAsyncEvalFailsItsReads(t *testing.T) {
	onCPU(t, func() {
		for _, wait := range []bool{false, true} {
			for range 50 {
				inverse, healthy := singularInverse(), mlxc.Ones(mlxc.Float32, 2)
				sum := inverse.AddScalar(1)
				require.NoError(t, mlxc.AsyncEval(sum, healthy.MulScalar(2)))
				if wait {
					require.ErrorContains(t, mlxc.Synchronize(), singularError)
					require.NoError(t, mlxc.Synchronize(), "the error was returned")
				}
				// If sum has already failed, AsyncEval returns its error.
				next := sum.MulScalar(2)
				if err := mlxc.AsyncEval(next); err != nil || wait {
					require.ErrorContains(t, err, singularError)
				}
				_, err := mlxc.ToSlice[float32](next.Add(healthy.Sum()))
				require.ErrorContains(t, err, singularError)
				for _, a := range []*mlxc.Array{inverse, sum, next} {
					require.ErrorContains(t, mlxc.Eval(a), singularError)
					require.False(t, a.IsReady())
				}
				require.Equal(t, []float32{1, 1}, floats(t, healthy))
				require.NoError(t, mlxc.Synchronize(), "the error was returned by a read")
			}
		}
	})
}

// A failed evaluation on one stream fails its dependents on another stream, and nothing else there.
func TestFailedEvaluationBetweenStreams(t *testing.T) {
	a, err := mlxc.NewStream(mlxc.CPU)
	require.NoError(t, err)
	b, err := mlxc.NewStream(mlxc.CPU)
	require.NoError(t, err)
	for range 50 {
		var inverse, sum, healthy *mlxc.Array
		mlxc.WithStream(a, func() { inverse = singularInverse() })
		mlxc.WithStream(b, func() { healthy = mlxc.Ones(mlxc.Float32, 3).MulScalar(2) })
		mlxc.WithStream(b, func() { sum = inverse.Add(healthy) })
		later := inverse.SubScalar(1)
		require.NoError(t, mlxc.AsyncEval(sum))
		mlxc.WithStream(b, func() { require.ErrorContains(t, mlxc.Eval(later.Add(sum)), singularError) })
		require.ErrorContains(t, mlxc.Eval(sum), singularError)
		require.ErrorContains(t, mlxc.Eval(inverse), singularError)
		require.Equal(t, []float32{2, 2, 2}, floats(t, healthy))
	}
}

// Inside a transform, the call returns the error, and the arguments stay valid.
func TestFailedEvaluationInsideTransforms(t *testing.T) {
	onCPU(t, func() {
		x := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
		f := func(a arrays) arrays {
			singular := a[0].MulScalar(0).Inv()
			require.ErrorContains(t, mlxc.Eval(singular), singularError)
			require.ErrorContains(t, mlxc.Eval(singular.AddScalar(1)), singularError)
			require.NoError(t, mlxc.Eval(a[0].AddScalar(1).Inv()))
			return arrays{a[0].Square().Sum()}
		}
		_, grads, err := mlxc.VJP(f, arrays{x}, arrays{mlxc.Scalar[float32](1)})
		require.NoError(t, err)
		require.Equal(t, []float32{2, 4, 6, 8}, floats(t, grads[0]))

		inverse := func(a arrays) arrays { return arrays{a[0].Inv().AddScalar(1)} }
		compiled := mlxc.Compile(inverse)
		defer compiled.Close()
		for range 3 {
			bad, err := compiled.Call(mlxc.Zeros(mlxc.Float32, 3, 3))
			require.NoError(t, err)
			good, err := compiled.Call(mlxc.Eye(mlxc.Float32, 3, 3, 0))
			require.NoError(t, err)
			require.ErrorContains(t, mlxc.Eval(bad...), singularError)
			require.Equal(t, float32(2), floats(t, good[0])[0])
		}
		mapped := mlxc.Vmap(inverse, []int{0}, nil)(arrays{mlxc.Zeros(mlxc.Float32, 2, 3, 3)})
		require.ErrorContains(t, mlxc.Eval(mapped...), singularError)
	})
}

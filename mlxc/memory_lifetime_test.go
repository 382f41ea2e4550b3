package mlxc_test

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Each case makes 1.6 GB of unreachable arrays: the package must start the garbage collector in time.
func TestDroppedArraysAreFreed(t *testing.T) {
	for _, c := range []struct {
		name         string
		arrays, size int
		drop         func(i int, data []float32) error
	}{
		{"leaves", 100_000, 4 << 10, func(i int, data []float32) error {
			data[0] = float32(i)
			return mlxc.FromSlice(data).Err()
		}},
		{"results", 10_000, 40 << 10, func(i int, data []float32) error {
			y := mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(i)), len(data))
			if i%10 == 0 {
				return mlxc.Eval(y)
			}
			return mlxc.AsyncEval(y)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := make([]float32, c.size)
			runtime.GC()
			before, rss, most := mlxc.ActiveMemory(), resident(t), 0
			for i := range c.arrays {
				require.NoError(t, c.drop(i, data))
				if i%100 == 0 {
					most = max(most, mlxc.ActiveMemory()-before)
				}
			}
			grown := resident(t) - rss
			t.Logf("at most %d MiB active, %d MiB more resident", most>>20, grown>>20)
			require.Less(t, most, 512<<20)
			require.Less(t, grown, 1<<30)
			require.Eventually(t, func() bool {
				runtime.GC()
				return mlxc.ActiveMemory()-before < 1<<20
			}, 10*time.Second, 10*time.Millisecond, "all arrays are freed")
		})
	}
}

// The garbage collector cannot free arrays of a scope, so their memory starts no collection.
func TestScopesStartNoCollections(t *testing.T) {
	collections := func() uint32 {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.NumForcedGC
	}
	require.Eventually(t, func() bool { // arrays of other tests may start the first ones
		before := collections()
		for range 4 {
			mlxc.WithScope(func() {
				ones := mlxc.Ones(mlxc.Float32, 32<<20) // 128 MiB
				require.NoError(t, mlxc.Eval(ones))
				require.NoError(t, mlxc.Eval(ones.Add(ones)))
			})
			time.Sleep(time.Millisecond)
		}
		return collections() == before
	}, 10*time.Second, time.Millisecond)
}

func TestProfileOfArrays(t *testing.T) {
	profile := pprof.Lookup("mlxgrad.arrays")
	require.NotNil(t, profile)
	unsampled := mlxc.Scalar[float32](1)
	require.Zero(t, profile.Count(), "sampling is off by default")

	mlxc.ProfileArrays(1)
	t.Cleanup(func() { mlxc.ProfileArrays(0) })
	a, b := mlxc.Scalar[float32](1), mlxc.Scalar[float32](2)
	require.Equal(t, 2, profile.Count())
	var inScope *mlxc.Array
	mlxc.WithScope(func() {
		inScope = a.Add(b)
		require.Equal(t, 3, profile.Count())
	})
	require.ErrorIs(t, inScope.Err(), mlxc.ErrFreed)
	require.Equal(t, 2, profile.Count(), "the scope freed inScope")
	a.Free()
	a.Free()
	unsampled.Free()
	require.Equal(t, 1, profile.Count())
	var text bytes.Buffer
	require.NoError(t, profile.WriteTo(&text, 1))
	require.Contains(t, text.String(), "TestProfileOfArrays", "the stack names the maker")

	require.NoError(t, b.Err())
	b = nil
	require.Eventually(t, func() bool {
		runtime.GC()
		return profile.Count() == 0
	}, 10*time.Second, time.Millisecond, "the garbage collector frees b")

	mlxc.ProfileArrays(10)
	kept := make(arrays, 100)
	for i := range kept {
		kept[i] = mlxc.Scalar(float32(i))
	}
	require.Equal(t, 10, profile.Count())
	for _, x := range kept {
		x.Free()
	}
	require.Zero(t, profile.Count())
}

func BenchmarkProfileOfArrays(b *testing.B) {
	x := mlxc.Ones(mlxc.Float32, 8)
	for name, every := range map[string]int{"off": 0, "every": 1, "one_of_100": 100} {
		b.Run(name, func(b *testing.B) {
			mlxc.ProfileArrays(every)
			defer mlxc.ProfileArrays(0)
			for b.Loop() {
				x.Add(x).Free()
			}
		})
	}
}

// With the build tag mlxcgc, every call runs the garbage collector: an array that a call does not keep alive is freed
// during the call. The test needs -long, because it compiles mlxc again.
func TestCallsKeepTheirArraysAlive(t *testing.T) {
	long.Only(t, "compiles mlxc again")
	test := exec.Command("go", "test", "-count=1", "-tags", "mlxcgc", "-run",
		"^(TestArithmetic|TestVJP|TestScope|TestKeepAfterFree|TestEvery|TestProfile|TestIsReady|TestCustom|TestCompile|TestErrors?|Example)", ".")
	test.Env = append(os.Environ(), "GOMAXPROCS=4")
	out, err := test.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "ok ")
}

// Arrays made in OutsideScopes outlive the enclosing scopes, on the calling goroutine only.
func TestOutsideScopesOutlivesScopes(t *testing.T) {
	var outside, inside *mlxc.Array
	mlxc.WithScope(func() {
		mlxc.WithScope(func() {
			mlxc.OutsideScopes(func() { outside = mlxc.Scalar[int32](7) })
			inside = mlxc.Scalar[int32](8)
		})
	})
	require.ErrorIs(t, inside.Err(), mlxc.ErrFreed)
	value, err := mlxc.Item[int32](outside)
	require.NoError(t, err)
	require.Equal(t, int32(7), value)
}

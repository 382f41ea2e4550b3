package mlxc_test

import (
	"sync/atomic"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

// Checkpoint keeps neither the intermediate arrays of its function for the backward pass nor the arrays made by rules.
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
		return most / (4 * size * layers) // number of arrays per layer
	}
	layer := func(a arrays) arrays {
		h := a[0].Sin()
		return arrays{h.Tanh().Mul(h.Sigmoid()).Mul(h.Exp()).Add(a[0])}
	}
	plain, checkpointed := peak(layer), peak(mlxc.Checkpoint(layer))
	require.GreaterOrEqual(t, plain, 5)
	require.LessOrEqual(t, checkpointed, 2)
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

// Arguments without a gradient are allowed if f has a rule for the others only.
func TestCheckpointOfIDsAndKeys(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2, 3, 4})
	for name, c := range map[string]struct {
		f     func(x, other *mlxc.Array) *mlxc.Array
		other *mlxc.Array
	}{
		"a key": {func(x, key *mlxc.Array) *mlxc.Array {
			return x.Mul(mlxc.RandomBernoulli(key, mlxc.Scalar[float32](0.5), 4).AsType(mlxc.Float32))
		}, mlxc.RandomKey(1)},
		"ids": {
			func(x, ids *mlxc.Array) *mlxc.Array { return x.Take(ids, 0).Square() },
			mlxc.FromSlice([]int32{3, 0, 3}),
		},
		"mask": {
			func(x, mask *mlxc.Array) *mlxc.Array { return mlxc.Where(mask, x, x.Square()) },
			mlxc.FromSlice([]bool{true, false, true, false}),
		},
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

// An output without a cotangent does not shift the cotangents of the others.
func TestCheckpointPairsCotangentsWithOutputs(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2})
	f := mlxc.Checkpoint(func(a arrays) arrays { return arrays{a[0].StopGradient(), a[0].Square()} })
	_, grads, err := mlxc.VJP(f, arrays{x}, arrays{
		mlxc.FromSlice([]float32{100, 100}),
		mlxc.FromSlice([]float32{1, 1}),
	})
	require.NoError(t, err)
	require.Equal(t, []float32{2, 4}, floats(t, grads[0]))
}

package sharded_test

import (
	"bytes"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/quickcompile"
	"github.com/mlxgrad/mlxgrad/internal/ranks"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
	"github.com/mlxgrad/mlxgrad/ops"
	"github.com/mlxgrad/mlxgrad/ops/sharded"
)

type arrays = []*mlxc.Array

var _ = testdevice.AllOnGPU()

func TestOnGPU(t *testing.T) { testdevice.RunOnGPU(t) }

func TestMain(m *testing.M) {
	quickcompile.Set(true)
	testdevice.Main(m)
}

const rows, width, classes = 24, 32, 50

// operands returns hidden of shape (4, 6, 32), the whole weight and targets.
func operands(d mlxc.DType) (hidden, weight, targets *mlxc.Array) {
	hidden = mlxc.RandomNormal(mlxc.RandomKey(1), mlxc.Float32, 4, rows/4, width).AsType(d)
	weight = mlxc.RandomNormal(mlxc.RandomKey(2), mlxc.Float32, classes, width).AsType(d)
	ids := make([]int32, rows)
	for i := range ids {
		ids[i] = int32(i * 7 % classes)
	}
	return hidden, weight, mlxc.FromSlice(ids, 4, rows/4)
}

func rowsOf(a *mlxc.Array, begin, end int) *mlxc.Array {
	return a.Take(mlxc.Arange(mlxc.Int32, float64(begin), float64(end), 1), 0)
}

// gradients returns the loss, and the gradients of three times the loss.
func gradients(t *testing.T, f func(hidden, weight *mlxc.Array) *mlxc.Array, hidden, weight *mlxc.Array) (v, dh, dw []float32) {
	t.Helper()
	values, grads, err := mlxc.VJP(func(a arrays) arrays { return arrays{f(a[0], a[1])} },
		arrays{hidden, weight}, arrays{mlxc.Scalar[float32](3)})
	require.NoError(t, err)
	require.NoError(t, mlxc.Eval(append(grads, values...)...))
	read := func(a *mlxc.Array) []float32 { return mlxtest.Read[float32](t, a.AsType(mlxc.Float32)) }
	return read(values[0]), read(grads[0]), read(grads[1])
}

// TestRank compares the operation with the unsharded one, in a rank of the group of the environment. Shards differ in
// size. In a process alone, the group has one process.
func TestRank(t *testing.T) {
	g, err := distributed.Init(distributed.Any, false)
	require.NoError(t, err)
	begin, end := g.Share(classes)
	float32Tolerance := 1e-5
	if mlxc.DefaultDevice() == mlxc.GPU {
		float32Tolerance = 0.01 // MLX multiplies with TF32
	}
	for _, c := range []struct {
		dtype     mlxc.DType
		tolerance float64
	}{{mlxc.Float32, float32Tolerance}, {mlxc.BFloat16, 0.02}} { // a fixed order, so that all ranks exchange the same arrays
		hidden, weight, targets := operands(c.dtype)
		want, wantHidden, wantWeight := gradients(t, func(h, w *mlxc.Array) *mlxc.Array {
			return ops.LinearCrossEntropy(h, w, targets, ops.CrossEntropyConfig{})
		}, hidden, weight)
		shard := rowsOf(weight, begin, end)
		own := func(h, w *mlxc.Array) *mlxc.Array { return sharded.LinearCrossEntropy(g, h, w, targets, begin) }
		got, gotHidden, gotWeight := gradients(t, own, hidden, shard)
		require.InDeltaSlice(t, want, got, c.tolerance)
		require.InDeltaSlice(t, wantHidden, gotHidden, c.tolerance)
		require.InDeltaSlice(t, wantWeight[begin*width:end*width], gotWeight, c.tolerance)
		require.Greater(t, slices.Max(gotWeight), float32(0.01))
		t.Logf("%v: rank %d of %d, loss %v", c.dtype, g.Rank(), g.Size(), got[0])
		// The same bits again, and in all ranks.
		again, againHidden, againWeight := gradients(t, own, hidden, shard)
		require.Equal(t, [][]float32{got, gotHidden, gotWeight}, [][]float32{again, againHidden, againWeight})
		same := mlxc.FromSlice(append(got, gotHidden...))
		require.Equal(t, mlxtest.Read[float32](t, g.AllMax(same)), mlxtest.Read[float32](t, g.AllMin(same)))
	}

	// A logit far above the others, and a target that no rank holds.
	hidden, weight, targets := operands(mlxc.Float32)
	large := sharded.LinearCrossEntropy(g, hidden.MulScalar(1e4), rowsOf(weight, begin, end), targets, begin)
	require.False(t, math.IsInf(float64(mlxtest.Read[float32](t, large)[0]), 0))
	outside := mlxc.Full(mlxc.Int32, mlxc.Scalar[int32](classes), 4, rows/4)
	loss := sharded.LinearCrossEntropy(g, hidden, rowsOf(weight, begin, end), outside, begin)
	require.True(t, math.IsNaN(float64(mlxtest.Read[float32](t, loss)[0])))
}

func TestRanks(t *testing.T) {
	for _, n := range []int{2, 4} {
		hosts, err := ranks.LocalHosts(n)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, ranks.Launch{
			Backend: distributed.Ring, Hosts: hosts, Command: []string{os.Args[0], "-test.run=^TestRank$", "-test.v"},
			Grace: 10 * time.Second, Out: &out, Err: &out,
		}.Run(nil), "%s", &out)
		require.Equal(t, n, strings.Count(out.String(), "--- PASS: TestRank"))
	}
}

func TestInvalidArguments(t *testing.T) {
	g, err := distributed.Init(distributed.Any, false)
	require.NoError(t, err)
	hidden, weight, targets := operands(mlxc.Float32)
	for want, loss := range map[string]*mlxc.Array{
		"the group is nil":             sharded.LinearCrossEntropy(nil, hidden, weight, targets, 0),
		"hidden: the array is nil":     sharded.LinearCrossEntropy(g, nil, weight, targets, 0),
		"it must be float32 or bfloat": sharded.LinearCrossEntropy(g, hidden.AsType(mlxc.Float16), weight, targets, 0),
		"they must be equal":           sharded.LinearCrossEntropy(g, hidden, weight.AsType(mlxc.BFloat16), targets, 0),
		"it must be int32":             sharded.LinearCrossEntropy(g, hidden, weight, targets.AsType(mlxc.Int64), 0),
		"rows and columns":             sharded.LinearCrossEntropy(g, mlxc.Zeros(mlxc.Float32, 0, width), weight, targets, 0),
		"it must be [classes, 32]":     sharded.LinearCrossEntropy(g, hidden, weight.Transpose(), targets, 0),
		"one element for each row":     sharded.LinearCrossEntropy(g, hidden, weight, rowsOf(targets, 0, 2), 0),
		"first is -1":                  sharded.LinearCrossEntropy(g, hidden, weight, targets, -1),
	} {
		require.ErrorContains(t, loss.Err(), want)
	}
}

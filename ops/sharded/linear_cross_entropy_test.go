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

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
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

const rows, width, classes = 96, 64, 250

// ignored is the IgnoreIndex of allOptions.
var ignored = 2

func plain(r ops.Reduction) ops.CrossEntropyConfig { return ops.CrossEntropyConfig{Reduction: r} }

func allOptions(r ops.Reduction) ops.CrossEntropyConfig {
	return ops.CrossEntropyConfig{Reduction: r, IgnoreIndex: &ignored, LabelSmoothing: 0.1, ZLoss: 0.02, SoftCap: 2}
}

// reference returns the float64 loss and its gradient.
func reference(cfg ops.CrossEntropyConfig) compare.Reference {
	exact := oracle.CrossEntropyConfig{
		Reduction: map[ops.Reduction]oracle.Reduction{
			ops.ReductionMean: oracle.Mean, ops.ReductionSum: oracle.Sum, ops.ReductionNone: oracle.None,
		}[cfg.Reduction],
		IgnoreIndex:    cfg.IgnoreIndex,
		LabelSmoothing: float64(cfg.LabelSmoothing), ZLoss: float64(cfg.ZLoss), SoftCap: float64(cfg.SoftCap),
	}
	return compare.Reference{
		Forward: func(in []oracle.Tensor) []oracle.Tensor {
			return []oracle.Tensor{oracle.LinearCrossEntropy(in[0], in[1], in[2], exact)}
		},
		Gradient: func(in, cotangents []oracle.Tensor) []oracle.Tensor {
			dh, dw := oracle.LinearCrossEntropyVJP(in[0], in[1], in[2], exact, cotangents[0])
			return []oracle.Tensor{dh, dw}
		},
	}
}

// divided returns the loss as a function of the whole weight. Its gradient of weight is whole too: the ranks exchange
// their parts.
func divided(g *distributed.Group, cfg ops.CrossEntropyConfig) mlxc.Func {
	own := mlxc.CustomVJP(
		func(in arrays) arrays {
			begin, end := g.Share(in[0].Dim(0))
			return arrays{rowsOf(in[0], begin, end)}
		},
		func(in, cotangents, _ arrays) arrays {
			begin, end := g.Share(in[0].Dim(0))
			zeros := func(n int) *mlxc.Array { return mlxc.Zeros(in[0].DType(), n, in[0].Dim(1)) }
			return arrays{g.AllSum(mlxc.Concatenate(0, zeros(begin), cotangents[0], zeros(in[0].Dim(0)-end)))}
		})
	return func(in arrays) arrays {
		first, _ := g.Share(in[1].Dim(0))
		return arrays{sharded.LinearCrossEntropy(g, in[0], own(in[1:2])[0], in[2], first, cfg)}
	}
}

// undivided returns the loss computed by one process from all logits.
func undivided(cfg ops.CrossEntropyConfig) mlxc.Func {
	return func(in arrays) arrays {
		return arrays{ops.CrossEntropy(in[0].MatMul(in[1].Transpose()), in[2], cfg)}
	}
}

// operands returns hidden, the whole weight and targets.
func operands(d mlxc.DType) arrays {
	hidden := mlxc.RandomNormal(mlxc.RandomKey(1), mlxc.Float32, rows, width)
	weight := mlxc.RandomNormal(mlxc.RandomKey(2), mlxc.Float32, classes, width).MulScalar(1 / math.Sqrt(width))
	ids := make([]int32, rows)
	for i := range ids {
		ids[i] = int32(i * 7 % classes)
	}
	return arrays{hidden.AsType(d), weight.AsType(d), mlxc.FromSlice(ids, rows)}
}

func rowsOf(a *mlxc.Array, begin, end int) *mlxc.Array {
	return a.Take(mlxc.Arange(mlxc.Int32, float64(begin), float64(end), 1), 0)
}

// group returns the group of the environment. In a process alone, it has one process.
func group(t *testing.T) *distributed.Group {
	t.Helper()
	g, err := distributed.Init(distributed.Any, false)
	require.NoError(t, err)
	return g
}

// TestRank compares the operation in a rank with the float64 reference. All ranks try the same random inputs.
func TestRank(t *testing.T) {
	g := group(t)
	for _, cfg := range []ops.CrossEntropyConfig{
		plain(ops.ReductionMean), allOptions(ops.ReductionSum), allOptions(ops.ReductionNone),
	} {
		compare.Gradients(t, divided(g, cfg), reference(cfg), compare.Case{
			Inputs: []compare.Input{
				{Name: "hidden", Dims: []string{"rows", "width"}},
				{Name: "weight", Dims: []string{"classes", "width"}},
				{Name: "targets", Dims: []string{"rows"}, Kind: compare.SignedIndex, Below: "classes"},
			},
			Outputs:  []compare.Output{{Name: "loss", DType: mlxc.Float32}},
			Sizes:    map[string][]int{"rows": {1, 5, 33}, "width": {1, 8, 33}, "classes": {5, 33, 129}},
			MLX:      undivided(cfg),
			UsesTF32: true,
		})
	}
}

// TestRankErrors logs the errors of the divided and of the undivided loss and their gradients, relative to the largest
// true element, and limits the former to twice the latter and two units in the last place, since a loss may be
// exact by chance. It requires equal bits at the second call and in all ranks.
func TestRankErrors(t *testing.T) {
	g := group(t)
	for _, d := range compare.DTypes() {
		for _, cfg := range []ops.CrossEntropyConfig{plain(ops.ReductionMean), allOptions(ops.ReductionMean)} {
			in := operands(d)
			var tensors []oracle.Tensor
			for _, a := range in {
				tensors = append(tensors, oracle.Tensor{Shape: a.Shape(), Data: mlxtest.Wide(t, a)})
			}
			three := oracle.Tensor{Data: []float64{3}} // the cotangent
			ref := reference(cfg)
			truth := append(ref.Forward(tensors), ref.Gradient(tensors, []oracle.Tensor{three})...)

			got := results(t, divided(g, cfg), in)
			errs, limits := deviations(truth, got), deviations(truth, results(t, undivided(cfg), in))
			t.Logf("rank %d of %d, %v, soft cap %v: errors of loss, dhidden, dweight %.1e; undivided %.1e",
				g.Rank(), g.Size(), d, cfg.SoftCap, errs, limits)
			for i := range errs {
				require.LessOrEqual(t, errs[i], 2*limits[i]+4*mlxtest.Roundoff(mlxc.Float32))
			}
			require.Equal(t, got, results(t, divided(g, cfg), in))
			all := mlxc.FromSlice(slices.Concat(got...))
			require.Equal(t, mlxtest.Wide(t, g.AllMax(all)), mlxtest.Wide(t, g.AllMin(all)))
		}
	}
}

// results returns the loss f(in), and the gradients of three times the loss.
func results(t *testing.T, f mlxc.Func, in arrays) (all [][]float32) {
	t.Helper()
	values, grads, err := mlxc.VJP(func(a arrays) arrays { return f(arrays{a[0], a[1], in[2]}) }, in[:2],
		arrays{mlxc.Scalar[float32](3)})
	require.NoError(t, err)
	// One evaluation, so that all ranks exchange messages in the same order.
	require.NoError(t, mlxc.Eval(append(grads, values...)...))
	for _, a := range append(values, grads...) {
		all = append(all, mlxtest.Read[float32](t, a.AsType(mlxc.Float32)))
	}
	return all
}

// deviations returns the largest error of each result, relative to the largest true element.
func deviations(truth []oracle.Tensor, got [][]float32) (all []float64) {
	for i, want := range truth {
		var deviation, size float64
		for k, v := range want.Data {
			deviation, size = max(deviation, math.Abs(v-float64(got[i][k]))), max(size, math.Abs(v))
		}
		all = append(all, deviation/size)
	}
	return all
}

// TestExtremes computes losses with a logit far above the others, and with targets that no rank holds.
func TestExtremes(t *testing.T) {
	g := group(t)
	in := operands(mlxc.Float32)
	begin, end := g.Share(classes)
	loss := func(hidden, targets *mlxc.Array) float64 {
		own := rowsOf(in[1], begin, end)
		return mlxtest.Wide(t, sharded.LinearCrossEntropy(g, hidden, own, targets, begin, ops.CrossEntropyConfig{}))[0]
	}
	require.False(t, math.IsInf(loss(in[0].MulScalar(1e4), in[2]), 0))
	require.True(t, math.IsNaN(loss(in[0], mlxc.Full(mlxc.Int32, mlxc.Scalar[int32](classes), rows))))
	huge := mlxc.Full(mlxc.Uint32, mlxc.Scalar[uint32](math.MaxUint32), rows)
	require.True(t, math.IsNaN(loss(in[0], huge)), "an unsigned target is not negative")
	require.Zero(t, loss(in[0].MulScalar(math.NaN()), mlxc.Full(mlxc.Int32, mlxc.Scalar[int32](-1), rows)))
}

// TestIgnoredRow requires finite gradients if the row of an ignored target holds NaN.
func TestIgnoredRow(t *testing.T) {
	in := operands(mlxc.Float32)
	first := mlxc.Arange(mlxc.Int32, 0, rows, 1).EqualScalar(0)
	in[0] = mlxc.Where(first.ExpandDims(-1), mlxc.Scalar(float32(math.NaN())), in[0])
	in[2] = mlxc.Where(first, mlxc.Scalar[int32](-1), in[2])
	for _, result := range results(t, divided(group(t), plain(ops.ReductionMean)), in) {
		require.False(t, slices.ContainsFunc(result, func(v float32) bool { return v != v }))
	}
}

// TestSmallGradients computes a gradient of weight in float16 from gradients of logits that float16 cannot hold.
func TestSmallGradients(t *testing.T) {
	const cotangent, size = 1e-5, 1000
	in := arrays{
		mlxc.Full(mlxc.Float16, mlxc.Scalar[float32](size), rows, width),
		mlxc.Zeros(mlxc.Float16, classes, width),
		mlxc.Zeros(mlxc.Int32, rows),
	}
	scaled := mlxtest.Scaled(divided(group(t), plain(ops.ReductionMean)), cotangent)
	dweight := results(t, scaled, in)[2]
	require.InEpsilon(t, 3*cotangent*size/classes, dweight[len(dweight)-1], 0.01)
}

// TestRanks runs the tests above in the ranks of a ring. TestRank takes long with 4 ranks.
func TestRanks(t *testing.T) {
	fast := []string{"TestRankErrors", "TestExtremes", "TestIgnoredRow", "TestSmallGradients"}
	for n, tests := range map[int][]string{2: append([]string{"TestRank"}, fast...), 4: fast} {
		hosts, err := ranks.LocalHosts(n)
		require.NoError(t, err)
		var out bytes.Buffer
		require.NoError(t, ranks.Launch{
			Backend: distributed.Ring, Hosts: hosts,
			Command: []string{os.Args[0], "-test.run=^(" + strings.Join(tests, "|") + ")$", "-test.v", "-compare.inputs=1"},
			Grace:   10 * time.Second, Out: &out, Err: &out,
		}.Run(nil), "%s", &out)
		require.Equal(t, n*len(tests), strings.Count(out.String(), "--- PASS: Test"), "%s", &out)
		t.Log(&out)
	}
}

func TestInvalidArguments(t *testing.T) {
	g := group(t)
	in := operands(mlxc.Float32)
	hidden, weight, targets := in[0], in[1], in[2]
	none := ops.CrossEntropyConfig{}
	for want, loss := range map[string]*mlxc.Array{
		"the group is nil":         sharded.LinearCrossEntropy(nil, hidden, weight, targets, 0, none),
		"hidden: the array is nil": sharded.LinearCrossEntropy(g, nil, weight, targets, 0, none),
		"it must be float32, float16 or bfloat16": sharded.LinearCrossEntropy(
			g, hidden.AsType(mlxc.Int32), weight, targets, 0, none),
		"they must be equal":         sharded.LinearCrossEntropy(g, hidden, weight.AsType(mlxc.BFloat16), targets, 0, none),
		"it must be int32 or uint32": sharded.LinearCrossEntropy(g, hidden, weight, targets.AsType(mlxc.Int64), 0, none),
		"rows and columns":           sharded.LinearCrossEntropy(g, mlxc.Zeros(mlxc.Float32, 0, width), weight, targets, 0, none),
		"it must be [classes, 64]":   sharded.LinearCrossEntropy(g, hidden, weight.Transpose(), targets, 0, none),
		"one element for each row":   sharded.LinearCrossEntropy(g, hidden, weight, rowsOf(targets, 0, 2), 0, none),
		"first is -1":                sharded.LinearCrossEntropy(g, hidden, weight, targets, -1, none),
		"it must be at least 0 and be": sharded.LinearCrossEntropy(
			g, hidden, weight, targets, 0, ops.CrossEntropyConfig{LabelSmoothing: 1}),
	} {
		require.ErrorContains(t, loss.Err(), want)
	}
}

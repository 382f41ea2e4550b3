package compare

import (
	"context"
	"errors"
	"math"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// benchOf is an operation of one small case after a change.
func benchOf(t *testing.T, change func(*BenchCase)) []BenchOp {
	t.Helper()
	op := BenchOps(mlxc.CPU)[0]
	require.Equal(t, "rmsnorm", op.Name)
	op.Cases = op.Cases[:1]
	require.Equal(t, "256x1024", op.Cases[0].Name)
	change(&op.Cases[0])
	return []BenchOp{op}
}

var float32Once = BenchOptions{DTypes: []mlxc.DType{mlxc.Float32}, Repeat: 1}

// Every case of either device names arrays that it has, or counts arithmetic, for both passes.
func TestBenchCasesSayWhatTheyMove(t *testing.T) {
	for _, d := range []mlxc.Device{mlxc.CPU, mlxc.GPU} {
		for _, op := range BenchOps(d) {
			names := map[string]bool{}
			require.NotEmpty(t, op.Cases, op.Name)
			for _, c := range op.Cases {
				require.False(t, names[c.Name], c.Name)
				names[c.Name] = true
				require.Empty(t, c.Unsafe)
				require.Empty(t, c.UnsafeOnCUDA, "%s %s", op.Name, c.Name)
				for _, pass := range []report.Pass{report.Backward, report.Step} {
					bytes := c.bytes(pass, mlxc.Float16)
					require.NotEqual(t, bytes > 0, c.FLOPs[pass] > 0, "%s %s", op.Name, c.Name)
					require.GreaterOrEqual(t, c.bytes(pass, mlxc.Float32), bytes)
					if bytes > 0 {
						require.Positive(t, c.largestMoved(pass, mlxc.Float16))
					}
				}
				require.GreaterOrEqual(t, c.FLOPs[report.Step], c.FLOPs[report.Backward])
				require.Positive(t, c.elements())
			}
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestBenchCasesSayWhatTheyMove)

func TestBenchBytes(t *testing.T) {
	of := func(op string) BenchCase {
		ops := BenchOps(mlxc.GPU)
		return ops[slices.IndexFunc(ops, func(o BenchOp) bool { return o.Name == op })].Cases[0]
	}
	const rows, width, half = 8192, 1024, 2
	// x and dy are read, dx is written, and w and dw.
	require.Equal(t, half*(3*rows*width+2*width), of("rmsnorm").bytes(report.Backward, mlxc.Float16))
	require.Equal(t, half*(4*rows*width+2*width), of("rmsnorm").bytes(report.Step, mlxc.Float16))
	// h, dh and dy are read; dx is written, which is dr too.
	require.Equal(t, half*(4*rows*width+2*width), of("add-rmsnorm").bytes(report.Backward, mlxc.Float16))
	// ids have 4 bytes; the table's gradient is all of it.
	require.Equal(t, 4*rows+half*(rows*width+32768*width), of("embedding").bytes(report.Backward, mlxc.Float16))
	require.Equal(t, 32768*width, of("embedding").largestMoved(report.Backward, mlxc.Float16))
	// The mean of losses and its cotangent are float32 in every dtype, and targets have 4 bytes.
	require.Equal(t, half*2*rows*32768+4*rows+2*4, of("cross-entropy").bytes(report.Step, mlxc.Float16))
}

var _ = testdevice.AlsoOnGPU(TestBenchBytes)

func TestAttentionFLOPs(t *testing.T) {
	forward, backward := attentionCase{batch: 4, heads: 32, queries: 2048, dim: 64}.flops()
	require.Equal(t, 4.0*4*32*2048*2048*64, forward)
	require.Equal(t, 2.5*forward, backward)
	forward, _ = attentionCase{batch: 1, heads: 1, queries: 3, keys: 5, dim: 1, valueDim: 2, causal: true}.flops()
	require.Equal(t, 2.0*(3+4+5)*(1+2), forward)
	forward, _ = attentionCase{batch: 1, heads: 1, queries: 5, keys: 3, dim: 1, causal: true}.flops()
	require.Equal(t, 4.0*(0+0+1+2+3), forward, "the first queries see nothing")
}

func TestBenchMeasures(t *testing.T) {
	for _, pass := range []report.Pass{report.Backward, report.Step} {
		var done []report.BenchRow
		r := Bench(context.Background(), benchOf(t, func(*BenchCase) {}), BenchOptions{
			DTypes: []mlxc.DType{mlxc.Float16}, Passes: []report.Pass{pass}, Repeat: 2,
			Done: func(r *report.Bench) {
				require.True(t, r.Incomplete)
				done = append(done, r.Rows[len(r.Rows)-1])
			},
		})
		require.True(t, r.Succeeded())
		require.Equal(t, r.Rows, done)
		require.Len(t, r.Rows, 1)
		row := r.Rows[0]
		require.Equal(t, pass, row.Pass)
		require.Positive(t, row.Launches)
		require.Less(t, float64(row.Difference), 1e-2)
		for _, timing := range []*report.Timing{row.Ours, row.MLX, row.Add} {
			require.Len(t, timing.Repetitions, 2)
			require.Len(t, timing.WallRepetitions, 2)
			require.Len(t, timing.BuildRepetitions, 2)
			require.Positive(t, timing.Median)
			require.Positive(t, timing.Submit)
		}
		require.InEpsilon(t, row.MLX.Median/row.Ours.Median, float64(row.Ratio), 1e-12)
	}
}

var _ = testdevice.AlsoOnGPU(TestBenchMeasures)

func TestBenchFindsWhatIsWrong(t *testing.T) {
	paper := func([]*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{mlxc.InvalidArray(errors.New("out of paper"))}
	}
	for name, test := range map[string]struct {
		change  func(*BenchCase)
		message string
	}{
		"ours fails":     {func(c *BenchCase) { c.Ours = paper }, "our gradient failed: .*out of paper"},
		"ours is MLX's":  {func(c *BenchCase) { c.Ours = c.MLX }, "nothing ran"},
		"wrong":          {func(c *BenchCase) { c.Ours = scaled(c.Ours, 1.2) }, "differ by 0.2 of their size"},
		"not a number":   {func(c *BenchCase) { c.Ours = scaled(c.Ours, math.NaN()) }, "differ by NaN"},
		"MLX's is wrong": {func(c *BenchCase) { c.MLX = scaled(c.MLX, math.Inf(1)) }, "differ by NaN"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Bench(context.Background(), benchOf(t, test.change), float32Once)
			require.False(t, r.Succeeded())
			require.Len(t, r.Rows, 1)
			require.Regexp(t, test.message, r.Rows[0].Error)
			require.Nil(t, r.Rows[0].Ours)
		})
	}
}

var _ = testdevice.AlsoOnGPU(TestBenchFindsWhatIsWrong)

// Where there is nothing of MLX to compare with, ours is timed all the same.
func TestBenchWithoutMLX(t *testing.T) {
	paper := func([]*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{mlxc.InvalidArray(errors.New("out of paper"))}
	}
	for name, test := range map[string]struct {
		change  func(*BenchCase)
		message string
	}{
		"unsafe":  {func(c *BenchCase) { c.MLX, c.Unsafe = nil, "it would read out of bounds" }, "it would read out of bounds"},
		"refuses": {func(c *BenchCase) { c.MLX = paper }, "out of paper"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Bench(context.Background(), benchOf(t, test.change), float32Once)
			require.True(t, r.Succeeded())
			row := r.Rows[0]
			require.Contains(t, row.MLXMessage, test.message)
			require.Nil(t, row.MLX)
			require.Positive(t, row.Ours.Median)
			require.True(t, math.IsNaN(float64(row.Ratio)))
			require.Positive(t, float64(row.OverLimit))
		})
	}
}

var _ = testdevice.AlsoOnGPU(TestBenchWithoutMLX)

func TestBenchSelects(t *testing.T) {
	opt := float32Once
	opt.Shape = regexp.MustCompile("^no such")
	require.Empty(t, Bench(context.Background(), benchOf(t, func(*BenchCase) {}), opt).Rows)
	halves := benchOf(t, func(c *BenchCase) { c.DTypes = []mlxc.DType{mlxc.Float16} })
	require.Empty(t, Bench(context.Background(), halves, float32Once).Rows)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := Bench(ctx, benchOf(t, func(*BenchCase) {}), float32Once)
	require.True(t, r.Incomplete)
	require.Empty(t, r.Rows)
}

var _ = testdevice.AlsoOnGPU(TestBenchSelects)

// A repetition that begins leaves a row, whose sides have equally many.
func TestBenchStopsBetweenRepetitions(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	calls := 0
	ops := benchOf(t, func(c *BenchCase) {
		ours := c.Ours
		c.Ours = func(in []*mlxc.Array) []*mlxc.Array {
			if calls++; calls == 1000 { // Some copies are made in warming up.
				cancel()
			}
			return ours(in)
		}
	})
	r := Bench(ctx, ops, BenchOptions{DTypes: []mlxc.DType{mlxc.Float32}, Repeat: 1 << 20})
	require.True(t, r.Incomplete)
	require.Len(t, r.Rows, 1)
	row := r.Rows[0]
	require.NotEmpty(t, row.Ours.Repetitions)
	require.Equal(t, len(row.Ours.Repetitions), len(row.MLX.Repetitions))
	require.Equal(t, len(row.Ours.Repetitions), len(row.Add.Repetitions))
}

var _ = testdevice.AlsoOnGPU(TestBenchStopsBetweenRepetitions)

// Sets lie in different memory, hold what was asked for, and share what is no real number.
func TestBenchSets(t *testing.T) {
	ops := BenchOps(mlxc.CPU)
	c := ops[slices.IndexFunc(ops, func(o BenchOp) bool { return o.Name == "cross-entropy" })].Cases[0]
	sets, err := benchSets("cross-entropy", c, mlxc.Float32)
	require.NoError(t, err)
	require.Len(t, sets, mostSets)
	first, err := mlxc.ToSlice[float32](sets[0].inputs[0].array)
	require.NoError(t, err)
	second, err := mlxc.ToSlice[float32](sets[1].inputs[0].array)
	require.NoError(t, err)
	mean, square := 0.0, 0.0
	for i, v := range first {
		require.Equal(t, -v, second[i])
		mean += float64(v) / float64(len(first))
		square += float64(v) * float64(v) / float64(len(first))
	}
	require.InDelta(t, 0, mean, 0.01)
	require.InDelta(t, 1, square, 0.02)
	require.Same(t, sets[0].inputs[1].array, sets[1].inputs[1].array)

	linear := ops[slices.IndexFunc(ops, func(o BenchOp) bool { return o.Name == "linear-cross-entropy" })].Cases[0]
	sets, err = benchSets("linear-cross-entropy", linear, mlxc.Float32)
	require.NoError(t, err)
	w, err := mlxc.ToSlice[float32](sets[0].inputs[1].array)
	require.NoError(t, err)
	square = 0
	for _, v := range w {
		square += float64(v) * float64(v) / float64(len(w))
	}
	require.InEpsilon(t, 1.0/256, square, 0.02, "so that logits are normal")
}

var _ = testdevice.AlsoOnGPU(TestBenchSets)

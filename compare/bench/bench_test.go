package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// altered returns RMSNorm of 256 rows of 1024 after a change, as an operation.
func altered(change func(*Case)) []Op {
	of := func(norm func(x, w *mlxc.Array, eps float32) *mlxc.Array) mlxc.Func {
		return func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{norm(in[0], in[1], 1e-5)} }
	}
	c := Case{
		Case: compare.Case{
			Name:    "256x1024",
			Inputs:  []compare.Input{{Name: "x", Shape: []int{256, 1024}}, {Name: "w", Shape: []int{1024}}},
			Outputs: []compare.Output{{Name: "y", Shape: []int{256, 1024}}},
			Ours:    of(ops.RMSNorm),
			MLX:     of(mlxc.RMSNorm),
		},
		Moved: map[report.Pass][]string{report.Backward: {"x", "w", "dy", "dx", "dw"}, report.Step: {"x", "w", "dy", "y", "dx", "dw"}},
	}
	change(&c)
	return []Op{{Name: "rmsnorm", Pass: report.Backward, Cases: []Case{c}}}
}

var float32Once = Options{DTypes: []mlxc.DType{mlxc.Float32}, Repeat: 1}

// timings returns the timings of the first row. On a CPU the limits of the report replace the timing of MLX's add.
func timings(t *testing.T, r *report.Bench) []*report.Timing {
	t.Helper()
	row := r.Rows[0]
	if mlxc.CurrentDevice() != mlxc.CPU {
		require.Nil(t, r.Limits)
		return []*report.Timing{row.Ours, row.MLX, row.Add}
	}
	require.Nil(t, row.Add)
	rate, _ := row.Rate(row.Ours)
	require.InEpsilon(t, r.Limits.Bandwidth/rate, float64(row.OverLimit), 1e-12)
	return []*report.Timing{row.Ours, row.MLX}
}

func TestRunMeasures(t *testing.T) {
	for _, pass := range []report.Pass{report.Backward, report.Step} {
		var done []report.BenchRow
		r := Run(context.Background(), altered(func(*Case) {}), Options{
			DTypes: []mlxc.DType{mlxc.Float16}, Passes: []report.Pass{pass}, Repeat: 2,
			Done: func(r *report.Bench, all int) {
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
		for _, timing := range timings(t, r) {
			require.Len(t, timing.Repetitions, 2)
			require.Len(t, timing.WallRepetitions, 2)
			require.Len(t, timing.BuildRepetitions, 2)
			require.Positive(t, timing.Median)
			require.Positive(t, timing.Submit)
		}
		require.InEpsilon(t, row.MLX.Median/row.Ours.Median, float64(row.Ratio), 1e-12)
	}
}

var _ = testdevice.AlsoOnGPU(TestRunMeasures)

func TestRunFindsFaults(t *testing.T) {
	paper := func([]*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{mlxc.InvalidArray(errors.New("out of paper"))}
	}
	for name, test := range map[string]struct {
		change  func(*Case)
		message string
	}{
		"ours fails":     {func(c *Case) { c.Ours = paper }, "our gradient failed: .*out of paper"},
		"ours is MLX's":  {func(c *Case) { c.Ours = c.MLX }, "nothing ran"},
		"wrong":          {func(c *Case) { c.Ours = mlxtest.Scaled(c.Ours, 1.2) }, "difference of our gradient and MLX's is 0.2;"},
		"not a number":   {func(c *Case) { c.Ours = mlxtest.Scaled(c.Ours, math.NaN()) }, "MLX's is NaN;"},
		"MLX's is wrong": {func(c *Case) { c.MLX = mlxtest.Scaled(c.MLX, math.Inf(1)) }, "MLX's is NaN;"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Run(context.Background(), altered(test.change), float32Once)
			require.False(t, r.Succeeded())
			require.Len(t, r.Rows, 1)
			require.Regexp(t, test.message, r.Rows[0].Error)
			require.Nil(t, r.Rows[0].Ours)
		})
	}
}

var _ = testdevice.AlsoOnGPU(TestRunFindsFaults)

// Without a function of MLX, ours is timed alone.
func TestRunWithoutMLX(t *testing.T) {
	paper := func([]*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{mlxc.InvalidArray(errors.New("out of paper"))}
	}
	for name, test := range map[string]struct {
		change  func(*Case)
		message string
	}{
		"unsafe":  {func(c *Case) { c.MLX, c.Unsafe = nil, "it would read out of bounds" }, "it would read out of bounds"},
		"refuses": {func(c *Case) { c.MLX = paper }, "out of paper"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Run(context.Background(), altered(test.change), float32Once)
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

var _ = testdevice.AlsoOnGPU(TestRunWithoutMLX)

// A row whose time arithmetic limits is compared with the CPU's multiply-adds.
func TestRunComparesFLOPs(t *testing.T) {
	r := Run(context.Background(), altered(func(c *Case) { c.FLOPs = map[report.Pass]float64{report.Backward: 1e6} }), float32Once)
	require.True(t, r.Succeeded())
	rate, unit := r.Rows[0].Rate(r.Rows[0].Ours)
	require.Equal(t, "TFLOP/s", unit)
	require.InEpsilon(t, r.Limits.Arithmetic/rate, float64(r.Rows[0].OverLimit), 1e-12)
}

func TestRunSelects(t *testing.T) {
	opt := float32Once
	opt.Shape = regexp.MustCompile("^no such")
	require.Empty(t, Run(context.Background(), altered(func(*Case) {}), opt).Rows)
	halves := altered(func(c *Case) { c.DTypes = []mlxc.DType{mlxc.Float16} })
	require.Empty(t, Run(context.Background(), halves, float32Once).Rows)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := Run(ctx, altered(func(*Case) {}), float32Once)
	require.True(t, r.Incomplete)
	require.Empty(t, r.Rows)
	require.Nil(t, r.Limits)
}

var _ = testdevice.AlsoOnGPU(TestRunSelects)

// After an interruption all measurements of a row have equally many repetitions.
func TestRunStopsBetweenRepetitions(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	calls := 0
	ops := altered(func(c *Case) {
		ours := c.Ours
		c.Ours = func(in []*mlxc.Array) []*mlxc.Array {
			if calls++; calls == 300 { // the warm-up calls it too
				cancel()
			}
			return ours(in)
		}
	})
	r := Run(ctx, ops, Options{DTypes: []mlxc.DType{mlxc.Float32}, Repeat: 1 << 20})
	require.True(t, r.Incomplete)
	require.Len(t, r.Rows, 1)
	require.NotEmpty(t, r.Rows[0].Ours.Repetitions)
	for _, timing := range timings(t, r) {
		require.Equal(t, len(r.Rows[0].Ours.Repetitions), len(timing.Repetitions))
	}
}

var _ = testdevice.AlsoOnGPU(TestRunStopsBetweenRepetitions)

// The sets have the requested distribution in different memory and share arrays of integers.
func TestSets(t *testing.T) {
	index := func(rng *rand.Rand, shape []int) []float64 { return make([]float64, oracle.Size(shape)) }
	c := Case{Case: compare.Case{
		Name: "sets",
		Inputs: []compare.Input{
			{Name: "x", Shape: []int{256, 1024}},
			{Name: "w", Shape: []int{1024, 256}},
			{Name: "targets", Shape: []int{256}, Kind: compare.Index, Values: index},
		},
	}, Deviations: map[string]float64{"w": 1.0 / 16}}
	sets, err := makeSets("op", c, mlxc.Float32)
	require.NoError(t, err)
	require.Len(t, sets, maxSets)
	square := func(values []float32) (mean float64) {
		for _, v := range values {
			mean += float64(v) * float64(v) / float64(len(values))
		}
		return mean
	}
	first, err := mlxc.ToSlice[float32](sets[0].inputs[0])
	require.NoError(t, err)
	second, err := mlxc.ToSlice[float32](sets[1].inputs[0])
	require.NoError(t, err)
	for i, v := range first {
		require.Equal(t, -v, second[i])
	}
	require.InDelta(t, 1, square(first), 0.02)
	w, err := mlxc.ToSlice[float32](sets[0].inputs[1])
	require.NoError(t, err)
	require.InEpsilon(t, 1.0/256, square(w), 0.02)
	require.Same(t, sets[0].inputs[2], sets[1].inputs[2])
}

var _ = testdevice.AlsoOnGPU(TestSets)

// The script for PyTorch makes as many sets on a CPU as manySets.
func TestSetsOfPyTorchScript(t *testing.T) {
	script, err := os.ReadFile("../scripts/bench_torch.py")
	require.NoError(t, err)
	require.Contains(t, string(script), fmt.Sprintf("\nCPU_SETS, CPU_BYTES_OF_SETS = %d, %d << 20", maxSets, bytesOfSets>>20))
}

// The cotangent of a loss is 1, or the loss scale for operands of 16 bits.
func TestLossScale(t *testing.T) {
	c := Case{Case: compare.Case{
		Inputs:  []compare.Input{{Name: "x", Shape: []int{2}}},
		Outputs: []compare.Output{{Name: "loss", DType: mlxc.Float32}},
	}}
	for _, scale := range []float64{0, 1 << 15} {
		c.LossScale = scale
		for _, dtype := range []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16} {
			sets, err := makeSets("op", c, dtype)
			require.NoError(t, err)
			got, err := mlxc.Item[float32](sets[0].cotangents[0])
			require.NoError(t, err)
			if dtype == mlxc.Float32 || scale == 0 {
				require.EqualValues(t, 1, got)
			} else {
				require.EqualValues(t, scale, got)
			}
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestLossScale)

package bench

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// The bounds are wide, because other work may run on the machine. They find wrong units.
func TestLimits(t *testing.T) {
	start := time.Now()
	limits, err := measureLimits()
	require.NoError(t, err)
	t.Logf("%.3g GB/s, %.3g TFLOP/s in %v", limits.Bandwidth, limits.Arithmetic, time.Since(start))
	threads := float64(runtime.GOMAXPROCS(0))
	require.Greater(t, limits.Bandwidth, 0.05)
	require.Less(t, limits.Bandwidth, 100*threads)
	require.Greater(t, limits.Arithmetic, 1e-5)
	require.Less(t, limits.Arithmetic, 0.5*threads)
}

// The kernels do the work that the rates are computed from. The sums are exact in float32.
func TestProbesDoTheirWork(t *testing.T) {
	valuesOf := func(p probe) []float32 {
		launch, err := p.prepare()
		require.NoError(t, err)
		values, err := mlxc.ToSlice[float32](launch(0))
		require.NoError(t, err)
		return values
	}
	mlxc.WithScope(func() {
		p := addProbe()
		sums := valuesOf(p)
		require.Equal(t, p.work, 3*4*len(sums))
		for _, v := range sums {
			if v != 2 {
				require.FailNow(t, "1 + 1 must be 2", "%v", v)
			}
		}

		p = multiplyAddProbe()
		threads := valuesOf(p)
		require.GreaterOrEqual(t, len(threads), 16*runtime.GOMAXPROCS(0), "work for each thread of the executor")
		products := float32(p.work/len(threads)) / 2
		initial := threads[0] - products // the sum of 1 to 12 in each lane
		require.Contains(t, []float32{4 * 78, 8 * 78, 16 * 78}, initial)
		for _, v := range threads {
			require.Equal(t, products+initial, v)
		}
	})
}

// A row without limits fails, after the errors of its own.
func TestLimitError(t *testing.T) {
	op := altered(func(*Case) {})[0]
	p := planned{op.Name, op.Cases[0], mlxc.Float32, report.Backward}
	row, measured := runCase(context.Background(), p, 1, nil, errors.New("out of paper"))
	require.True(t, measured)
	require.Equal(t, "measuring the limits failed: out of paper", row.Error)
}

package ops

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// After the first hundred of 10,000 gradient steps, neither MLX's active memory nor the resident memory of the process
// grows.
func TestMemoryStaysFlatOverGradientSteps(t *testing.T) {
	step := mlxc.ValueAndGrad(func(a arrays) arrays { return arrays{RMSNorm(a[0], a[1], 1e-5).Square().Sum()} }, 0, 1)
	x, w := normal(1, mlxc.Float32, 16, 256), mlxc.Ones(mlxc.Float32, 256)
	resident := func() int {
		text, err := os.ReadFile("/proc/self/statm")
		if err != nil {
			return 0 // no such file on this system
		}
		pages, err := strconv.Atoi(strings.Fields(string(text))[1])
		require.NoError(t, err)
		return pages * os.Getpagesize()
	}
	var active, rss int
	for i := range 10_000 {
		if i == 100 {
			runtime.GC()
			active, rss = mlxc.ActiveMemory(), resident()
		}
		mlxc.WithScope(func() {
			_, grads, err := step(arrays{x, w})
			require.NoError(t, err)
			next := w.Sub(grads[1].MulScalar(1e-6)).Keep()
			require.NoError(t, mlxc.Eval(next, grads[0]))
			w.Free()
			w = next
		})
	}
	runtime.GC()
	grownActive, grownRSS := mlxc.ActiveMemory()-active, resident()-rss
	t.Logf("after 10,000 steps: active memory %+d bytes, resident %+d bytes", grownActive, grownRSS)
	require.Less(t, grownActive, 1<<20)
	require.Less(t, grownRSS, 16<<20)
}

var _ = testdevice.AlsoOnGPU(TestMemoryStaysFlatOverGradientSteps)

// At 4096 steps a gradient of the recurrences takes at most a quarter of the memory of a composition, and twice as many
// steps take at most 2.2 times the memory.
func TestMemoryOfRecurrences(t *testing.T) {
	long.Only(t, "the gradient of a composition of 4096 steps")
	const width = 32
	peak := func(f mlxc.Func, args arrays) (bytes int) {
		mlxc.WithScope(func() {
			require.NoError(t, mlxc.Eval(args...))
			before := mlxc.ActiveMemory()
			mlxc.ResetPeakMemory()
			_, grads, err := mlxc.ValueAndGrad(func(a arrays) arrays { return arrays{f(a)[0].Sum()} }, 0, 1, 2, 3, 4)(args)
			require.NoError(t, err)
			require.NoError(t, mlxc.Eval(grads...))
			bytes = mlxc.PeakMemory() - before
		})
		return bytes
	}
	delta := func(steps int) arrays {
		rows := normal(5, mlxc.Float32, 1, 1, steps)
		k := normal(2, mlxc.Float32, 1, 1, steps, width).MulScalar(0.2)
		return arrays{k, k, normal(3, mlxc.Float32, 1, 1, steps, width), rows.Square().Neg(), rows.Sigmoid()}
	}
	scan := func(steps int) arrays {
		in := ssmLaunch{shape: [6]int{1, steps, 1, 1, width, width}}.inputs(mlxc.Float32)
		return arrays{in.x, in.dt, in.a, in.b, in.c}
	}
	for _, c := range []struct {
		name           string
		ours, composed mlxc.Func
		args           func(steps int) arrays
	}{
		{
			"GatedDeltaRule", gatedDeltaCase{}.function(GatedDeltaRule), gatedDeltaCase{}.function(gatedDeltaMLX), delta,
		},
		{
			"SSMScan", func(a arrays) arrays {
				y, state := SSMScan(a[0], a[1], a[2], a[3], a[4], SSMScanConfig{})
				return arrays{y, state}
			}, func(a arrays) arrays {
				return ssmInputs{x: a[0], dt: a[1], a: a[2], b: a[3], c: a[4]}.composed()
			}, scan,
		},
	} {
		ours, twice, composed := peak(c.ours, c.args(4096)), peak(c.ours, c.args(8192)), peak(c.composed, c.args(4096))
		t.Logf("%s: %d KiB at 4096 steps, %d KiB at 8192, composed %d KiB at 4096", c.name, ours>>10, twice>>10, composed>>10)
		require.Less(t, 4*ours, composed)
		require.Less(t, float64(twice), 2.2*float64(ours))
	}
}

package ops

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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

package suite

import (
	"slices"
	"testing"

	"github.com/mlxgrad/mlxgrad/compare/bench"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"

	"github.com/stretchr/testify/require"
)

func TestAttentionFLOPs(t *testing.T) {
	forward, backward := attentionCase{batch: 4, heads: 32, queries: 2048, dim: 64}.flops()
	require.Equal(t, 4.0*4*32*2048*2048*64, forward)
	require.Equal(t, 2.5*forward, backward)
	forward, _ = attentionCase{batch: 1, heads: 1, queries: 3, keys: 5, dim: 1, valueDim: 2, causal: true}.flops()
	require.Equal(t, 2.0*(3+4+5)*(1+2), forward)
	forward, _ = attentionCase{batch: 1, heads: 1, queries: 5, keys: 3, dim: 1, causal: true}.flops()
	require.Equal(t, 4.0*(0+0+1+2+3), forward, "the first queries see nothing")
}

// In every case, on every device and for both passes, Moved names arrays of the case or FLOPs is set.
func TestBenchCasesNameTheirArrays(t *testing.T) {
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
					bytes := c.Bytes(pass, mlxc.Float16)
					require.NotEqual(t, bytes > 0, c.FLOPs[pass] > 0, "%s %s", op.Name, c.Name)
					require.GreaterOrEqual(t, c.Bytes(pass, mlxc.Float32), bytes)
					if bytes > 0 {
						require.Positive(t, c.LargestMoved(pass, mlxc.Float16))
					}
				}
				require.GreaterOrEqual(t, c.FLOPs[report.Step], c.FLOPs[report.Backward])
				require.Positive(t, c.Elements())
			}
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestBenchCasesNameTheirArrays)

func TestBenchBytes(t *testing.T) {
	of := func(op string) bench.Case {
		ops := BenchOps(mlxc.GPU)
		return ops[slices.IndexFunc(ops, func(o bench.Op) bool { return o.Name == op })].Cases[0]
	}
	const rows, width, half = 8192, 1024, 2
	// x and dy are read, dx is written, and w and dw.
	require.Equal(t, half*(3*rows*width+2*width), of("rmsnorm").Bytes(report.Backward, mlxc.Float16))
	require.Equal(t, half*(4*rows*width+2*width), of("rmsnorm").Bytes(report.Step, mlxc.Float16))
	// h, dh and dy are read; dx is written, and dr is the same array
	require.Equal(t, half*(4*rows*width+2*width), of("add-rmsnorm").Bytes(report.Backward, mlxc.Float16))
	// ids have 4 bytes; the table's gradient is all of it.
	require.Equal(t, 4*rows+half*(rows*width+32768*width), of("embedding").Bytes(report.Backward, mlxc.Float16))
	require.Equal(t, 32768*width, of("embedding").LargestMoved(report.Backward, mlxc.Float16))
	// The mean of losses and its cotangent are float32 in every dtype, and targets have 4 bytes.
	require.Equal(t, half*2*rows*32768+4*rows+2*4, of("cross-entropy").Bytes(report.Step, mlxc.Float16))
}

var _ = testdevice.AlsoOnGPU(TestBenchBytes)

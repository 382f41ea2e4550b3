package ops

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// An attentionStep is a forward and backward pass of one causal head, by this project or by MLX's fused function.
type attentionStep struct {
	f    mlxc.Func
	args arrays
	dout *mlxc.Array
}

func newAttentionSteps(t testing.TB, dtype mlxc.DType, length, dim int) (ours, theirs attentionStep) {
	random := func(seed uint64) *mlxc.Array { return normal(seed, dtype, 1, 1, length, dim) }
	args, dout := arrays{random(1), random(2), random(3)}, random(4)
	require.NoError(t, mlxc.Eval(append(args, dout)...))
	ours = attentionStep{args: args, dout: dout, f: func(a arrays) arrays {
		return arrays{Attention(a[0], a[1], a[2], AttentionConfig{Causal: true})}
	}}
	theirs = attentionStep{args: args, dout: dout, f: func(a arrays) arrays {
		return arrays{mlxc.ScaledDotProductAttention(a[0], a[1], a[2], mlxc.AttentionConfig{Causal: true})}
	}}
	return ours, theirs
}

// run computes the output and the three gradients. It returns the time and the peak of the bytes allocated in addition
// to the arguments and the results.
func (s attentionStep) run(t testing.TB) (took time.Duration, bytes int) {
	before := mlxc.ActiveMemory()
	mlxc.ResetPeakMemory()
	start := time.Now()
	mlxc.WithScope(func() {
		outputs, grads, err := mlxc.VJP(s.f, s.args, arrays{s.dout})
		require.NoError(t, err)
		results := slices.Concat(outputs, grads)
		require.NoError(t, mlxc.Eval(results...))
		took = time.Since(start)
		bytes = mlxc.PeakMemory() - before
		for _, r := range results {
			bytes -= r.NBytes()
		}
	})
	return took, bytes
}

// BenchmarkCausalAttention measures forward and backward passes of one causal head. Runs of this project and of MLX
// alternate, so that other load on the machine affects both. It reports the medians in milliseconds and MLX's median
// divided by ours.
func BenchmarkCausalAttention(b *testing.B) {
	for _, dtype := range gradientDTypes {
		for _, length := range []int{512, 2048} {
			b.Run(fmt.Sprintf("%v/%dx64", dtype, length), func(b *testing.B) {
				ours, theirs := newAttentionSteps(b, dtype, length, 64)
				ours.run(b) // compiles the kernels
				var a, c []time.Duration
				for b.Loop() {
					one, _ := ours.run(b)
					other, _ := theirs.run(b)
					a, c = append(a, one), append(c, other)
				}
				milliseconds := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
				b.ReportMetric(0, "ns/op") // hide the time of both together
				b.ReportMetric(milliseconds(median(a)), "ours-ms")
				b.ReportMetric(milliseconds(median(c)), "mlx-ms")
				b.ReportMetric(float64(median(c))/float64(median(a)), "mlx/ours")
			})
		}
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkCausalAttentionMemory measures the peak memory of a forward and backward pass without arguments and results.
func BenchmarkCausalAttentionMemory(b *testing.B) {
	for _, length := range []int{512, 1024, 2048, 4096} {
		b.Run(fmt.Sprintf("float32/%dx64", length), func(b *testing.B) {
			ours, theirs := newAttentionSteps(b, mlxc.Float32, length, 64)
			var a, c int
			for b.Loop() {
				_, a = ours.run(b)
				_, c = theirs.run(b)
			}
			const mebibyte = 1 << 20
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(a)/mebibyte, "ours-MiB")
			b.ReportMetric(float64(c)/mebibyte, "mlx-MiB")
		})
	}
}

// Memory is linear in the length.
func TestAttentionMemoryIsLinear(t *testing.T) {
	last := math.MaxInt / 4
	for _, length := range []int{512, 1024, 2048} {
		var bytes int
		mlxc.WithScope(func() { // otherwise the garbage collector might free the arguments during a later run
			ours, _ := newAttentionSteps(t, mlxc.Float32, length, 64)
			_, bytes = ours.run(t)
		})
		t.Logf("%d rows: %d bytes, %.1f a row", length, bytes, float64(bytes)/float64(length))
		require.Positive(t, bytes)
		require.LessOrEqual(t, float64(bytes), 2.2*float64(last))
		last = bytes
	}
}

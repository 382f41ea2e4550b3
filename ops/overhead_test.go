package ops

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// What it costs to build a gradient's graph, without computing it.
func BenchmarkRMSNormBuild(b *testing.B) {
	x, w := normal(1, mlxc.Float32, 8, 64), normal(2, mlxc.Float32, 64)
	for name, f := range map[string]func(x, w *mlxc.Array, eps float32) *mlxc.Array{"ours": RMSNorm, "mlx": mlxc.RMSNorm} {
		step := mlxc.ValueAndGrad(func(a arrays) arrays { return arrays{f(a[0], a[1], 1e-5).Sum()} }, 0, 1)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mlxc.WithScope(func() {
					if _, _, err := step(arrays{x, w}); err != nil {
						b.Fatal(err)
					}
				})
			}
		})
	}
}

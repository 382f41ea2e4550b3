package ops

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// What it costs to build a gradient's graph, without computing it: the VJP of each operation
// on a small case.
func BenchmarkBuild(b *testing.B) {
	x, w := normal(1, mlxc.Float32, 8, 64), normal(2, mlxc.Float32, 64)
	bias, table := normal(3, mlxc.Float32, 64), normal(4, mlxc.Float32, 32, 64)
	ids := mlxc.FromSlice([]int32{1, 2, 3, 4, 5, 6, 7, 8})
	heads := normal(5, mlxc.Float32, 1, 2, 16, 32)
	one := mlxc.Scalar[float32](1)
	for _, c := range []struct {
		name       string
		f          mlxc.Func
		in         arrays
		cotangents arrays
	}{
		{"RMSNorm", func(a arrays) arrays { return arrays{RMSNorm(a[0], a[1], 1e-5)} }, arrays{x, w}, arrays{x}},
		{"RMSNorm/mlx", func(a arrays) arrays { return arrays{mlxc.RMSNorm(a[0], a[1], 1e-5)} }, arrays{x, w}, arrays{x}},
		{"RMSNormResidual", func(a arrays) arrays { return arrays{RMSNormResidual(a[0], a[1], a[2], 1e-5)} }, arrays{x, x, w}, arrays{x}},
		{"AddRMSNorm", func(a arrays) arrays { h, y := AddRMSNorm(a[0], a[1], a[2], 1e-5); return arrays{h, y} }, arrays{x, x, w}, arrays{x, x}},
		{"LayerNorm", func(a arrays) arrays { return arrays{LayerNorm(a[0], a[1], a[2], 1e-5)} }, arrays{x, w, bias}, arrays{x}},
		{"LayerNorm/mlx", func(a arrays) arrays { return arrays{mlxc.LayerNorm(a[0], a[1], a[2], 1e-5)} }, arrays{x, w, bias}, arrays{x}},
		{"Softmax", func(a arrays) arrays { return arrays{Softmax(a[0])} }, arrays{x}, arrays{x}},
		{"Softmax/mlx", func(a arrays) arrays { return arrays{a[0].Softmax(-1)} }, arrays{x}, arrays{x}},
		{"Transpose2D", func(a arrays) arrays { return arrays{Transpose2D(a[0])} }, arrays{table}, arrays{table.Transpose()}},
		{"Embedding", func(a arrays) arrays { return arrays{Embedding(a[0], ids)} }, arrays{table}, arrays{x}},
		{"CrossEntropy", func(a arrays) arrays { return arrays{CrossEntropy(a[0], ids, CrossEntropyConfig{})} }, arrays{x}, arrays{one}},
		{"LinearCrossEntropy", func(a arrays) arrays { return arrays{LinearCrossEntropy(a[0], a[1], ids, CrossEntropyConfig{})} }, arrays{x, table}, arrays{one}},
		{"Attention", func(a arrays) arrays {
			return arrays{Attention(a[0], a[1], a[2], AttentionConfig{Scale: 0.1, Causal: true})}
		}, arrays{heads, heads, heads}, arrays{heads}},
	} {
		b.Run(c.name, func(b *testing.B) {
			build := func() {
				if _, _, err := mlxc.VJP(c.f, c.in, c.cotangents); err != nil {
					b.Fatal(err)
				}
			}
			mlxc.WithScope(build) // compiles the kernels, where the host does
			b.ReportAllocs()
			for b.Loop() {
				mlxc.WithScope(build)
			}
		})
	}
}

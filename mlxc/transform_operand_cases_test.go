package mlxc_test

import (
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// operandCase is an operation with several float32 operands.
type operandCase struct {
	operands arrays
	f        func(a arrays) *mlxc.Array
}

func operandCases() map[string]operandCase {
	ids, i2 := mlxc.FromSlice([]int32{2, 0, 2}), mlxc.FromSlice([]int32{1, 0})
	mm := mlxc.MatMulIDs{Left: mlxc.FromSlice([]uint32{0, 1, 1}), Right: mlxc.FromSlice([]uint32{1, 0, 1})}
	positive := func(seed uint64, shape ...int) *mlxc.Array { return normal(seed, shape...).Abs().AddScalar(0.5) }
	x, y, s := normal(1, 3, 4), normal(2, 3, 4), mlxc.Scalar[float32](0.7)
	p, q := positive(3, 3, 4), positive(4, 4)
	two := func(f func(a, b *mlxc.Array) *mlxc.Array) func(a arrays) *mlxc.Array {
		return func(a arrays) *mlxc.Array { return f(a[0], a[1]) }
	}
	attention := mlxc.AttentionConfig{}
	// Integer operands; under Vmap, the second element of the batch has other values.
	floating := mlxc.FromSlice([]float32{1.9, 0.95})
	integers := func(a *mlxc.Array) *mlxc.Array { return a.AsType(mlxc.Int32) }
	return map[string]operandCase{
		"add":           {arrays{x, normal(5, 4)}, two((*mlxc.Array).Add)},
		"mul":           {arrays{x, y}, two((*mlxc.Array).Mul)},
		"div":           {arrays{x, q}, two((*mlxc.Array).Div)},
		"pow":           {arrays{p, normal(5, 4)}, two((*mlxc.Array).Pow)},
		"arctan2":       {arrays{x, q}, two((*mlxc.Array).Arctan2)},
		"logaddexp":     {arrays{x, y}, two((*mlxc.Array).LogAddExp)},
		"maximum":       {arrays{x, y}, two((*mlxc.Array).Maximum)},
		"minimum":       {arrays{x, y}, two((*mlxc.Array).Minimum)},
		"remainder":     {arrays{p.MulScalar(3), q}, two((*mlxc.Array).Remainder)},
		"floordivide":   {arrays{p.MulScalar(3), q}, two((*mlxc.Array).FloorDivide)},
		"clip":          {arrays{x, s.Neg(), s}, func(a arrays) *mlxc.Array { return a[0].ClipTo(a[1], a[2]) }},
		"where":         {arrays{x, y}, func(a arrays) *mlxc.Array { return mlxc.Where(a[0].Greater(a[1]), a[0], a[1]) }},
		"matmul":        {arrays{x, normal(6, 4, 2)}, two((*mlxc.Array).MatMul)},
		"matmul batch":  {arrays{normal(6, 2, 1, 3, 4), normal(7, 3, 4, 2)}, two((*mlxc.Array).MatMul)},
		"matmul vector": {arrays{x, normal(6, 4)}, two((*mlxc.Array).MatMul)},
		"addmm": {
			arrays{normal(5, 2), x, normal(6, 4, 2)},
			func(a arrays) *mlxc.Array { return a[0].AddMM(a[1], a[2], 2, -3) },
		},
		"inner":     {arrays{x, y}, two((*mlxc.Array).Inner)},
		"outer":     {arrays{x, normal(6, 2)}, two((*mlxc.Array).Outer)},
		"kron":      {arrays{x, normal(6, 2, 2)}, two((*mlxc.Array).Kron)},
		"vecdot":    {arrays{x, y}, func(a arrays) *mlxc.Array { return a[0].VecDot(a[1], 1) }},
		"tensordot": {arrays{x, y}, func(a arrays) *mlxc.Array { return a[0].TensorDot(a[1], []int{0}, []int{0}) }},
		"einsum": {
			arrays{x, y, normal(6, 4, 2)},
			func(a arrays) *mlxc.Array { return mlxc.Einsum("ij,ij,jk->ik", a...) },
		},
		"cross": {arrays{normal(6, 2, 3), normal(7, 2, 3)}, func(a arrays) *mlxc.Array { return a[0].Cross(a[1], -1) }},
		"solve": {arrays{mlxtest.Dominant(30, 4, 4), normal(7, 4, 2)}, two((*mlxc.Array).Solve)},
		"solve triangular": {
			arrays{mlxtest.Dominant(30, 4, 4).Tril(0), normal(7, 4, 2)},
			func(a arrays) *mlxc.Array { return a[0].SolveTriangular(a[1], false) },
		},
		"gather_mm": {
			arrays{normal(16, 2, 3, 4), normal(17, 2, 4, 5)},
			func(a arrays) *mlxc.Array { return a[0].GatherMM(a[1], mm) },
		},
		"segmented_mm": {arrays{x, normal(17, 4, 2)}, func(a arrays) *mlxc.Array {
			return a[0].SegmentedMM(a[1], mlxc.FromSlice([]uint32{0, 2, 1, 4}, 2, 2))
		}},
		"block_masked_mm": {arrays{
			normal(18, 40, 33), normal(19, 33, 35), positive(20, 2, 2), positive(21, 2, 2),
			positive(22, 2, 2),
		}, func(a arrays) *mlxc.Array {
			return a[0].BlockMaskedMM(a[1], mlxc.BlockMasks{Size: 32, Left: a[2], Right: a[3], Out: a[4]})
		}},
		"conv1d": {arrays{normal(20, 2, 9, 4), normal(21, 6, 3, 2)}, func(a arrays) *mlxc.Array {
			return mlxc.Conv1D(a[0], a[1], mlxc.ConvConfig{Stride: []int{2}, Padding: []int{1}, Groups: 2})
		}},
		"conv2d": {arrays{normal(20, 1, 5, 6, 2), normal(21, 3, 2, 3, 2)}, func(a arrays) *mlxc.Array {
			return mlxc.Conv2D(a[0], a[1], mlxc.ConvConfig{Stride: []int{2, 1}, Dilation: []int{2, 1}})
		}},
		"conv_general": {arrays{normal(20, 1, 5, 6, 2), normal(21, 3, 2, 3, 2)}, func(a arrays) *mlxc.Array {
			return mlxc.ConvGeneral(a[0], a[1], mlxc.ConvGeneralConfig{
				Stride: []int{2}, PaddingLow: []int{1, 0},
				PaddingHigh: []int{0, 2}, InputDilation: []int{2}, Flip: true,
			})
		}},
		"conv3d": {arrays{normal(20, 1, 3, 4, 3, 2), normal(21, 2, 2, 2, 2, 2)}, func(a arrays) *mlxc.Array {
			return mlxc.Conv3D(a[0], a[1], mlxc.ConvConfig{Padding: []int{1}})
		}},
		"conv_transpose2d": {arrays{normal(20, 1, 3, 4, 2), normal(21, 3, 2, 3, 2)}, func(a arrays) *mlxc.Array {
			return mlxc.ConvTranspose2D(a[0], a[1], mlxc.ConvTransposeConfig{Stride: []int{2, 3}, Padding: []int{1}})
		}},
		"rms_norm": {arrays{x, q}, func(a arrays) *mlxc.Array { return mlxc.RMSNorm(a[0], a[1], 1e-2) }},
		"layer_norm": {
			arrays{x, q, normal(6, 4)},
			func(a arrays) *mlxc.Array { return mlxc.LayerNorm(a[0], a[1], a[2], 1e-2) },
		},
		"rope freqs": {
			arrays{normal(6, 1, 3, 4), positive(7, 2)},
			func(a arrays) *mlxc.Array { return mlxc.RoPE(a[0], mlxc.RoPEConfig{Freqs: a[1]}) },
		},
		"attention": {
			arrays{normal(6, 1, 2, 3, 4), normal(7, 1, 2, 5, 4), normal(8, 1, 2, 5, 4)},
			func(a arrays) *mlxc.Array {
				return mlxc.ScaledDotProductAttention(a[0], a[1], a[2], attention)
			},
		},
		"attention mask sinks": {arrays{
			normal(6, 1, 2, 3, 4), normal(7, 1, 1, 5, 4), normal(8, 1, 1, 5, 4),
			normal(9, 3, 5), normal(10, 2),
		}, func(a arrays) *mlxc.Array {
			return mlxc.ScaledDotProductAttention(a[0], a[1], a[2], mlxc.AttentionConfig{Mask: a[3], Sinks: a[4]})
		}},
		"concatenate": {arrays{x, y, normal(6, 1, 4)}, func(a arrays) *mlxc.Array { return mlxc.Concatenate(0, a...) }},
		"stack":       {arrays{x, y}, func(a arrays) *mlxc.Array { return mlxc.Stack(1, a...) }},
		"meshgrid": {
			arrays{normal(6, 3), normal(7, 4)},
			func(a arrays) *mlxc.Array { g := mlxc.Meshgrid(mlxc.MeshgridConfig{}, a...); return g[0].Mul(g[1]) },
		},
		"broadcast": {
			arrays{normal(6, 3, 1), normal(7, 4)},
			func(a arrays) *mlxc.Array { g := mlxc.BroadcastArrays(a...); return g[0].Mul(g[1]) },
		},
		"pad": {arrays{x, s}, func(a arrays) *mlxc.Array {
			return a[0].Pad(a[1],
				mlxc.Padding{Axis: 1, Before: 2, After: 1})
		}},
		"full": {arrays{x, s}, func(a arrays) *mlxc.Array { return mlxc.FullLike(a[0], a[1]).Mul(a[0]) }},
		"slice_update": {
			arrays{x, normal(6, 2, 2)},
			func(a arrays) *mlxc.Array { return a[0].SliceUpdate(a[1], []int{1, 0}, []int{3, 4}, []int{1, 2}) },
		},
		"slice_update_dynamic": {
			arrays{x, normal(6, 2, 2)},
			func(a arrays) *mlxc.Array { return a[0].SliceUpdateDynamic(a[1], i2, []int{0, 1}) },
		},
		"set_at":     {arrays{x, normal(6, 4)}, func(a arrays) *mlxc.Array { return a[0].SetAt(a[1], mlxc.At(1)) }},
		"add_at":     {arrays{x, normal(6, 4)}, func(a arrays) *mlxc.Array { return a[0].AddAt(a[1], mlxc.At(1)) }},
		"mul_at":     {arrays{x, normal(6, 4)}, func(a arrays) *mlxc.Array { return a[0].MulAt(a[1], mlxc.At(1)) }},
		"maximum_at": {arrays{x, normal(6, 4)}, func(a arrays) *mlxc.Array { return a[0].MaximumAt(a[1], mlxc.At(1)) }},
		"minimum_at": {arrays{x, normal(6, 4)}, func(a arrays) *mlxc.Array { return a[0].MinimumAt(a[1], mlxc.At(1)) }},
		"set_at ids": {
			arrays{x, normal(6, 2, 4)},
			func(a arrays) *mlxc.Array { return a[0].SetAt(a[1], mlxc.IDs(i2)) },
		},
		"add_at ids": {arrays{x, y}, func(a arrays) *mlxc.Array { return a[0].AddAt(a[1], mlxc.IDs(ids)) }},
		"mul_at ids": {
			arrays{x, normal(6, 2, 4)},
			func(a arrays) *mlxc.Array { return a[0].MulAt(a[1], mlxc.IDs(i2)) },
		},
		"maximum_at ids": {
			arrays{x, normal(6, 2, 4)},
			func(a arrays) *mlxc.Array { return a[0].MaximumAt(a[1], mlxc.IDs(i2)) },
		},
		"minimum_at ids": {
			arrays{x, normal(6, 2, 4)},
			func(a arrays) *mlxc.Array { return a[0].MinimumAt(a[1], mlxc.IDs(i2)) },
		},
		"set_at part ids": {
			arrays{x, normal(6, 2, 2)},
			func(a arrays) *mlxc.Array { return a[0].SetAt(a[1], mlxc.IDs(i2), mlxc.Range(1, 3)) },
		},
		"add_at part ids": {
			arrays{x, normal(6, 2, 2)},
			func(a arrays) *mlxc.Array { return a[0].AddAt(a[1], mlxc.IDs(i2), mlxc.Range(1, 3)) },
		},
		"scatter_add_axis": {
			arrays{x, normal(6, 3, 1)},
			func(a arrays) *mlxc.Array { return a[0].ScatterAddAlongAxis(ids.Reshape(3, 1), a[1], 1) },
		},
		"put_along": {
			arrays{x, normal(6, 3, 1)},
			func(a arrays) *mlxc.Array { return a[0].PutAlongAxis(ids.Reshape(3, 1), a[1], 1) },
		},
		"masked_scatter": {
			arrays{x, normal(6, 12)},
			func(a arrays) *mlxc.Array { return a[0].MaskedScatter(mlxc.Tri(mlxc.Bool, 3, 4, 0), a[1]) },
		},
		"after":        {arrays{x, y}, func(a arrays) *mlxc.Array { return a[0].After(a[1]).Mul(a[1]) }},
		"after others": {arrays{x, y}, func(a arrays) *mlxc.Array { return a[0].After(a[1].Square()).Square() }},
		"isclose": {arrays{x, y}, func(a arrays) *mlxc.Array {
			return mlxc.Where(a[0].IsClose(a[1],
				mlxc.Tolerance{}), a[0], a[1])
		}},
		"random normal": {arrays{x, q}, func(a arrays) *mlxc.Array {
			return mlxc.RandomNormalBroadcast(mlxc.RandomKey(1), a[0], a[1], mlxc.Float32, 3, 4)
		}},
		"random uniform": {arrays{x, q.AddScalar(3)}, func(a arrays) *mlxc.Array {
			return mlxc.RandomUniformBroadcast(mlxc.RandomKey(1), a[0], a[1], mlxc.Float32, 3, 4)
		}},
		"quantized": {arrays{normal(6, 2, 64), normal(7, 3, 2).Abs(), normal(8, 3, 2)}, func(a arrays) *mlxc.Array {
			w := normal(9, 3, 128).Quantize(mlxc.QuantizeConfig{})
			w.Scales, w.Biases = a[1], a[2]
			return mlxc.Concatenate(1, a[0], a[0]).QuantizedMatMul(w, true)
		}},
		"dequantize": {arrays{normal(7, 3, 2).Abs(), normal(8, 3, 2)}, func(a arrays) *mlxc.Array {
			w := normal(9, 3, 128).Quantize(mlxc.QuantizeConfig{})
			w.Scales, w.Biases = a[0], a[1]
			return w.Dequantize(mlxc.Invalid)
		}},
		// Positions that depend on an operand, without a gradient.
		"take of ids": {arrays{x, floating}, func(a arrays) *mlxc.Array { return a[0].Take(integers(a[1]), 0) }},
		"ids": {arrays{x, floating}, func(a arrays) *mlxc.Array {
			return a[0].Index(mlxc.IDs(integers(a[1])),
				mlxc.Range(1, 3))
		}},
		"gather of ids": {arrays{x, floating}, func(a arrays) *mlxc.Array {
			return a[0].Gather(arrays{integers(a[1])},
				[]int{1}, []int{2, 1})
		}},
		"take_along of": {arrays{x, floating}, func(a arrays) *mlxc.Array { return a[0].TakeAlongAxis(integers(a[1]).Reshape(2, 1), 0) }},
		"set_at of ids": {
			arrays{x, normal(6, 2, 4), floating},
			func(a arrays) *mlxc.Array { return a[0].SetAt(a[1], mlxc.IDs(integers(a[2]))) },
		},
		"add_at of ids": {
			arrays{x, normal(6, 2, 4), floating},
			func(a arrays) *mlxc.Array { return a[0].AddAt(a[1], mlxc.IDs(integers(a[2]))) },
		},
		"put_along of": {arrays{x, normal(6, 1, 4), floating}, func(a arrays) *mlxc.Array {
			return a[0].PutAlongAxis(integers(a[2]).Index(mlxc.Range(0, 1)).BroadcastTo(1, 4), a[1], 0)
		}},
		"slice_dynamic of": {
			arrays{x, floating},
			func(a arrays) *mlxc.Array { return a[0].SliceDynamic(integers(a[1]), []int{0, 1}, []int{2, 2}) },
		},
		"slice_update_dynamic of": {arrays{x, normal(6, 2, 2), floating}, func(a arrays) *mlxc.Array {
			return a[0].SliceUpdateDynamic(a[1], integers(a[2]), []int{0, 1})
		}},
		"masked_scatter of": {
			arrays{x, normal(6, 12), y},
			func(a arrays) *mlxc.Array { return a[0].MaskedScatter(a[2].Greater(mlxc.Scalar[float32](0)), a[1]) },
		},
		"rope of offset": {
			arrays{normal(6, 1, 3, 4), floating.Index(mlxc.At(0))},
			func(a arrays) *mlxc.Array { return mlxc.RoPEDynamic(a[0], integers(a[1]), mlxc.RoPEConfig{}) },
		},
		"crossentropy of": {
			arrays{normal(6, 2, 4), floating},
			func(a arrays) *mlxc.Array { return mlxc.CrossEntropy(a[0], integers(a[1])) },
		},
		"crossentropy": {arrays{x}, func(a arrays) *mlxc.Array { return mlxc.CrossEntropy(a[0], ids) }},
	}
}

//go:build mlxheaders

package faults_test

import (
	"fmt"
	"slices"

	mlx "github.com/mlxgrad/mlxgrad/internal/faults/unguarded"
)

// emptyChecks compute arrays without elements. The process ends if MLX has the fault.
var emptyChecks = map[string]check{
	"sum-empty-view": func() string {
		for n := 1; n < 300; n++ {
			other := mlx.Full(float32(n), n).Add(mlx.Scalar[float32](1))
			for _, k := range []int{-1, 0, 1} {
				zeros := mlx.Scalar[float32](0).BroadcastTo(2, 0, 3).Contiguous()
				mlx.Eval(other, zeros.Diagonal(k).Sum(-1))
			}
		}
		return ""
	},
	"shapeless-sum-single-element": func() string {
		sum := mlx.Of(func(x mlx.Array) mlx.Array { return x.Sum(0) })
		return floats(mlx.Compile(sum, true, []mlx.Array{mlx.Full(1, 2, 3)}, []mlx.Array{mlx.Full(5, 1, 1)})[0], 5)
	},
	"sort-empty":        func() string { return ends(mlx.Full(0, 0, 3).Sort(0)) },
	"cumsum-empty":      func() string { return ends(mlx.Full(0, 0, 3).CumSum(0)) },
	"permutation-empty": func() string { return ends(mlx.Permutation(0)) },
	"prod-gradient-empty": func() string {
		return ends(gradient(mlx.Array.Prod, mlx.Full(0, 0), mlx.Scalar[float32](1)))
	},
	"cummax-gradient-exclusive": func() string {
		f := func(x mlx.Array) mlx.Array { return x.CumMax(false) }
		return ends(gradient(f, mlx.Full(1, 1), mlx.Full(1, 1)))
	},
	"inverse-empty": func() string { return ends(mlx.Full(0, 0, 0).Inverse()) },
	"quantized-matmul-empty": func() string {
		return ends(mlx.Full(0, 0, 64).QuantizedMatMul(mlx.Full(1, 64, 64).Quantize()))
	},
	"segmented-mm-empty": func() string {
		return ends(mlx.Full(0, 0, 4).SegmentedMM(mlx.Full(0, 4, 2), mlx.New([]uint32{0, 4}, 1, 2)))
	},
	"conv-without-channels": func() string {
		return refused(func() mlx.Array { return mlx.Full(0, 1, 4, 0).Conv1D(mlx.Full(0, 1, 2, 0), 0, 0, 1) })
	},
	"attention-without-key-heads": func() string {
		return refused(func() mlx.Array { return mlx.Full(0, 1, 2, 3, 4).Attention(mlx.Full(0, 1, 0, 3, 4)) })
	},
	"masked-scatter-without-source": func() string {
		return refused(func() mlx.Array {
			return mlx.Full(1, 2).MaskedScatter(mlx.New([]bool{true, false}, 2), mlx.Full(0, 0))
		})
	},
	"unflatten-empty": func() string {
		return refused(func() mlx.Array { return mlx.Full(0, 0).Unflatten(0, -1, 0) })
	},
	"matmul-empty-frees-operand": func() string {
		w := mlx.Full(1, 512, 2048).EverySecondColumn()
		mlx.Eval(w)
		sevens := slices.Repeat([]float32{7}, 1<<19)
		for range 300 {
			mlx.AsyncEval(mlx.Full(0, 0, 512).MatMul(w))
			large := mlx.New(sevens, len(sevens))
			mlx.Synchronize()
			if got := large.Read(); !slices.Equal(got, sevens) {
				return "an element of another array was overwritten"
			}
		}
		return ""
	},
}

var memoryChecks = map[string]check{
	"size-overflow": func() string {
		const n = 1 << 16
		if size := mlx.Scalar[float32](1).BroadcastTo(n, n, n, n).Size(); size == 0 {
			return fmt.Sprintf("the size is %d", size)
		}
		return ""
	},
	"out-of-memory": func() string {
		return refused(func() mlx.Array { return mlx.Scalar[float32](1).BroadcastTo(1<<20, 1<<24).Contiguous() })
	},
}

// gradient returns the gradient of f at x.
func gradient(f func(mlx.Array) mlx.Array, x, cotangent mlx.Array) mlx.Array {
	return mlx.VJP(mlx.Of(f), []mlx.Array{x}, []mlx.Array{cotangent})[0]
}

//go:build mlxheaders

package faults_test

import (
	"fmt"
	"math"
	"time"

	mlx "github.com/mlxgrad/mlxgrad/internal/faults/unguarded"
)

// mapped returns f mapped over an axis of x.
func mapped(f func(mlx.Array) mlx.Array, axis int, x mlx.Array) mlx.Array {
	return mlx.Vmap(mlx.Of(f), axis)([]mlx.Array{x})[0]
}

var transformChecks = map[string]check{
	"vmap-custom-vjp": func() string {
		times := func(n float32) mlx.Func {
			return mlx.Of(func(x mlx.Array) mlx.Array { return x.Mul(mlx.Scalar(n)) })
		}
		f := mlx.Vmap(mlx.WithVJP(times(2), times(10)), 0)
		return floats(mlx.VJP(f, []mlx.Array{mlx.Full(1, 3)}, []mlx.Array{mlx.Full(1, 3)})[0], 10, 10, 10)
	},
	"vmap-not-equal-axes": func() string {
		f := func(x mlx.Array) mlx.Array { return mlx.Arange(4).NotEqual(x) }
		return differ(mapped(f, 0, mlx.Full(0, 2, 3, 4)).Shape(), []int{2, 3, 4})
	},
	"vmap-expand-dims-axes": func() string {
		f := func(x mlx.Array) mlx.Array { return x.ExpandDims(0, 2) }
		return differ(mapped(f, 2, mlx.Full(0, 3, 4, 2)).Shape(), []int{2, 1, 3, 1, 4})
	},
	"vmap-slice-update": func() string {
		f := func(x mlx.Array) mlx.Array { return x.SliceUpdate(mlx.New([]float32{8, 9}, 2), 1, 3) }
		return floats(mapped(f, 0, mlx.Full(0, 3, 4)), 0, 8, 9, 0, 0, 8, 9, 0, 0, 8, 9, 0)
	},
	"vmap-slice-update-dynamic": func() string {
		f := func(x mlx.Array) mlx.Array {
			return x.SliceUpdateDynamic(mlx.New([]float32{8, 9}, 2), mlx.New([]int32{1}, 1))
		}
		return floats(mapped(f, 0, mlx.Full(0, 3, 4)), 0, 8, 9, 0, 0, 8, 9, 0, 0, 8, 9, 0)
	},
	"vmap-conv-groups": func() string {
		x, weights := mlx.Arange(24).Reshape(1, 6, 4), mlx.Arange(48).Reshape(3, 4, 2, 2)
		got := mapped(x.GroupedConv1D, 0, weights).Read()
		var want []float32
		for i := range 3 {
			ids := make([]uint32, 16)
			for k := range ids {
				ids[k] = uint32(16*i + k)
			}
			w := weights.Reshape(48).Take(mlx.New(ids, 16)).Reshape(4, 2, 2)
			want = append(want, x.GroupedConv1D(w).Read()...)
		}
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-2 {
				return fmt.Sprintf("element %d is %v instead of %v", i, got[i], want[i])
			}
		}
		return ""
	},
	"vmap-depends": func() string {
		f := func(x mlx.Array) mlx.Array { return x.Depends(x.Add(x)) }
		return failure(func() { mapped(f, 0, mlx.Full(1, 3, 2)) })
	},
	"compile-complex-nan": func() string {
		f := mlx.Of(func(x mlx.Array) mlx.Array {
			return x.Add(mlx.Scalar(complex64(complex(math.NaN(), 0)))).Mul(x)
		})
		return failure(func() { mlx.Compile(f, false, []mlx.Array{mlx.New([]complex64{1, 2}, 2)}) })
	},
	"vmap-triangular-inverse": func() string {
		x := mlx.New([]float32{2, 7, 1, 4}, 1, 2, 2)
		return floats(mapped(mlx.Array.TriInv, 0, x), 0.5, 0, -0.125, 0.25)
	},
	"compile-keeps-operands": func() string {
		run := func() {
			captured := mlx.Full(1, 1000, 1000).Add(mlx.Full(0, 1000, 1000))
			mlx.Eval(captured)
			f := mlx.Of(func(x mlx.Array) mlx.Array { return x.Add(captured).Split()[0].Add(mlx.Scalar[float32](1)) })
			mlx.Compile(f, false, []mlx.Array{mlx.Full(0, 1000, 1000)})
			mlx.FreeAll()
		}
		run()
		before := mlx.ActiveMemory()
		for range 5 {
			run()
		}
		if kept := mlx.ActiveMemory() - before; kept > 1<<20 {
			return fmt.Sprintf("%d bytes are kept", kept)
		}
		return ""
	},
}

var evaluationChecks = map[string]check{
	"failed-evaluation-has-values": func() string {
		a := mlx.Full(0, 3, 3).Inverse()
		if mlx.Try(func() { mlx.Eval(a) }) == nil {
			panic("the first evaluation has no error")
		}
		if mlx.Try(func() { mlx.Eval(a) }) == nil {
			return "the second evaluation has no error"
		}
		return ""
	},
	"error-in-another-evaluation": func() string {
		mlx.AsyncEval(mlx.Full(0, 300, 300).Inverse())
		time.Sleep(200 * time.Millisecond)
		return failure(func() { mlx.Eval(mlx.Full(1, 3).Add(mlx.Full(1, 3))) })
	},
}

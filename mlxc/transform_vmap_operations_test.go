package mlxc_test

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// MLX's batching rules are compared with a loop over the elements, as are their gradients.

type operation = func(a *mlxc.Array) *mlxc.Array

// operations holds functions of a matrix of shape (3,4).
func operations() map[string]operation {
	ids := mlxc.FromSlice([]int32{0, 2, 1, 1, 0, 2}, 3, 2)
	all := map[string]operation{
		"argmax":         func(a *mlxc.Array) *mlxc.Array { return a.ArgMax(0) },
		"argmax 1":       func(a *mlxc.Array) *mlxc.Array { return a.ArgMax(1) },
		"cumsum":         func(a *mlxc.Array) *mlxc.Array { return a.CumSum(0) },
		"cumsum -1":      func(a *mlxc.Array) *mlxc.Array { return a.CumSum(-1) },
		"sort":           func(a *mlxc.Array) *mlxc.Array { return a.Sort(0) },
		"argsort":        func(a *mlxc.Array) *mlxc.Array { return a.ArgSort(-1) },
		"reshape":        func(a *mlxc.Array) *mlxc.Array { return a.Reshape(2, 6) },
		"flatten":        func(a *mlxc.Array) *mlxc.Array { return a.Flatten(0, 1) },
		"broadcast_to":   func(a *mlxc.Array) *mlxc.Array { return a.BroadcastTo(2, 3, 4) },
		"transpose":      func(a *mlxc.Array) *mlxc.Array { return a.Transpose() },
		"expand":         func(a *mlxc.Array) *mlxc.Array { return a.ExpandDims(0, 2) },
		"squeeze":        func(a *mlxc.Array) *mlxc.Array { return a.ExpandDims(0, 2).Squeeze(0) },
		"slice":          func(a *mlxc.Array) *mlxc.Array { return a.Slice([]int{1, 0}, []int{3, 4}, []int{1, 2}) },
		"slice negative": func(a *mlxc.Array) *mlxc.Array { return a.Slice([]int{2, 0}, []int{-4, 4}, []int{-1, 2}) },
		"slice_update": func(a *mlxc.Array) *mlxc.Array {
			return a.SliceUpdate(a.Slice([]int{0, 0}, []int{2, 2}, nil), []int{1, 2}, []int{3, 4}, nil)
		},
		"slice_update constant": func(a *mlxc.Array) *mlxc.Array {
			return a.SliceUpdate(mlxc.Scalar[float32](7), []int{1, 2}, []int{3, 4}, nil)
		},
		"slice_update into constant": func(a *mlxc.Array) *mlxc.Array {
			return mlxc.Zeros(mlxc.Float32, 3, 4).SliceUpdate(a.Slice([]int{0, 0}, []int{2, 2}, nil), []int{1, 2},
				[]int{3, 4}, nil)
		},
		"take":           func(a *mlxc.Array) *mlxc.Array { return a.Take(ids, 0) },
		"take 1":         func(a *mlxc.Array) *mlxc.Array { return a.Take(ids, 1) },
		"take_along":     func(a *mlxc.Array) *mlxc.Array { return a.TakeAlongAxis(ids, 1) },
		"take_along own": func(a *mlxc.Array) *mlxc.Array { return a.TakeAlongAxis(a.StopGradient().ArgSort(0), 0) },
		"scatter_add": func(a *mlxc.Array) *mlxc.Array {
			return mlxc.Zeros(mlxc.Float32, 3, 4).ScatterAdd(ids.Slice([]int{0, 0}, []int{3, 1}, nil).Reshape(3), a, 0)
		},
		"scatter_add 1": func(a *mlxc.Array) *mlxc.Array { return a.ScatterAdd(ids, a.Take(ids, 1), 1) },
		"scatter_add_axis": func(a *mlxc.Array) *mlxc.Array {
			return mlxc.Zeros(mlxc.Float32, 3, 4).ScatterAddAlongAxis(ids, a.Slice([]int{0, 0}, []int{3, 2}, nil), 1)
		},
		"scatter_add_axis own":   func(a *mlxc.Array) *mlxc.Array { return a.ScatterAddAlongAxis(a.StopGradient().ArgSort(0), a, 0) },
		"split":                  func(a *mlxc.Array) *mlxc.Array { p := a.Split(2, 1); return p[1].Sub(p[0]) },
		"split_at":               func(a *mlxc.Array) *mlxc.Array { return a.SplitAt(0, 1)[1] },
		"stack":                  func(a *mlxc.Array) *mlxc.Array { return mlxc.Stack(1, a, a.Square()) },
		"concatenate":            func(a *mlxc.Array) *mlxc.Array { return mlxc.Concatenate(0, a, mlxc.Ones(mlxc.Float32, 1, 4)) },
		"tile":                   func(a *mlxc.Array) *mlxc.Array { return a.Tile(2, 1, 3) },
		"repeat":                 func(a *mlxc.Array) *mlxc.Array { return a.Repeat(2, 0) },
		"tril":                   func(a *mlxc.Array) *mlxc.Array { return a.Tril(0) },
		"where":                  func(a *mlxc.Array) *mlxc.Array { return mlxc.Where(a.Less(mlxc.Scalar[float32](0)), a, a.Square()) },
		"matmul":                 func(a *mlxc.Array) *mlxc.Array { return a.MatMul(normal(3, 4, 5)) },
		"matmul batch":           func(a *mlxc.Array) *mlxc.Array { return a.MatMul(normal(3, 2, 4, 5)) },
		"matmul vector":          func(a *mlxc.Array) *mlxc.Array { return a.MatMul(normal(3, 4)) },
		"matmul left":            func(a *mlxc.Array) *mlxc.Array { return normal(3, 5, 3).MatMul(a) },
		"add vector":             func(a *mlxc.Array) *mlxc.Array { return a.Add(normal(3, 4)) },
		"add more":               func(a *mlxc.Array) *mlxc.Array { return a.Add(normal(3, 2, 1, 4)) },
		"rms_norm":               func(a *mlxc.Array) *mlxc.Array { return mlxc.RMSNorm(a, normal(4, 4), 1e-5) },
		"rms_norm mapped weight": func(a *mlxc.Array) *mlxc.Array { return mlxc.RMSNorm(a, a.Sum(0), 1e-5) },
		"layer_norm":             func(a *mlxc.Array) *mlxc.Array { return mlxc.LayerNorm(a, normal(4, 4), nil, 1e-5) },
		"cross_entropy": func(a *mlxc.Array) *mlxc.Array {
			return mlxc.CrossEntropy(a,
				mlxc.FromSlice([]int32{1, 0, 3}))
		},
		"astype": func(a *mlxc.Array) *mlxc.Array { return a.AsType(mlxc.Float16).Contiguous() },
		"floor_divide": func(a *mlxc.Array) *mlxc.Array {
			return a.MulScalar(10).AsType(mlxc.Int32).FloorDivide(mlxc.Scalar[int32](3))
		},
		"random": func(a *mlxc.Array) *mlxc.Array { return a.Add(normal(5, 3, 4)) },
		"nested": func(a *mlxc.Array) *mlxc.Array {
			return mlxc.Vmap(single(func(b *mlxc.Array) *mlxc.Array { return b.CumSum(0).Mul(b) }), []int{1},
				[]int{1})(arrays{a})[0]
		},
		"gradient": func(a *mlxc.Array) *mlxc.Array {
			_, g, err := mlxc.VJP(single(func(b *mlxc.Array) *mlxc.Array { return b.Softmax(0) }), arrays{a},
				arrays{a.Square()})
			if err != nil {
				return mlxc.InvalidArray(err)
			}
			return g[0]
		},
		"attention": func(a *mlxc.Array) *mlxc.Array {
			q := a.Reshape(1, 1, 3, 4)
			return mlxc.ScaledDotProductAttention(q, q, q, mlxc.AttentionConfig{Causal: true})
		},
		"attention mask": func(a *mlxc.Array) *mlxc.Array {
			q := a.Reshape(1, 1, 3, 4)
			return mlxc.ScaledDotProductAttention(q, q, q,
				mlxc.AttentionConfig{Mask: a.Sum().Add(mlxc.Zeros(mlxc.Float32, 3, 3)).Tril(0)})
		},
		"slice of mapped ids": func(a *mlxc.Array) *mlxc.Array {
			return normal(5, 4, 6).Take(a.StopGradient().ArgSort(1).AsType(mlxc.Int32), 0)
		},
		"ids both": func(a *mlxc.Array) *mlxc.Array { return a.Take(a.StopGradient().ArgMax(0), 0) },
	}
	for name, f := range map[string]operation{
		"neg": (*mlxc.Array).Neg, "abs": (*mlxc.Array).Abs, "square": (*mlxc.Array).Square, "sqrt": (*mlxc.Array).Sqrt,
		"rsqrt": (*mlxc.Array).Rsqrt, "exp": (*mlxc.Array).Exp, "log": (*mlxc.Array).Log, "sin": (*mlxc.Array).Sin,
		"cos": (*mlxc.Array).Cos, "tanh": (*mlxc.Array).Tanh, "sigmoid": (*mlxc.Array).Sigmoid,
		"erf":   (*mlxc.Array).Erf,
		"expm1": (*mlxc.Array).Expm1, "log1p": (*mlxc.Array).Log1p, "isnan": (*mlxc.Array).IsNaN,
		"logical_not": (*mlxc.Array).LogicalNot, "contiguous": (*mlxc.Array).Contiguous,
	} {
		all[name] = func(a *mlxc.Array) *mlxc.Array { return f(a.Abs().AddScalar(0.5)) }
	}
	return all
}

// vjpOf returns the vector-Jacobian product of f for a cotangent with distinct elements, or f itself if f has none.
func vjpOf(f operation) operation {
	return func(a *mlxc.Array) *mlxc.Array {
		y := f(a)
		if !y.DType().IsFloating() {
			return y
		}
		cotangent := counting(y.Shape()...).Sin().AsType(y.DType())
		_, grads, err := mlxc.VJP(single(f), arrays{a}, arrays{cotangent})
		if err != nil {
			return mlxc.InvalidArray(err)
		}
		return grads[0]
	}
}

func TestVmapOfOperations(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	x := normal(1, 3, 2, 4)
	for name, f := range operations() {
		t.Run(name, func(t *testing.T) {
			requireMapped(t, single(f), arrays{x.SwapAxes(0, 1)}, []int{0}, 0)
			requireMapped(t, single(f), arrays{x}, []int{1}, -1)
			requireMapped(t, single(f), arrays{x.Transpose(0, 2, 1)}, []int{-1}, 0)
			requireMapped(t, single(vjpOf(f)), arrays{x}, []int{1}, 0)
			mapped := func(a *mlxc.Array) *mlxc.Array {
				return mlxc.Vmap(single(f), []int{1}, nil)(arrays{a})[0]
			}
			loop := func(a *mlxc.Array) *mlxc.Array { return mlxc.Stack(0, f(at(a, 0, 1)), f(at(a, 1, 1))) }
			requireClose(t, vjpOf(loop)(x), vjpOf(mapped)(x))
		})
	}
}

// last moves the first axis to the end.
func last(a *mlxc.Array) *mlxc.Array {
	var order []int
	for i := 1; i < a.NDim(); i++ {
		order = append(order, i)
	}
	return a.Transpose(append(order, 0)...)
}

// Operations of two operands, with the mapped axis in the first, the second and both.
func TestVmapOfOperationsOfTwo(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	ints := func(bound int32, shape ...int) *mlxc.Array {
		return normal(9, shape...).MulScalar(100).AsType(mlxc.Int32).Remainder(mlxc.Scalar(bound))
	}
	type pair struct {
		a, b *mlxc.Array // the two elements of the batch, along the first axis
		f    func(a, b *mlxc.Array) *mlxc.Array
	}
	pairs := map[string]pair{
		"add":               {normal(1, 2, 3, 4), normal(2, 2, 4), (*mlxc.Array).Add},
		"maximum":           {normal(1, 2, 4), normal(2, 2, 3, 1), (*mlxc.Array).Maximum},
		"matmul":            {normal(1, 2, 3, 4), normal(2, 2, 4, 5), (*mlxc.Array).MatMul},
		"matmul, more axes": {normal(1, 2, 3, 4), normal(2, 2, 6, 4, 5), (*mlxc.Array).MatMul},
		"matmul, vectors":   {normal(1, 2, 4), normal(2, 2, 4), (*mlxc.Array).MatMul},
		"divide integers":   {ints(9, 2, 3), ints(4, 2, 3).SubScalar(2).AsType(mlxc.Int32), (*mlxc.Array).FloorDivide},
		"where": {normal(1, 2, 3, 4), normal(2, 2, 4), func(a, b *mlxc.Array) *mlxc.Array {
			return mlxc.Where(a.Less(b), a, b.Square())
		}},
		"concatenate": {
			normal(1, 2, 3, 4), normal(2, 2, 3, 2),
			func(a, b *mlxc.Array) *mlxc.Array { return mlxc.Concatenate(1, a, b) },
		},
		"stack":    {normal(1, 2, 3), normal(2, 2, 3), func(a, b *mlxc.Array) *mlxc.Array { return mlxc.Stack(1, a, b) }},
		"take 0":   {normal(1, 2, 5, 4), ints(5, 2, 3), func(a, b *mlxc.Array) *mlxc.Array { return a.Take(b, 0) }},
		"take 1":   {normal(1, 2, 5, 4), ints(4, 2, 3, 2), func(a, b *mlxc.Array) *mlxc.Array { return a.Take(b, 1) }},
		"take one": {normal(1, 2, 5, 4), ints(4, 2), func(a, b *mlxc.Array) *mlxc.Array { return a.Take(b, 1) }},
		"take_along_axis": {
			normal(1, 2, 5, 4), ints(5, 2, 3, 4),
			func(a, b *mlxc.Array) *mlxc.Array { return a.TakeAlongAxis(b, 0) },
		},
		"scatter_add": {normal(1, 2, 5, 4), ints(5, 2, 3), func(a, b *mlxc.Array) *mlxc.Array {
			return a.ScatterAdd(b, counting(3, 4), 0)
		}},
		"scatter_add of it": {normal(1, 2, 3, 4), ints(5, 2, 3), func(a, b *mlxc.Array) *mlxc.Array {
			return counting(5, 4).ScatterAdd(b, a, 0)
		}},
		"scatter_add_axis": {normal(1, 2, 5, 4), ints(4, 2, 5, 3), func(a, b *mlxc.Array) *mlxc.Array {
			return a.ScatterAddAlongAxis(b, counting(5, 3), 1)
		}},
		"scatter_add_axis of it": {normal(1, 2, 5, 3), ints(4, 2, 5, 3), func(a, b *mlxc.Array) *mlxc.Array {
			return counting(5, 4).ScatterAddAlongAxis(b, a, 1)
		}},
		"slice_update": {normal(1, 2, 3, 4), normal(2, 2, 2), func(a, b *mlxc.Array) *mlxc.Array {
			return a.SliceUpdate(b, []int{1, 0}, []int{3, 4}, []int{1, 2})
		}},
		"rms_norm": {
			normal(1, 2, 3, 4), normal(2, 2, 4),
			func(a, b *mlxc.Array) *mlxc.Array { return mlxc.RMSNorm(a, b, 1e-5) },
		},
		"layer_norm": {
			normal(1, 2, 3, 4), normal(2, 2, 4),
			func(a, b *mlxc.Array) *mlxc.Array { return mlxc.LayerNorm(a, b, b, 1e-5) },
		},
		"cross_entropy": {normal(1, 2, 3, 4), ints(4, 2, 3), mlxc.CrossEntropy},
		"attention": {normal(1, 2, 1, 4, 3, 8), normal(2, 2, 1, 2, 5, 8), func(a, b *mlxc.Array) *mlxc.Array {
			return mlxc.ScaledDotProductAttention(a, b, b.Square(), mlxc.AttentionConfig{Causal: true})
		}},
		"attention's mask": {normal(1, 2, 1, 4, 3, 8), normal(2, 2, 3, 3), func(a, b *mlxc.Array) *mlxc.Array {
			return mlxc.ScaledDotProductAttention(a, a, a, mlxc.AttentionConfig{Mask: b})
		}},
		"attention's sinks": {normal(1, 2, 1, 4, 3, 8), normal(2, 2, 4), func(a, b *mlxc.Array) *mlxc.Array {
			return mlxc.ScaledDotProductAttention(a, a, a, mlxc.AttentionConfig{Sinks: b})
		}},
	}
	for name, f := range map[string]func(a, b *mlxc.Array) *mlxc.Array{
		"add": (*mlxc.Array).Add, "subtract": (*mlxc.Array).Sub, "multiply": (*mlxc.Array).Mul,
		"divide": (*mlxc.Array).Div,
		"power":  (*mlxc.Array).Pow, "maximum": (*mlxc.Array).Maximum, "minimum": (*mlxc.Array).Minimum,
		"floor_divide": (*mlxc.Array).FloorDivide, "remainder": (*mlxc.Array).Remainder, "equal": (*mlxc.Array).Equal,
		"not_equal": (*mlxc.Array).NotEqual, "greater": (*mlxc.Array).Greater,
		"greater_equal": (*mlxc.Array).GreaterEqual,
		"less":          (*mlxc.Array).Less, "less_equal": (*mlxc.Array).LessEqual, "logical_and": (*mlxc.Array).LogicalAnd,
		"logical_or": (*mlxc.Array).LogicalOr,
	} {
		// All axes have the same size, so that a misplaced axis has the right size.
		pairs[name] = pair{normal(1, 2, 2).Abs(), normal(2, 2, 2, 2), f}
		pairs[name+", the other longer"] = pair{normal(1, 2, 3, 4).Abs(), normal(2, 2, 4), f}
	}
	for name, c := range pairs {
		t.Run(name, func(t *testing.T) {
			f := func(args arrays) arrays { return arrays{c.f(args[0], args[1])} }
			// The gradient for the first operand.
			grad := func(args arrays) arrays {
				return arrays{vjpOf(func(a *mlxc.Array) *mlxc.Array { return c.f(a, args[1]) })(args[0])}
			}
			for _, g := range []mlxc.Func{f, grad} {
				requireMapped(t, g, arrays{c.a, c.b}, []int{0, 0}, 0)
				requireMapped(t, g, arrays{c.a, at(c.b, 1, 0)}, []int{0, mlxc.Unmapped}, 0)
				requireMapped(t, g, arrays{at(c.a, 1, 0), c.b}, []int{mlxc.Unmapped, 0}, 0)
				requireMapped(t, g, arrays{last(c.a), c.b}, []int{-1, 0}, 0)
			}
		})
	}
}

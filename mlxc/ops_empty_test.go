package mlxc_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// returns fails the test if f does not return: MLX's reductions may loop forever.
func returns(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal(what, "does not return")
	}
}

// strided returns a (rows,columns) matrix of ones that MLX's CPU backend copies before a product.
func strided(rows, columns int) *mlxc.Array {
	return mlxc.Ones(mlxc.Float32, rows, 2*columns).Index(mlxc.All, mlxc.All.Step(2))
}

// No result needs a product, but MLX may copy the operands. They are large, so a copy that is freed too early is still
// being written.
func TestProductsWithoutElements(t *testing.T) {
	testdevice.CPUOnly(t, "uses operations that MLX has for CPUs alone")
	const k, n = 512, 1024
	zeros := func(shape ...int) *mlxc.Array { return mlxc.Zeros(mlxc.Float32, shape...) }
	w, square := strided(k, n), strided(k, k)
	product := func(f func(x, w *mlxc.Array) *mlxc.Array) func() arrays {
		return func() arrays { return arrays{f(zeros(0, k), w)} }
	}
	matmul := (*mlxc.Array).MatMul
	must := func(a arrays, err error) arrays {
		require.NoError(t, err)
		return a
	}
	gradient := func(x, w *mlxc.Array) arrays {
		return must(mlxc.Grad(func(a arrays) arrays { return arrays{a[0].MatMul(a[1]).Sum()} }, 0, 1)(arrays{x, w}))
	}
	sevens := slices.Repeat([]float32{7}, k*n)
	heads := square.Reshape(1, 1, k, k)
	for name, c := range map[string]struct {
		f     func() arrays
		shape []int // of the first result
	}{
		"matmul":        {product(matmul), []int{0, n}},
		"matmul right":  {func() arrays { return arrays{square.MatMul(zeros(k, 0))} }, []int{k, 0}},
		"matmul batch":  {func() arrays { return arrays{zeros(3, 0, k).MatMul(w)} }, []int{3, 0, n}},
		"matmul vector": {func() arrays { return arrays{zeros(0, 2, k).MatMul(w)} }, []int{0, 2, n}},
		"addmm":         {product(func(x, w *mlxc.Array) *mlxc.Array { return zeros(n).AddMM(x, w, 2, 3) }), []int{0, n}},
		"einsum":        {product(func(x, w *mlxc.Array) *mlxc.Array { return mlxc.Einsum("ij,jk->ik", x, w) }), []int{0, n}},
		"tensordot": {
			product(func(x, w *mlxc.Array) *mlxc.Array { return x.TensorDot(w, []int{1}, []int{0}) }),
			[]int{0, n},
		},
		"inner": {product(func(x, w *mlxc.Array) *mlxc.Array { return x.Inner(w.Transpose()) }), []int{0, n}},
		"outer": {product(func(x, w *mlxc.Array) *mlxc.Array { return x.Outer(w) }), []int{0, k * n}},
		"gather_mm": {product(func(x, w *mlxc.Array) *mlxc.Array {
			return x.GatherMM(w, mlxc.MatMulIDs{})
		}), []int{0, n}},
		"segmented_mm": {product(func(x, w *mlxc.Array) *mlxc.Array {
			return x.SegmentedMM(w, mlxc.FromSlice([]uint32{0, k}, 1, 2))
		}), []int{1, 0, n}},
		"block_masked_mm": {product(func(x, w *mlxc.Array) *mlxc.Array {
			return x.BlockMaskedMM(w, mlxc.BlockMasks{Size: 32})
		}), []int{0, n}},
		"attention without queries": {func() arrays {
			return arrays{mlxc.ScaledDotProductAttention(zeros(1, 1, 0, k), heads, heads, mlxc.AttentionConfig{})}
		}, []int{1, 1, 0, k}},
		"attention without values": {func() arrays {
			return arrays{mlxc.ScaledDotProductAttention(heads, heads, zeros(1, 1, k, 0), mlxc.AttentionConfig{})}
		}, []int{1, 1, k, 0}},
		"gradient without rows":    {func() arrays { return gradient(zeros(0, k), w) }, []int{0, k}},
		"gradient without columns": {func() arrays { return gradient(square, zeros(k, 0)) }, []int{k, k}},
		"gradient without inputs":  {func() arrays { return gradient(zeros(k, 0), zeros(0, n)) }, []int{k, 0}},
		"compiled": {func() arrays {
			return must(mlxc.Compile(func(a arrays) arrays { return gradient(a[0], a[1]) }).Call(zeros(0, k), w))
		}, []int{0, k}},
		"compiled for any shape": {func() arrays {
			f := mlxc.CompileShapeless(func(a arrays) arrays { return arrays{a[0].MatMul(a[1])} })
			must(f.Call(strided(2, k), w))
			return must(f.Call(zeros(0, k), w))
		}, []int{0, n}},
		"vmap": {func() arrays {
			f := mlxc.Vmap(func(a arrays) arrays { return arrays{a[0].MatMul(a[1])} }, []int{1, mlxc.Unmapped}, nil)
			return f(arrays{zeros(0, 4, k), w})
		}, []int{4, 0, n}},
	} {
		t.Run(name, func(t *testing.T) {
			for range 3 {
				mlxc.WithScope(func() {
					result := c.f()
					require.NoError(t, mlxc.AsyncEval(result...))
					// These arrays reuse the memory of the copies.
					large, small := mlxc.FromSlice(sevens), mlxc.FromSlice(sevens[:k*k])
					require.NoError(t, mlxc.Synchronize())
					require.True(t, slices.Equal(sevens, floats(t, large)), "MLX wrote to another array")
					require.True(t, slices.Equal(sevens[:k*k], floats(t, small)), "MLX wrote to another array")
					require.Equal(t, c.shape, result[0].Shape())
					for _, r := range result {
						require.True(t, slices.Equal(make([]float32, r.Size()), floats(t, r)))
					}
				})
			}
		})
	}
}

// The product is a sum over no elements, 0. AddMM adds to it.
func TestProductsOverNoElements(t *testing.T) {
	x, y := mlxc.Zeros(mlxc.Float32, 2, 0), mlxc.Zeros(mlxc.Float32, 0, 3)
	require.Equal(t, make([]float32, 6), floats(t, x.MatMul(y)))
	require.Equal(t, []float32{2, 4, 6, 2, 4, 6}, floats(t, mlxc.FromSlice([]float32{1, 2, 3}).AddMM(x, y, 5, 2)))
	for dtype, shape := range map[mlxc.DType][]int{mlxc.Float16: {0, 3}, mlxc.Complex64: {2, 0}} {
		r := mlxc.Zeros(dtype, shape...).MatMul(mlxc.Zeros(mlxc.Float16, shape[1], 4))
		require.NoError(t, mlxc.Eval(r))
		require.Equal(t, dtype, r.DType())
		require.Equal(t, []int{shape[0], 4}, r.Shape())
	}
	require.Error(t, mlxc.Zeros(mlxc.Float32, 0, 3).MatMul(mlxc.Zeros(mlxc.Float32, 2, 4)).Err())
	require.Error(t, mlxc.Zeros(mlxc.Int32, 0, 3).MatMul(mlxc.Zeros(mlxc.Int32, 3, 4)).Err())
}

// withoutElements returns empty arrays of a shape, with strides that are not row-major where MLX permits it.
func withoutElements(t *testing.T, shape []int) map[string]*mlxc.Array {
	order := make([]int, len(shape))
	for i := range order {
		order[i] = (i + 1) % len(shape)
	}
	moved := make([]int, len(shape)) // transposed by order, it is shape
	for i, k := range order {
		moved[k] = shape[i]
	}
	full := slices.Clone(shape)
	k := slices.Index(full, 0)
	full[k] = 5
	at := slices.Repeat([]mlxc.Index{mlxc.All}, k)
	evaluated := mlxc.Zeros(mlxc.Float32, moved...).Exp().Transpose(order...)
	require.NoError(t, mlxc.Eval(evaluated))
	parts := mlxc.Ones(mlxc.Float32, full...).SplitAt(k, 2, 2)
	kept := mlxc.Ones(mlxc.Float32, full...).SplitAt(k, 2, 2)
	require.NoError(t, mlxc.Eval(kept...))
	return map[string]*mlxc.Array{
		"row-major":            mlxc.Zeros(mlxc.Float32, shape...),
		"transposed":           mlxc.Zeros(mlxc.Float32, moved...).Exp().Transpose(order...),
		"transposed evaluated": evaluated,
		"part":                 parts[1],
		"part evaluated":       kept[1],
		"window":               mlxc.Ones(mlxc.Float32, full...).Index(append(at, mlxc.Range(1, 1))...),
		"ids":                  mlxc.Ones(mlxc.Float32, full...).Index(append(at, mlxc.IDs(mlxc.FromSlice([]int32{})))...),
	}
}

func TestReductionsWithoutElements(t *testing.T) {
	nan := float32(math.NaN())
	reductions := map[string]struct {
		f    func(a *mlxc.Array, axes ...int) *mlxc.Array
		want float32
	}{
		"sum":           {(*mlxc.Array).Sum, 0},
		"prod":          {(*mlxc.Array).Prod, 1},
		"mean":          {(*mlxc.Array).Mean, nan},
		"any":           {(*mlxc.Array).Any, 0},
		"all":           {(*mlxc.Array).All, 1},
		"count_nonzero": {(*mlxc.Array).CountNonzero, 0},
		"var":           {(*mlxc.Array).Var, nan},
		"norm":          {(*mlxc.Array).Norm, 0},
	}
	for _, shape := range [][]int{
		{0, 3},
		{3, 0},
		{0, 0},
		{1, 0},
		{0, 1},
		{1, 3, 0},
		{2, 0, 3},
		{0, 2, 3},
		{2, 0, 0},
		{1, 0, 1},
		{2, 1, 0, 3},
	} {
		for form, a := range withoutElements(t, shape) {
			for mask := range 1 << len(shape) {
				var axes, left []int
				for i, n := range shape {
					if mask>>i&1 == 1 {
						axes = append(axes, i)
					} else {
						left = append(left, n)
					}
				}
				if len(axes) == 0 {
					continue
				}
				for name, c := range reductions {
					if name == "norm" && len(axes) > 2 {
						continue
					}
					what := fmt.Sprint(name, " over ", axes, " of ", form, " ", shape)
					returns(t, what, func() {
						r := c.f(a, axes...).AsType(mlxc.Float32)
						got := floats(t, r)
						require.Equal(t, r.Size(), len(got), what)
						if len(left) > 0 {
							require.Equal(t, left, r.Shape(), what)
						}
						for _, v := range got {
							require.True(t, v == c.want || v != v && c.want != c.want, "%s: %v", what, v)
						}
					})
				}
			}
		}
	}
}

// MLX's derivative of a broadcast sums over the broadcast axes.
func TestGradientsOfBroadcastsWithoutElements(t *testing.T) {
	for form, ct := range withoutElements(t, []int{3, 0}) {
		returns(t, form, func() {
			add := func(a arrays) arrays { return arrays{a[0].Add(a[1])} }
			_, grads, err := mlxc.VJP(add, arrays{mlxc.Ones(mlxc.Float32, 3, 1), mlxc.Ones(mlxc.Float32, 3, 0)},
				arrays{ct})
			require.NoError(t, err, form)
			require.Equal(t, []float32{0, 0, 0}, floats(t, grads[0]), form)
		})
	}
}

func TestOperationsWithoutElements(t *testing.T) {
	testdevice.CPUOnly(t, "uses operations that MLX has for CPUs alone")
	returns(t, "an operation", func() {
		// The diagonal is empty although the operand is not.
		require.Equal(t, make([]float32, 30), floats(t, mlxc.Ones(mlxc.BFloat16, 1, 2, 3, 4, 5).Trace(1, 3,
			0).AsType(mlxc.Float32)))
		for form, a := range withoutElements(t, []int{2, 0, 3}) {
			for name, f := range map[string]func(a *mlxc.Array) *mlxc.Array{
				"softmax":   func(a *mlxc.Array) *mlxc.Array { return a.Softmax(-1) },
				"cumsum":    func(a *mlxc.Array) *mlxc.Array { return a.CumSum(2) },
				"sort":      func(a *mlxc.Array) *mlxc.Array { return a.Sort(2) },
				"reshape":   func(a *mlxc.Array) *mlxc.Array { return a.Reshape(0, 6) },
				"matmul":    func(a *mlxc.Array) *mlxc.Array { return a.MatMul(strided(3, 4)) },
				"transpose": func(a *mlxc.Array) *mlxc.Array { return a.Transpose() },
				"take":      func(a *mlxc.Array) *mlxc.Array { return a.Take(mlxc.FromSlice([]int32{1, 2}), 2) },
			} {
				require.Empty(t, floats(t, f(a)), "%s of %s", name, form)
			}
			require.NoError(t, mlxc.Eval(mlxc.Concatenate(1, a, mlxc.Ones(mlxc.Float32, 2, 1, 3))), form)
			for _, x := range []*mlxc.Array{a.Min(), a.Max(1), a.ArgMin(1), a.ArgMax(2), a.LogSumExp(1)} {
				require.Error(t, x.Err(), form)
			}
		}
		// One evaluation contains both parts and a user of the empty one.
		parts := mlxc.Ones(mlxc.Float32, 2, 5).SplitAt(1, 2, 2)
		sums := parts[1].Transpose().Sum(0)
		more := parts[1].Sum(1)
		require.NoError(t, mlxc.Eval(parts[0], more, sums, parts[2]))
		require.Equal(t, []float32{0, 0}, floats(t, sums))
		require.Equal(t, []float32{0, 0}, floats(t, more))
		for _, shape := range [][]int{{0, 3}, {3, 0}} {
			for form, a := range withoutElements(t, shape) {
				u, s, vh := a.SVD()
				require.Empty(t, floats(t, s), form)
				identity := []float32{1, 0, 0, 0, 1, 0, 0, 0, 1}
				require.Equal(t, identity, append(floats(t, u), floats(t, vh)...), form)
			}
		}
	})
}

// An evaluation inside a transform keeps the graph for the gradient.
func TestEmptyArraysInsideTransforms(t *testing.T) {
	x, w := mlxc.Ones(mlxc.Float32, 2, 3), mlxc.Ones(mlxc.Float32, 3, 4)
	_, grads, err := mlxc.VJP(func(a arrays) arrays {
		none := a[0].Index(mlxc.Range(1, 1)).MatMul(a[1])
		sum := none.Sum()
		require.NoError(t, mlxc.Eval(none, sum))
		return arrays{a[0].MatMul(a[1]).Sum().Add(sum), none}
	}, arrays{x, w}, arrays{mlxc.Scalar[float32](1), mlxc.Ones(mlxc.Float32, 0, 4)})
	require.NoError(t, err)
	require.Equal(t, slices.Repeat([]float32{4}, 6), floats(t, grads[0]))
	require.Equal(t, slices.Repeat([]float32{2}, 12), floats(t, grads[1]))
}

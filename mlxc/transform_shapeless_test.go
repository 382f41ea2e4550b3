package mlxc_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// rows returns n rows of three elements.
func rows(n int) *mlxc.Array {
	return mlxc.Arange(mlxc.Float32, 1, float64(3*n+1), 1).Reshape(n, 3).Sin()
}

// dependent are functions whose graphs depend on the shape of their argument, of shape (rows, 3).
func dependent() map[string]operation {
	pad := mlxc.Padding{Axis: 0, After: 1}
	return map[string]operation{
		"Pad":      func(a *mlxc.Array) *mlxc.Array { return a.Pad(nil, pad) },
		"PadEdge":  func(a *mlxc.Array) *mlxc.Array { return a.PadEdge(pad) },
		"Tril":     func(a *mlxc.Array) *mlxc.Array { return a.Tril(0) },
		"Diagonal": func(a *mlxc.Array) *mlxc.Array { return a.Diagonal(0, 0, 1) },
		"Trace":    func(a *mlxc.Array) *mlxc.Array { return a.Trace(0, 0, 1) },
		"FullLike": func(a *mlxc.Array) *mlxc.Array { return mlxc.FullLike(a, mlxc.Scalar[float32](2)) },
		"BroadcastTo and Exp": func(a *mlxc.Array) *mlxc.Array {
			return a.MaxKeepDims(0).BroadcastTo(a.Dim(0), 3).Exp()
		},
		"Index with IDs": func(a *mlxc.Array) *mlxc.Array {
			return a.Index(mlxc.All, mlxc.IDs(mlxc.FromSlice([]int32{2, 0})))
		},
		"SliceDynamic": func(a *mlxc.Array) *mlxc.Array {
			return a.SliceDynamic(mlxc.FromSlice([]int32{1}), []int{1}, []int{2})
		},
		"HadamardTransform": func(a *mlxc.Array) *mlxc.Array {
			return a.Index(mlxc.All, mlxc.Range(0, 2)).Transpose().HadamardTransform(0)
		},
		"CausalAttention": func(a *mlxc.Array) *mlxc.Array {
			a = a.Index(mlxc.NewAxis, mlxc.NewAxis)
			return mlxc.ScaledDotProductAttention(a, a, a, mlxc.AttentionConfig{Causal: true})
		},
		"Sort":    func(a *mlxc.Array) *mlxc.Array { return a.Sort(0) },
		"CumSum":  func(a *mlxc.Array) *mlxc.Array { return a.CumSum(0) },
		"Step":    func(a *mlxc.Array) *mlxc.Array { return a.Index(mlxc.All.Step(2)) },
		"Split":   func(a *mlxc.Array) *mlxc.Array { return a.Split(2, 0)[1] },
		"Diff":    func(a *mlxc.Array) *mlxc.Array { return a.Diff(1, 0) },
		"Range":   func(a *mlxc.Array) *mlxc.Array { return a.Index(mlxc.Range(-1, mlxc.End)) },
		"Roll":    func(a *mlxc.Array) *mlxc.Array { return a.Roll(1, 0) },
		"Softmax": func(a *mlxc.Array) *mlxc.Array { return a.Softmax(0) },
		"Attention": func(a *mlxc.Array) *mlxc.Array {
			a = a.Index(mlxc.NewAxis, mlxc.NewAxis)
			return mlxc.ScaledDotProductAttention(a, a, a, mlxc.AttentionConfig{})
		},
		"a size as a constant": func(a *mlxc.Array) *mlxc.Array { return a.MulScalar(a.Dim(0)) },
		"outputs of different sizes": func(a *mlxc.Array) *mlxc.Array {
			return a.Exp().Mul(a.SumKeepDims(0)).Add(mlxc.FromSlice([]float32{1, 2, 3}).Reshape(1, 3))
		},
	}
}

// independent are functions whose graphs do not depend on the shape of their argument, of shape (rows, 3).
func independent() map[string]operation {
	weight := mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 3, 2)
	return map[string]operation{
		"elementwise": func(a *mlxc.Array) *mlxc.Array { return a.Exp().Mul(a).AddScalar(1).Log1p().Abs().Sqrt() },
		"reductions":  func(a *mlxc.Array) *mlxc.Array { return a.Sum(0).Add(a.Mean(0)).Add(a.Max(0)).Sub(a.Min()) },
		"variance":    func(a *mlxc.Array) *mlxc.Array { return a.Var(0) },
		"softmax":     func(a *mlxc.Array) *mlxc.Array { return a.Softmax(-1).Mul(a.LogSumExp(-1).Exp().Sum()) },
		"MatMul":      func(a *mlxc.Array) *mlxc.Array { return a.MatMul(weight).MatMul(weight.Transpose()) },
		"transposes":  func(a *mlxc.Array) *mlxc.Array { return a.Transpose().MatMul(a) },
		"concatenate": func(a *mlxc.Array) *mlxc.Array { return mlxc.Concatenate(0, a, a.Square()) },
		"RMSNorm":     func(a *mlxc.Array) *mlxc.Array { return mlxc.RMSNorm(a, mlxc.Ones(mlxc.Float32, 3), 1e-5) },
		"LayerNorm":   func(a *mlxc.Array) *mlxc.Array { return mlxc.LayerNorm(a, nil, nil, 1e-5) },
		"Where": func(a *mlxc.Array) *mlxc.Array {
			return mlxc.Where(a.Greater(mlxc.Scalar[float32](2)), a, mlxc.Scalar[float32](0))
		},
		"ArgMax": func(a *mlxc.Array) *mlxc.Array { return a.ArgMax(-1) },
	}
}

// requireSame evaluates both arrays and compares them.
func requireSame(t *testing.T, want, got *mlxc.Array, text string) {
	t.Helper()
	require.Equal(t, want.Shape(), got.Shape(), text)
	require.Equal(t, want.DType(), got.DType(), text)
	require.InDeltaSlice(t, floats(t, want.AsType(mlxc.Float32)), floats(t, got.AsType(mlxc.Float32)), 1e-4, text)
}

// requireSameForRows calls a shapeless form of f with different numbers of rows, and compares the results with those of f.
func requireSameForRows(t *testing.T, name string, f operation, call func(...*mlxc.Array) ([]*mlxc.Array, error)) {
	t.Helper()
	for _, n := range []int{2, 4, 1, 400, 2} {
		a := rows(n)
		out, err := call(a)
		require.NoError(t, err, "%s of %d rows", name, n)
		requireSame(t, f(a), out[0], name)
	}
}

// The result of a shapeless function for other shapes is that of the function, or the call returns an error.
func TestCompileShapelessForOtherShapes(t *testing.T) {
	for name, f := range dependent() {
		for _, sizes := range [][]int{{2, 4, 2, 40000}, {0, 4}, {4, 1, 0}} {
			c := mlxc.CompileShapeless(single(f))
			for _, n := range sizes {
				if n == 40000 && name == "CausalAttention" || n == 40000 && name == "Attention" {
					n = 400
				}
				a := rows(n)
				if out, err := c.Call(a); err == nil {
					requireSame(t, f(a), out[0], name)
				}
			}
			c.Close()
		}
	}
	for name, f := range independent() {
		c := mlxc.CompileShapeless(single(f))
		requireSameForRows(t, name, f, c.Call)
		c.Close()
	}
}

// The error names the operation, and shapes that were accepted stay usable.
func TestCompileShapelessNamesTheOperation(t *testing.T) {
	c := mlxc.CompileShapeless(single(dependent()["Pad"]))
	defer c.Close()
	for range 2 {
		out, err := c.Call(rows(2))
		require.NoError(t, err)
		require.Equal(t, []int{3, 3}, out[0].Shape())
		_, err = c.Call(rows(4))
		require.ErrorContains(t, err, "] the graph of the function depends on the shapes of its arguments (use Compile)")
	}
}

// The same holds for exported functions.
func TestExportShapelessForOtherShapes(t *testing.T) {
	dir := t.TempDir()
	for name, f := range dependent() {
		for _, sizes := range [][]int{{2, 4, 400}, {0, 4}, {4, 1, 0}, {1, 8}} {
			file := filepath.Join(dir, "dependent.mlxfn")
			if mlxc.ExportShapeless(file, single(f), rows(sizes[0])) != nil {
				continue
			}
			g, err := mlxc.Import(file)
			require.NoError(t, err)
			for _, n := range sizes {
				a := rows(n)
				if out, err := g.Call(a); err == nil {
					requireSame(t, f(a), out[0], name)
				}
			}
			g.Close()
		}
	}
	for name, f := range independent() {
		file := filepath.Join(dir, "independent.mlxfn")
		require.NoError(t, mlxc.ExportShapeless(file, single(f), rows(2)), name)
		g, err := mlxc.Import(file)
		require.NoError(t, err)
		requireSameForRows(t, name, f, g.Call)
		g.Close()
	}
}

// Sizes that the function does not accept are an error, as are empty operands that MLX cannot reduce.
func TestImportedShapelessChecksOperands(t *testing.T) {
	f := imported(t, func(file string) error { return mlxc.ExportShapeless(file, single(independent()["MatMul"]), rows(2)) })
	for _, a := range []*mlxc.Array{mlxc.Ones(mlxc.Float32, 2, 4), mlxc.Ones(mlxc.Float32, 0, 3)} {
		_, err := f.Call(a)
		require.ErrorContains(t, err, "[Matmul] the operation, or the shapes of its operands, are not supported")
	}
	file := filepath.Join(t.TempDir(), "f.mlxfn")
	require.ErrorContains(t, mlxc.ExportShapeless(file, single(func(a *mlxc.Array) *mlxc.Array {
		return a.Sum(0).MulScalar(a.Dim(0))
	}), rows(2)), "[constant] the graph of the function depends on the shapes of its arguments")
}

package mlxc_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func names(nodes []mlxc.Node) []string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.Primitive)
	}
	return list
}

func TestTraceSeesTheGraph(t *testing.T) {
	nodes, err := mlxc.Trace(func(a arrays) arrays { return arrays{a[0].Exp().Add(a[1])} },
		arrays{mlxc.Ones(mlxc.Float32, 3), mlxc.Ones(mlxc.Float32, 3)})
	require.NoError(t, err)
	require.Equal(t, []string{"Exp", "Add"}, names(nodes))
}

// A function with a custom gradient, and the gradient itself, are exported as their computations.
func TestExportOfACustomGradient(t *testing.T) {
	f := mlxc.CustomVJP(
		func(a arrays) arrays { return arrays{a[0].Sin()} },
		func(p, c, _ arrays) arrays { return arrays{p[0].Tanh().Mul(c[0])} })
	both := func(a arrays) arrays {
		y, g, err := mlxc.VJP(func(a arrays) arrays { return f(arrays{f(a)[0].Exp()}) }, a, a)
		if err != nil {
			return arrays{mlxc.InvalidArray(err)}
		}
		return append(y, g...)
	}
	x := mlxc.Ones(mlxc.Float32, 3)
	nodes, err := mlxc.Trace(both, arrays{x})
	require.NoError(t, err)
	require.NotContains(t, names(nodes), "CustomTransforms")
	require.Contains(t, names(nodes), "Sin")
	require.Contains(t, names(nodes), "Tanh")

	file := filepath.Join(t.TempDir(), "f.mlxfn")
	require.NoError(t, mlxc.Export(file, both, x))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Positive(t, info.Size())
}

func TestExportThatFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f.mlxfn")
	x := mlxc.Ones(mlxc.Float32, 3)
	require.ErrorContains(t, mlxc.Export(file, func(arrays) arrays { panic("boom") }, x), "boom")
	require.ErrorContains(t, mlxc.Export(file, nil, x), "nil")
	require.Error(t, mlxc.Export(filepath.Join(dir, "absent", "f.mlxfn"), func(a arrays) arrays { return a }, x))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries, "no file is left")
}

// Functions whose results have their own memory are exported.
func TestExportOfCopies(t *testing.T) {
	x := rows(2)
	for name, f := range map[string]operation{
		"Full":       func(a *mlxc.Array) *mlxc.Array { return mlxc.Full(mlxc.Float32, a.Sum(), 2, 4) },
		"FullLike":   func(a *mlxc.Array) *mlxc.Array { return mlxc.FullLike(a, a.Index(mlxc.At(0))) },
		"Pad":        func(a *mlxc.Array) *mlxc.Array { return a.Pad(a.Sum(), mlxc.Padding{Axis: 0, After: 1}) },
		"AsStrided":  func(a *mlxc.Array) *mlxc.Array { return a.Transpose().AsStrided([]int{2, 2}, []int{1, 2}, 1) },
		"Contiguous": func(a *mlxc.Array) *mlxc.Array { return a.BroadcastTo(2, 2, 3).Contiguous() },
	} {
		g := imported(t, func(file string) error { return mlxc.Export(file, single(f), x) })
		requireSame(t, f(x), call(t, g, x), name)
		gradient := func(f mlxc.Func) *mlxc.Array {
			_, grads, err := mlxc.VJP(f, arrays{x}, arrays{f(arrays{x})[0].Sin()})
			require.NoError(t, err)
			return grads[0]
		}
		requireSame(t, gradient(single(f)), gradient(func(a arrays) arrays { return arrays{call(t, g, a...)} }), name)
	}
}

// The advice about kernels is for kernels only.
func TestExportOfOperationsWithoutAFormat(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.mlxfn")
	err := mlxc.Export(file, single((*mlxc.Array).ToFP8), mlxc.Ones(mlxc.Float32, 3))
	require.ErrorContains(t, err, "Unable to serialize primitive ToFP8")
	require.NotContains(t, err.Error(), "kernel")
}

// Earlier nodes stay unchanged.
func TestTraceLeavesCapturedGraphsAlone(t *testing.T) {
	custom := mlxc.CustomVJP(func(a arrays) arrays { return arrays{a[0].Square()} },
		func(p, c, _ arrays) arrays { return arrays{c[0].MulScalar(100)} })
	x := mlxc.FromSlice([]float32{1, 2, 3})
	_, grads, err := mlxc.VJP(func(a arrays) arrays {
		z := custom(a)[0].MulScalar(1)
		_, err := mlxc.Trace(func(b arrays) arrays { return arrays{z.Add(b[0])} }, arrays{x})
		_ = err // MLX may refuse a captured tracer
		return arrays{z}
	}, arrays{x}, arrays{mlxc.Ones(mlxc.Float32, 3)})
	require.NoError(t, err)
	require.Equal(t, []float32{100, 100, 100}, floats(t, grads[0]))
}

func TestReadingInsideThePlaceholder(t *testing.T) {
	mlxc.WithPlaceholderGPU(func() {
		require.Equal(t, []float32{1}, floats(t, mlxc.FromSlice([]float32{1})))
	})
}

// Captured arrays are written element by element, whatever their memory layout.
func TestExportOfStridedConstants(t *testing.T) {
	for name, constant := range map[string]*mlxc.Array{
		"step":       counting(4, 6).Index(mlxc.All, mlxc.All.Step(2)),
		"reversed":   counting(4, 3).Index(mlxc.All.Step(-1)),
		"transposed": counting(3, 4).Transpose(),
		"middle":     counting(6, 3).Index(mlxc.Range(1, 5)),
		"broadcast":  counting(3).BroadcastTo(4, 3),
		"lazy":       counting(3, 4).Transpose().AddScalar(1),
	} {
		require.NoError(t, mlxc.Eval(constant))
		x := mlxc.Ones(mlxc.Float32, 4, 3)
		f := func(p arrays) arrays { return arrays{p[0].Add(constant)} }
		path := filepath.Join(t.TempDir(), "f.mlxfn")
		require.NoError(t, mlxc.Export(path, f, x), name)
		imported, err := mlxc.Import(path)
		require.NoError(t, err, name)
		got, err := imported.Call(x)
		require.NoError(t, err, name)
		require.Equal(t, floats(t, f(arrays{x})[0]), floats(t, got[0]), name)
	}
}

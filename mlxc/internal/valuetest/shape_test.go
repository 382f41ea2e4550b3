package valuetest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// requireArray requires got to have the shape and the row-major elements of want.
func requireArray(t *testing.T, shape []int, want []float64, got *mlxc.Array) {
	t.Helper()
	require.NoError(t, got.Err())
	require.Equal(t, shape, got.Shape())
	require.Equal(t, want, append([]float64{}, wide(t, got)...))
}

// inEveryDType runs f on the array 0, 1, … of shape (rows, columns), column-major in memory, in every dtype but bool.
func inEveryDType(t *testing.T, rows, columns int, f func(t *testing.T, d mlxc.DType, a *mlxc.Array)) {
	for _, d := range mlxc.DTypes() {
		if d == mlxc.Bool {
			continue
		}
		f(t, d, counting(rows, columns).Transpose().Contiguous().Transpose().AsType(d))
	}
}

func init() {
	type f = func(t *testing.T, d mlxc.DType, a *mlxc.Array)
	// Functions that move or create elements without arithmetic on them. a has the rows 0 1 2 and 3 4 5.
	for name, check := range map[string]f{
		"mlx_reshape": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{3, 2}, []float64{0, 1, 2, 3, 4, 5}, a.Reshape(3, -1))
			requireArray(t, []int{1, 6, 1}, []float64{0, 1, 2, 3, 4, 5}, a.Reshape(1, 6, 1))
			requireArray(t, []int{0, 7}, []float64{}, mlxc.Zeros(mlxc.Float32, 0).Reshape(0, 7))
		},
		"mlx_flatten": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{6}, []float64{0, 1, 2, 3, 4, 5}, a.Flatten(0, -1))
			requireArray(t, []int{1, 6}, []float64{0, 1, 2, 3, 4, 5}, a.ExpandDims(0).Flatten(1, 2))
			requireArray(t, []int{1}, []float64{7}, mlxc.Scalar[float32](7).Flatten(0, 0))
		},
		"mlx_unflatten": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2, 3, 1}, []float64{0, 1, 2, 3, 4, 5}, a.Unflatten(1, 3, 1))
			requireArray(t, []int{1, 2, 3}, []float64{0, 1, 2, 3, 4, 5}, a.Unflatten(-2, -1, 2))
		},
		"mlx_transpose_axes": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{3, 2}, []float64{0, 3, 1, 4, 2, 5}, a.Transpose())
			requireArray(t, []int{3, 1, 2}, []float64{0, 3, 1, 4, 2, 5}, a.ExpandDims(0).Transpose(-1, 0, 1))
		},
		"mlx_swapaxes": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{3, 2, 1}, []float64{0, 3, 1, 4, 2, 5}, a.ExpandDims(0).SwapAxes(0, -1))
		},
		"mlx_moveaxis": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{3, 1, 2}, []float64{0, 3, 1, 4, 2, 5}, a.ExpandDims(0).MoveAxis(-1, 0))
			requireArray(t, []int{2, 3, 1}, []float64{0, 1, 2, 3, 4, 5}, a.ExpandDims(0).MoveAxis(0, 2))
		},
		"mlx_expand_dims_axes": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{1, 2, 1, 3}, []float64{0, 1, 2, 3, 4, 5}, a.ExpandDims(0, -2))
		},
		"mlx_squeeze_axes": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			b := a.Reshape(1, 2, 1, 3)
			requireArray(t, []int{2, 3}, []float64{0, 1, 2, 3, 4, 5}, b.Squeeze())
			requireArray(t, []int{1, 2, 3}, []float64{0, 1, 2, 3, 4, 5}, b.Squeeze(-2))
		},
		"mlx_broadcast_to": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2, 2, 3}, []float64{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}, a.BroadcastTo(2, 2, 3))
			requireArray(t, []int{2, 3, 2}, []float64{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5},
				a.ExpandDims(2).BroadcastTo(2, 3, 2))
		},
		"mlx_broadcast_arrays": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			b := mlxc.BroadcastArrays(a.Index(mlxc.At(0)), a.Index(mlxc.All, mlxc.Range(1, 2)), mlxc.Scalar(true))
			require.Len(t, b, 3)
			requireArray(t, []int{2, 3}, []float64{0, 1, 2, 0, 1, 2}, b[0])
			requireArray(t, []int{2, 3}, []float64{1, 1, 1, 4, 4, 4}, b[1])
			requireArray(t, []int{2, 3}, []float64{1, 1, 1, 1, 1, 1}, b[2])
			require.Equal(t, mlxc.Bool, b[2].DType())
		},
		"mlx_atleast_1d": func(t *testing.T, d mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{1}, []float64{7}, mlxc.Scalar[int8](7).AsType(d).AtLeast1D())
			requireArray(t, []int{2, 3}, []float64{0, 1, 2, 3, 4, 5}, a.AtLeast1D())
		},
		"mlx_atleast_2d": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{1, 6}, []float64{0, 1, 2, 3, 4, 5}, a.Reshape(6).AtLeast2D())
			requireArray(t, []int{1, 1}, []float64{5}, a.Index(mlxc.At(1), mlxc.At(2)).AtLeast2D())
		},
		"mlx_atleast_3d": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2, 3, 1}, []float64{0, 1, 2, 3, 4, 5}, a.AtLeast3D())
			requireArray(t, []int{1, 6, 1}, []float64{0, 1, 2, 3, 4, 5}, a.Reshape(6).AtLeast3D())
		},
		"mlx_flip_axes": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2, 3}, []float64{5, 4, 3, 2, 1, 0}, a.Flip())
			requireArray(t, []int{2, 3}, []float64{2, 1, 0, 5, 4, 3}, a.Flip(-1))
			requireArray(t, []int{2, 3}, []float64{3, 4, 5, 0, 1, 2}, a.Flip(0))
		},
		"mlx_roll_axes": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2, 3}, []float64{5, 0, 1, 2, 3, 4}, a.Roll(1))
			requireArray(t, []int{2, 3}, []float64{2, 3, 4, 5, 0, 1}, a.Roll(-8))
			requireArray(t, []int{2, 3}, []float64{2, 0, 1, 5, 3, 4}, a.Roll(1, 1))
			requireArray(t, []int{2, 3}, []float64{4, 5, 3, 1, 2, 0}, a.Roll(5, 0, -1))
			requireArray(t, []int{0, 2}, []float64{}, mlxc.Zeros(mlxc.Float32, 0, 2).Roll(3, 0))
			requireArray(t, []int{}, []float64{2}, mlxc.Scalar[float32](2).Roll(3))
		},
		"mlx_tile": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2, 6}, []float64{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}, a.Tile(2))
			requireArray(t, []int{2, 2, 3}, []float64{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}, a.Tile(2, 1, 1))
		},
		"mlx_repeat_axis": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2, 6}, []float64{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}, a.Repeat(2, 1))
			requireArray(t, []int{4, 3}, []float64{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}, a.Repeat(2, -2))
		},
		"mlx_as_strided": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{4, 3}, []float64{0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4, 5},
				a.AsStrided([]int{4, 3}, []int{1, 1}, 0))
			requireArray(t, []int{3, 2}, []float64{5, 3, 4, 2, 3, 1}, a.AsStrided([]int{3, 2}, []int{-1, -2}, 5))
			requireArray(t, []int{2, 2}, []float64{1, 1, 1, 1}, a.AsStrided([]int{2, 2}, []int{0, 0}, 1))
			requireArray(t, []int{}, []float64{4}, a.AsStrided(nil, nil, 4))
			requireArray(t, []int{0, 9}, []float64{}, a.AsStrided([]int{0, 9}, []int{5, 5}, 6))
			broadcast := a.Slice([]int{0, 1}, []int{1, 2}, []int{1, 1}).BroadcastTo(4, 4)
			require.NoError(t, mlxc.Eval(broadcast))
			requireArray(t, []int{2, 2}, []float64{1, 1, 1, 1}, broadcast.AsStrided([]int{2, 2}, []int{4, 1}, 3))
		},
		"Pad": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			p := func(axis, before, after int) mlxc.Padding {
				return mlxc.Padding{Axis: axis, Before: before, After: after}
			}
			requireArray(t, []int{2, 6}, []float64{0, 0, 1, 2, 0, 0, 0, 3, 4, 5, 0, 0}, a.Pad(nil, p(-1, 1, 2)))
			requireArray(t, []int{3, 4}, []float64{9, 9, 9, 9, 0, 1, 2, 9, 3, 4, 5, 9},
				a.Pad(mlxc.Scalar[int8](9), p(0, 1, 0), p(1, 0, 1)))
			requireArray(t, []int{2, 3}, []float64{0, 1, 2, 3, 4, 5}, a.Pad(nil))
			requireArray(t, []int{2, 6}, []float64{0, 0, 1, 2, 2, 2, 3, 3, 4, 5, 5, 5}, a.PadEdge(p(1, 1, 2)))
			requireArray(t, []int{4, 3}, []float64{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5},
				a.PadEdge(p(0, 1, 0), p(0, 0, 1)))
			requireArray(t, []int{2, 7}, []float64{2, 1, 0, 1, 2, 1, 0, 5, 4, 3, 4, 5, 4, 3}, a.PadReflect(p(1, 2, 2)))
			requireArray(t, []int{2, 7}, []float64{1, 0, 0, 1, 2, 2, 1, 4, 3, 3, 4, 5, 5, 4},
				a.PadSymmetric(p(1, 2, 2)))
			requireArray(t, []int{2, 2}, []float64{3, 3, 3, 3},
				mlxc.Zeros(mlxc.Float32, 0, 2).Pad(mlxc.Scalar[float32](3), p(0, 1, 1)))
		},
		"mlx_concatenate_axis": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{3, 3}, []float64{0, 1, 2, 3, 4, 5, 3, 4, 5},
				mlxc.Concatenate(0, a, a.Index(mlxc.Range(1, 2))))
			requireArray(t, []int{2, 4}, []float64{0, 1, 2, 2, 3, 4, 5, 5},
				mlxc.Concatenate(-1, a, a.Index(mlxc.All, mlxc.Range(2, 3))))
			requireArray(t, []int{2, 3}, []float64{0, 1, 2, 3, 4, 5},
				mlxc.Concatenate(1, a, mlxc.Zeros(a.DType(), 2, 0)))
		},
		"mlx_stack_axis": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2, 2, 3}, []float64{0, 1, 2, 2, 1, 0, 3, 4, 5, 5, 4, 3}, mlxc.Stack(1, a, a.Flip(1)))
			requireArray(t, []int{2, 3, 2}, []float64{0, 2, 1, 1, 2, 0, 3, 5, 4, 4, 5, 3}, mlxc.Stack(-1, a, a.Flip(1)))
		},
		"mlx_unstack_axis": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			columns := a.Unstack(-1)
			require.Len(t, columns, 3)
			for i, c := range columns {
				requireArray(t, []int{2}, []float64{float64(i), float64(i + 3)}, c)
			}
			require.Empty(t, mlxc.Zeros(mlxc.Float32, 0, 2).Unstack(0))
		},
		"mlx_split": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			parts := a.Split(3, -1)
			require.Len(t, parts, 3)
			requireArray(t, []int{2, 1}, []float64{1, 4}, parts[1])
		},
		"mlx_split_sections": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			parts := a.SplitAt(1, 1)
			require.Len(t, parts, 2)
			requireArray(t, []int{2, 1}, []float64{0, 3}, parts[0])
			requireArray(t, []int{2, 2}, []float64{1, 2, 4, 5}, parts[1])
		},
		"mlx_slice": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{1, 2}, []float64{5, 3}, a.Slice([]int{1, 2}, []int{2, -4}, []int{1, -2}))
			requireArray(t, []int{2, 1}, []float64{0, 3}, a.Slice([]int{0, 0}, []int{2, 3}, []int{1, math.MaxInt32}))
			requireArray(t, []int{2, 1}, []float64{2, 5}, a.Slice([]int{0, -1}, []int{2, -4}, []int{1, math.MinInt}))
		},
		"mlx_tril": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2, 3}, []float64{0, 0, 0, 3, 4, 0}, a.Tril(0))
			requireArray(t, []int{2, 3}, []float64{0, 1, 0, 3, 4, 5}, a.Tril(1))
		},
		"mlx_triu": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2, 3}, []float64{0, 1, 2, 0, 4, 5}, a.Triu(0))
			requireArray(t, []int{2, 3}, []float64{0, 0, 2, 0, 0, 0}, a.Triu(2))
		},
		"mlx_diagonal": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2}, []float64{0, 4}, a.Diagonal(0, 0, 1))
			requireArray(t, []int{2}, []float64{1, 5}, a.Diagonal(1, -2, -1))
			requireArray(t, []int{2}, []float64{1, 5}, a.Diagonal(-1, 1, 0))
			requireArray(t, []int{0}, []float64{}, a.Diagonal(math.MinInt, 0, 1))
			b := mlxc.Stack(1, a, a.Flip(1)) // two matrices in axes 0 and 2
			requireArray(t, []int{2, 2}, []float64{0, 4, 2, 4}, b.Diagonal(0, 0, 2))
		},
		"mlx_trace_axes": func(t *testing.T, d mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{}, []float64{4}, a.Trace(0, 0, 1))
			requireArray(t, []int{}, []float64{6}, a.Trace(1, 0, 1))
			requireArray(t, []int{2}, []float64{4, 6}, mlxc.Stack(1, a, a.Flip(1)).Trace(0, 2, 0))
			requireArray(t, []int{}, []float64{0}, a.Trace(math.MaxInt, 0, 1))
		},
		"mlx_diag": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2}, []float64{1, 5}, a.Diag(1))
			requireArray(t, []int{3, 3}, []float64{0, 3, 0, 0, 0, 4, 0, 0, 0},
				a.Index(mlxc.At(1), mlxc.Range(0, 2)).Diag(1))
			requireArray(t, []int{2, 2}, []float64{3, 0, 0, 4}, a.Index(mlxc.At(1), mlxc.Range(0, 2)).Diag(0))
			requireArray(t, []int{2, 2}, []float64{0, 0, 0, 0}, mlxc.Zeros(mlxc.Float32, 0).Diag(-2))
		},
		"mlx_zeros_like_dtype": func(t *testing.T, d mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2, 3}, []float64{0, 0, 0, 0, 0, 0}, mlxc.ZerosLike(a))
			require.Equal(t, d, mlxc.ZerosLike(a).DType())
		},
		"mlx_ones_like_dtype": func(t *testing.T, d mlxc.DType, a *mlxc.Array) {
			requireArray(t, []int{2, 3}, []float64{1, 1, 1, 1, 1, 1}, mlxc.OnesLike(a))
			require.Equal(t, d, mlxc.OnesLike(a).DType())
		},
		"mlx_zeros": func(t *testing.T, d mlxc.DType, _ *mlxc.Array) {
			requireArray(t, []int{2, 1}, []float64{0, 0}, mlxc.Zeros(d, 2, 1))
			require.Equal(t, d, mlxc.Zeros(d).DType())
		},
		"mlx_ones": func(t *testing.T, d mlxc.DType, _ *mlxc.Array) {
			requireArray(t, []int{2, 1}, []float64{1, 1}, mlxc.Ones(d, 2, 1))
			require.Equal(t, d, mlxc.Ones(d).DType())
		},
		"mlx_arange": func(t *testing.T, d mlxc.DType, _ *mlxc.Array) {
			if d == mlxc.Complex64 { // MLX has no kernel for it
				return
			}
			requireArray(t, []int{3}, []float64{1, 4, 7}, mlxc.Arange(d, 1, 10, 3))
			requireArray(t, []int{0}, []float64{}, mlxc.Arange(d, 1, 1, 3))
			if d.IsFloating() {
				requireArray(t, []int{4}, []float64{1, 0.5, 0, -0.5}, mlxc.Arange(d, 1, -1, -0.5))
			}
		},
		"mlx_linspace_endpoint": func(t *testing.T, d mlxc.DType, _ *mlxc.Array) {
			requireArray(t, []int{5}, []float64{1, 3, 5, 7, 9}, mlxc.Linspace(d, 1, 9, 5))
			requireArray(t, []int{4}, []float64{1, 3, 5, 7}, mlxc.LinspaceOpen(d, 1, 9, 4))
			requireArray(t, []int{1}, []float64{2}, mlxc.Linspace(d, 2, 9, 1))
			requireArray(t, []int{0}, []float64{}, mlxc.Linspace(d, 2, 9, 0))
		},
		"mlx_eye": func(t *testing.T, d mlxc.DType, _ *mlxc.Array) {
			requireArray(t, []int{2, 3}, []float64{1, 0, 0, 0, 1, 0}, mlxc.Eye(d, 2, 3, 0))
			requireArray(t, []int{2, 3}, []float64{0, 0, 1, 0, 0, 0}, mlxc.Eye(d, 2, 3, 2))
			requireArray(t, []int{3, 2}, []float64{0, 0, 1, 0, 0, 1}, mlxc.Eye(d, 3, 2, -1))
			requireArray(t, []int{2, 2}, []float64{0, 0, 0, 0}, mlxc.Eye(d, 2, 2, math.MinInt))
			require.Equal(t, d, mlxc.Eye(d, 0, 4, 0).DType())
		},
		"mlx_tri": func(t *testing.T, d mlxc.DType, _ *mlxc.Array) {
			requireArray(t, []int{2, 3}, []float64{1, 0, 0, 1, 1, 0}, mlxc.Tri(d, 2, 3, 0))
			requireArray(t, []int{2, 3}, []float64{1, 1, 0, 1, 1, 1}, mlxc.Tri(d, 2, 3, 1))
			requireArray(t, []int{2, 2}, []float64{1, 1, 1, 1}, mlxc.Tri(d, 2, 2, math.MaxInt))
			require.Equal(t, d, mlxc.Tri(d, 1, 1, 0).DType())
		},
		"mlx_meshgrid": func(t *testing.T, _ mlxc.DType, a *mlxc.Array) {
			x, y := a.Index(mlxc.At(0)), a.Index(mlxc.All, mlxc.At(2)) // 0 1 2 and 2 5
			g := mlxc.Meshgrid(mlxc.MeshgridConfig{}, x, y)
			require.Len(t, g, 2)
			requireArray(t, []int{2, 3}, []float64{0, 1, 2, 0, 1, 2}, g[0])
			requireArray(t, []int{2, 3}, []float64{2, 2, 2, 5, 5, 5}, g[1])
			g = mlxc.Meshgrid(mlxc.MeshgridConfig{MatrixIndexing: true}, x, y)
			requireArray(t, []int{3, 2}, []float64{0, 0, 1, 1, 2, 2}, g[0])
			requireArray(t, []int{3, 2}, []float64{2, 5, 2, 5, 2, 5}, g[1])
			g = mlxc.Meshgrid(mlxc.MeshgridConfig{Sparse: true}, x, y)
			requireArray(t, []int{1, 3}, []float64{0, 1, 2}, g[0])
			requireArray(t, []int{2, 1}, []float64{2, 5}, g[1])
			g = mlxc.Meshgrid(mlxc.MeshgridConfig{}, x)
			requireArray(t, []int{3}, []float64{0, 1, 2}, g[0])
			require.Empty(t, mlxc.Meshgrid(mlxc.MeshgridConfig{}))
		},
	} {
		value(name, func(t *testing.T) { inEveryDType(t, 2, 3, check) })
	}
}

func TestFull(t *testing.T) {
	testdevice.CPUOnly(t, "compares with float64 in Go, with tolerances for MLX's CPU backend")
	inEveryDType(t, 2, 3, func(t *testing.T, d mlxc.DType, a *mlxc.Array) {
		requireArray(t, []int{2, 2}, []float64{5, 6, 5, 6}, mlxc.Full(d, mlxc.FromSlice([]float32{5, 6}), 2, 2))
		require.Equal(t, d, mlxc.Full(d, mlxc.Scalar(true)).DType())
		requireArray(t, []int{2, 3}, []float64{7, 8, 9, 7, 8, 9}, mlxc.FullLike(a, mlxc.FromSlice([]int32{7, 8, 9})))
		require.Equal(t, d, mlxc.FullLike(a, mlxc.Scalar[int8](2)).DType())
	})
}

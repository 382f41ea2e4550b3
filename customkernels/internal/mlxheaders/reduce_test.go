package mlxheaders

import (
	"strings"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// mlxReductions returns the cases of reductions over rows, columns and all elements. MLX selects a kernel by the shape.
// Here each kernel is launched with the grid and arguments that MLX would use for it.
func (c *corpus) mlxReductions() []headerCase {
	utils := []string{"reduce_utils.h"}
	in := func(file string) string { return "reduction/" + file }
	return []headerCase{
		{in("reduce_all.h"), utils, "all_reduce", "{T}, {T}, Sum<{T}>, int64_t, 4", mlxtest.FloatDTypes, nil, c.reduceAll},
		{in("reduce_row.h"), utils, "row_reduce_simple", "{T}, {T}, Sum<{T}>, int64_t, 4, 4", mlxtest.FloatDTypes, nil, c.reduceRowSimple},
		{in("reduce_row.h"), utils, "row_reduce_looped", "{T}, {T}, Max<{T}>, int64_t, 1, 4", mlxtest.FloatDTypes, nil, c.reduceRowLooped},
		{in("reduce_row.h"), utils, "row_reduce_small", "{T}, {T}, Min<{T}>, int64_t, 1, 4", onlyFloat32, nil, c.reduceRowSmall},
		{in("reduce_col.h"), utils, "col_reduce_small", "{T}, {T}, Sum<{T}>, int64_t, 1", onlyFloat32, nil, c.reduceColumnSmall},
		{in("reduce_col.h"), utils, "col_reduce_looped", "{T}, {T}, Sum<{T}>, int64_t, 1, 32, 32", mlxtest.FloatDTypes, nil, c.reduceColumnLooped},
		{in("reduce_init.h"), utils, "init_reduce", "{T}, Prod<{T}>", onlyFloat32, nil, c.reduceInit},
	}
}

func (c *corpus) reduceAll(d mlxc.DType) headerLaunch {
	const size, threads = 555, 96
	x, _ := c.Integers(d, 4, size)
	return headerLaunch{
		grid: [3]int{threads, 1, 1}, threadgroup: [3]int{threads, 1, 1},
		arguments: []any{x, result{dtype: d, shape: []int{1}}, uint64(size), uint64(size)},
		// Partial sums of few small numbers are exact. Only the additions of the partial sums round.
		check: near(d, 8, 2*size, x.AsType(mlxc.Float32).Sum()),
	}
}

// near returns a check of the first result against want. The tolerance is the given number of roundings of values up to
// size to the dtype, in which these kernels accumulate.
func near(d mlxc.DType, roundings int, size float64, want *mlxc.Array) func(testing.TB, arrays) {
	return func(t testing.TB, got arrays) {
		t.Helper()
		mlxtest.RequireNear(t, mlxtest.Values(t, want), got[0], mlxtest.Bound{Absolute: float64(roundings) * mlxtest.Roundoff(d) * size, Relative: mlxtest.Roundoff(d)})
	}
}

func (c *corpus) reduceRowSimple(d mlxc.DType) headerLaunch {
	const rows, width, threads = 7, 301, 64
	x, _ := c.Integers(d, 3, rows, width)
	return headerLaunch{
		grid: [3]int{threads, (rows + 3) / 4, 1}, threadgroup: [3]int{threads, 1, 1},
		arguments: []any{x, result{dtype: d, shape: []int{rows}}, uint64(width), int64(rows)},
		check:     near(d, 8, 400, x.AsType(mlxc.Float32).Sum(1)),
	}
}

func (c *corpus) reduceRowLooped(d mlxc.DType) headerLaunch {
	const rows, width, threads = 3, 1003, 64
	x, _ := c.Normal(d, rows, width)
	return headerLaunch{
		grid: [3]int{threads, rows, 1}, threadgroup: [3]int{threads, 1, 1},
		arguments: []any{
			x,
			result{dtype: d, shape: []int{rows}},
			int64(width), int64(1),
			[]int32{rows},
			[]int64{width},
			int32(1),
			[]int32{1},
			[]int64{0},
			int32(1),
		},
		check: near(d, 0, 0, x.AsType(mlxc.Float32).Max(1)),
	}
}

func (c *corpus) reduceRowSmall(d mlxc.DType) headerLaunch {
	const rows, width = 45, 7
	x, _ := c.Normal(d, rows, width)
	return headerLaunch{
		grid: [3]int{rows, 1, 1}, threadgroup: [3]int{32, 1, 1},
		arguments: []any{
			x,
			result{dtype: d, shape: []int{rows}},
			int64(width), int64(1),
			[]int32{rows},
			[]int64{width},
			int32(1),
			[]int32{1},
			[]int64{0},
			int32(1),
		},
		check: near(d, 0, 0, x.AsType(mlxc.Float32).Min(1)),
	}
}

// columnArguments returns the arguments of both column reductions for an array of two axes.
func columnArguments(x *mlxc.Array, rows, columns int, d mlxc.DType) []any {
	return []any{
		x,
		result{dtype: d, shape: []int{columns}},
		uint64(rows), int64(columns),
		[]int32{1},
		[]int64{0},
		int32(0),
		[]int32{int32(rows)},
		[]int64{int64(columns)},
		int32(1), uint64(1),
	}
}

func (c *corpus) reduceColumnSmall(d mlxc.DType) headerLaunch {
	const rows, columns = 5, 70
	x, _ := c.Integers(d, 9, rows, columns)
	threads := roundUp(columns, 4) / 4
	return headerLaunch{
		grid: [3]int{roundUp(threads, 8), 1, 1}, threadgroup: [3]int{8, 1, 1},
		arguments: columnArguments(x, rows, columns, d),
		check:     near(d, 0, 0, x.Sum(0)),
	}
}

func (c *corpus) reduceColumnLooped(d mlxc.DType) headerLaunch {
	const rows, columns = 301, 70
	x, _ := c.Integers(d, 3, rows, columns)
	return headerLaunch{
		grid: [3]int{256 * ((columns + 31) / 32), 1, 1}, threadgroup: [3]int{256, 1, 1},
		arguments: columnArguments(x, rows, columns, d),
		check:     near(d, 8, 400, x.AsType(mlxc.Float32).Sum(0)),
	}
}

func (c *corpus) reduceInit(d mlxc.DType) headerLaunch {
	return headerLaunch{
		grid: [3]int{45, 1, 1}, threadgroup: [3]int{32, 1, 1},
		arguments: []any{result{dtype: d, shape: []int{45}}},
		check:     near(d, 0, 0, mlxc.Ones(d, 45)),
	}
}

// withType replaces {T} in template arguments by Metal's name of the dtype.
func withType(arguments string, d mlxc.DType) string {
	return strings.ReplaceAll(arguments, "{T}", metalType(d))
}

package mlxc_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestComparisons(t *testing.T) {
	values := []float32{-1, 0, 2, float32(math.NaN()), float32(math.Inf(1))}
	column, row := mlxc.FromSlice(values, 5, 1), mlxc.FromSlice(values)
	for _, c := range []struct {
		name string
		got  *mlxc.Array
		want func(a, b float32) bool
	}{
		{"equal", column.Equal(row), func(a, b float32) bool { return a == b }},
		{"not_equal", column.NotEqual(row), func(a, b float32) bool { return a != b }},
		{"greater", column.Greater(row), func(a, b float32) bool { return a > b }},
		{"greater_equal", column.GreaterEqual(row), func(a, b float32) bool { return a >= b }},
		{"less", column.Less(row), func(a, b float32) bool { return a < b }},
		{"less_equal", column.LessEqual(row), func(a, b float32) bool { return a <= b }},
		{"logical_and", column.LogicalAnd(row), func(a, b float32) bool { return a != 0 && b != 0 }},
		{"logical_or", column.LogicalOr(row), func(a, b float32) bool { return a != 0 || b != 0 }},
		{"logical_not", column.LogicalNot().BroadcastTo(5, 5), func(a, _ float32) bool { return a == 0 }},
		{"isnan", column.IsNaN().BroadcastTo(5, 5), func(a, _ float32) bool { return a != a }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want []bool
			for _, a := range values {
				for _, b := range values {
					want = append(want, c.want(a, b))
				}
			}
			require.Equal(t, want, read[bool](t, c.got))
		})
	}
}

package compare

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/internal/accuracy"
	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// mistake is a kind of wrong result. It changes the elements of a draw in place.
type mistake struct {
	name  string
	apply func(v []float64, t target)
}

// mistakes returns wrong results of faulty kernels: a wrong factor, a wrong order, a missing part.
func mistakes() []mistake {
	each := func(f func(v float64) float64) func([]float64, target) {
		return func(values []float64, _ target) {
			for i, v := range values {
				values[i] = f(v)
			}
		}
	}
	return []mistake{
		{"a factor", func(v []float64, t target) {
			// In bfloat16 one percent is about a spacing, and less than MLX's error in some cases.
			factor := 1.01
			if t.dtype == mlxc.BFloat16 {
				factor = 1.03
			}
			for i := range v {
				v[i] *= factor
			}
		}},
		{"times -1", each(func(v float64) float64 { return -v })},
		{"zeros", each(func(float64) float64 { return 0 })},
		{"one NaN", func(v []float64, _ target) { v[len(v)/2] = math.NaN() }},
		{"one infinity", func(v []float64, _ target) { v[len(v)/2] = math.Inf(1) }},
		{"last axes exchanged", func(v []float64, t target) {
			if n := len(t.shape); n >= 2 {
				transposed(v, t.shape[n-2], t.shape[n-1])
			}
		}},
		{"backwards", func(v []float64, _ target) { slices.Reverse(v) }},
		{"a row of zeros", func(v []float64, t target) {
			width := t.width()
			from := len(v) / width / 2 * width
			clear(v[from : from+width])
		}},
		{"first row is the second", func(v []float64, t target) {
			if width := t.width(); len(v) >= 2*width {
				copy(v[:width], v[width:2*width])
			}
		}},
		{"no last column", func(v []float64, t target) {
			width := t.width()
			for i := width - 1; i < len(v); i += width {
				v[i] = 0
			}
		}},
		{"no last row", func(v []float64, t target) { clear(v[len(v)-t.width():]) }},
		{"half of the sum", each(func(v float64) float64 { return v / 2 })},
		{"plus 5% of the mean", func(values []float64, _ target) {
			mean := 0.0
			for _, v := range values {
				mean += math.Abs(v) / float64(len(values))
			}
			for i := range values {
				values[i] += mean / 20
			}
		}},
	}
}

// width returns the length of a row.
func (t target) width() int {
	if len(t.shape) == 0 {
		return 1
	}
	return t.shape[len(t.shape)-1]
}

// transposed writes each matrix in column-major order.
func transposed(v []float64, rows, columns int) {
	for from := 0; from < len(v); from += rows * columns {
		matrix := slices.Clone(v[from : from+rows*columns])
		for i := range rows {
			for j := range columns {
				v[from+j*rows+i] = matrix[i*columns+j]
			}
		}
	}
}

// EachMistake applies each mistake to our results of a case, judges them, and calls do with the row. It leaves out
// mistakes that change nothing.
func EachMistake(t *testing.T, op string, c Case, dtype mlxc.DType, do func(output, mistake string, row report.Row)) {
	t.Helper()
	p, err := pose(op, c, dtype)
	require.NoError(t, err)
	ours, err := p.solve()
	require.NoError(t, err)
	peers := peersOf(c, p.draws, dtype, p.truth)
	for i, target := range p.targets {
		size := oracle.Size(target.shape)
		for _, m := range mistakes() {
			wrong := slices.Clone(ours[i])
			for from := 0; from < len(wrong); from += size {
				m.apply(wrong[from:from+size], target)
			}
			wrong, err := arrays.Float64s(arrays.New(wrong, target.dtype, []int{len(wrong)}))
			require.NoError(t, err)
			if accuracy.Measure(wrong, ours[i]).Max == 0 {
				continue
			}
			row := report.Row{Draws: len(p.draws)}
			judgeRow(&row, target, c.spacing(target.dtype), wrong, p.truth[i], peers[i])
			do(target.name, m.name, row)
		}
	}
}

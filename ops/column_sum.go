package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var sumKernels = newShaderFile("column_sum.metal")

// columnSum adds up the rows of each of the partial sums, which have the same shape,
// and rounds the results to dtype.
func columnSum(on target, partial *mlxc.Array, dtype mlxc.DType) []*mlxc.Array {
	return columnSumWith(on, sumKernels.kernel("column_sum"), partial, dtype)
}

// columnSumWith is columnSum by a kernel that is column_sum under another name.
func columnSumWith(on target, kernel *customkernels.Kernel, partial *mlxc.Array, dtype mlxc.DType) []*mlxc.Array {
	rows, width := partial.Dim(-2), partial.Dim(-1)
	matrices := partial.Size() / (rows * width)
	g := sumTable[on.backend]
	args := newRowArgs(rows, width, 0)
	sums := on.launch(kernel, customkernels.Launch{
		Grid:        [3]int{g.groups(width) * g.threads, matrices},
		Threadgroup: [3]int{g.threads, 1},
		Template: []mlxc.TemplateArg{
			{Name: "T", Value: dtype},
			{Name: "VEC", Value: g.chunk},
			{Name: "ROWS_PER_STEP", Value: g.together},
			{Name: "MAX_SIMDGROUPS", Value: g.simdgroups()},
		},
		Outputs: []mlxc.Output{{Shape: []int{matrices * width}, DType: dtype}},
	}, partial, args.rows, args.width)[0]
	if matrices == 1 {
		return []*mlxc.Array{sums}
	}
	defer sums.Free()
	return sums.Split(matrices, 0)
}

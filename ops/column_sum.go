package ops

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var columnSumKernels = newShaderFile("column_sum.metal")

// columnSum sums a matrix of partial sums over its rows and rounds the result to dtype. partial is float32 of shape
// [rows, width], or [n, rows, width] for n matrices. The result is one array of shape [width] per matrix.
func columnSum(on target, partial *mlxc.Array, dtype mlxc.DType) []*mlxc.Array {
	if partial.NDim() == 3 && partial.Dim(0) == 2 {
		return launchColumnSum(on, columnSumKernels.kernel("column_sum_pair"), partial, dtype, 2)
	}
	return columnSumBy(on, columnSumKernels.kernel("column_sum"), partial, dtype)
}

// columnSumBy is columnSum with another kernel of the same signature. If partial is invalid, it returns only the error.
func columnSumBy(on target, kernel *customkernels.Kernel, partial *mlxc.Array, dtype mlxc.DType) []*mlxc.Array {
	sums := launchColumnSum(on, kernel, partial, dtype, 1)[0]
	if partial.Err() != nil || partial.NDim() < 3 || partial.Dim(0) == 1 {
		return []*mlxc.Array{sums}
	}
	defer sums.Free()
	return sums.Split(partial.Dim(0), 0)
}

// launchColumnSum launches a kernel that distributes the sums of all matrices among `outputs` arrays.
func launchColumnSum(
	on target, kernel *customkernels.Kernel, partial *mlxc.Array, dtype mlxc.DType, outputs int,
) []*mlxc.Array {
	if err := partial.Err(); err != nil {
		return []*mlxc.Array{mlxc.InvalidArray(err)}
	}
	rows, width := partial.Dim(-2), partial.Dim(-1)
	matrices := partial.Size() / (rows * width)
	g := columnSumTuning[on.backend]
	if on.backend == mlxc.BackendCPU && width >= wideSum {
		g.vec = wideSumVec
	}
	template := columnSumTemplate{dtype: dtype, vec: g.vec, rowsPerStep: g.rowsPerStep, simdgroups: g.simdgroups()}
	n := uint32Args(rows, width)
	return on.launch(kernel, customkernels.Launch{
		Grid:        [3]int{g.threadgroups(width) * g.threads, matrices},
		Threadgroup: [3]int{g.threads, 1},
		StartsEarly: true,
		Template:    template.args(),
		Outputs:     slices.Repeat([]mlxc.Output{{Shape: []int{matrices / outputs * width}, DType: dtype}}, outputs),
	}, partial, n[0], n[1])
}

// columnSumTemplate holds the template parameters of column_sum.
type columnSumTemplate struct {
	dtype                        mlxc.DType
	vec, rowsPerStep, simdgroups int
}

func (t columnSumTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{
		{Name: "T", Value: t.dtype},
		{Name: "VEC", Value: t.vec},
		{Name: "ROWS_PER_STEP", Value: t.rowsPerStep},
		{Name: "MAX_SIMDGROUPS", Value: t.simdgroups},
	}
}

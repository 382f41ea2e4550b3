package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// columnTuning holds the geometry of kernels that sum over rows.
var columnTuning = map[mlxc.Backend]columnGeometry{
	// One thread iterates over all rows of 32 columns, which are two cache lines of float32.
	mlxc.BackendCPU: {threads: 1, vec: 32},
	// 8 simdgroups of 32 lanes with one column per lane, so that even narrow widths fill several threadgroups.
	mlxc.BackendMetal: {threads: 256, vec: 1},
	mlxc.BackendCUDA:  {threads: 256, vec: 1},
}

// A columnGeometry is the geometry of kernels whose lanes own columns and whose simdgroups share the rows.
type columnGeometry struct {
	threads int // per threadgroup
	vec     int // columns per lane
}

// simdgroups returns the number of simdgroups in a threadgroup.
func (g columnGeometry) simdgroups() int { return ceilDiv(g.threads, 32) }

// threadgroups returns the number of threadgroups for `width` columns.
func (g columnGeometry) threadgroups(width int) int { return ceilDiv(width, min(g.threads, 32)*g.vec) }

// With at least wideSum columns, a CPU's threads sum wideSumVec columns at a time. A sum of 16384 columns then has
// 128 threadgroups instead of 512.
const (
	wideSum    = 128 * wideSumVec
	wideSumVec = 128
)

// columnSumTuning holds the geometry of column_sum. Its input has one row of partial sums per threadgroup of the kernel
// that wrote them.
var columnSumTuning = map[mlxc.Backend]struct {
	columnGeometry
	rowsPerStep int // rows that a simdgroup loads at a time
}{
	mlxc.BackendCPU:   {columnTuning[mlxc.BackendCPU], 1},
	mlxc.BackendMetal: {columnTuning[mlxc.BackendMetal], 8},
	// 16 simdgroups load 8 rows each, 128 in total, of the 132 or 264 rows of partial sums. Four such threadgroups fit
	// a multiprocessor, so that all threadgroups for wide rows are resident.
	mlxc.BackendCUDA: {columnGeometry{threads: 512, vec: 1}, 8},
}

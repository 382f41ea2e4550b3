package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// columnTable has what each class of devices wants of kernels that sum over rows:
// lanes own columns, and the simdgroups of a group share the rows.
var columnTable = map[mlxc.Backend]columnGeometry{
	// One thread for 32 columns, two cache lines of float32, walks down all rows.
	mlxc.BackendCPU: {threads: 1, chunk: 32},
	// 8 simdgroups of 32 lanes, one column a lane, so that even narrow widths make
	// several groups.
	mlxc.BackendMetal: {threads: 256, chunk: 1},
	mlxc.BackendCUDA:  {threads: 256, chunk: 1},
}

type columnGeometry struct {
	threads, chunk int
}

// simdgroups is how many a group has.
func (g columnGeometry) simdgroups() int { return (g.threads + 31) / 32 }

// groups is how many groups have all columns.
func (g columnGeometry) groups(width int) int {
	columns := min(g.threads, 32) * g.chunk
	return (width + columns - 1) / columns
}

// sumTable has what each class of devices wants of the sum of partial sums, a row of them
// for each group of the kernel that left them: a geometry, and how many rows a simdgroup
// loads at a time.
var sumTable = map[mlxc.Backend]struct {
	columnGeometry
	together int
}{
	mlxc.BackendCPU:   {columnTable[mlxc.BackendCPU], 1},
	mlxc.BackendMetal: {columnTable[mlxc.BackendMetal], 8},
	// All rows of 132 or 264 groups are loaded at once.
	mlxc.BackendCUDA: {columnGeometry{threads: 1024, chunk: 1}, 8},
}

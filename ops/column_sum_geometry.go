package ops

// columnTable has what each class of devices wants of kernels that sum over rows:
// lanes own columns, and the simdgroups of a group share the rows.
var columnTable = map[device]columnGeometry{
	// One thread for 32 columns, two cache lines of float32, walks down all rows.
	host: {threads: 1, chunk: 32},
	// 8 simdgroups of 32 lanes, one column a lane, so that even narrow widths make
	// several groups.
	apple: {threads: 256, chunk: 1},
	cuda:  {threads: 256, chunk: 1},
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
var sumTable = map[device]struct {
	columnGeometry
	together int
}{
	host:  {columnTable[host], 1},
	apple: {columnTable[apple], 8},
	// All rows of 132 or 264 groups are loaded at once.
	cuda: {columnGeometry{threads: 1024, chunk: 1}, 8},
}

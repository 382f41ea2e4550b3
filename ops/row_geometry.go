package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// rowTable has what each class of devices wants of kernels whose threadgroups walk over
// rows.
var rowTable = map[mlxc.Backend]struct {
	maxThreads int // in a threadgroup
	held       int // elements of a row that a thread holds in registers
	packBytes  int // that a thread moves at a time
	groups     int // that fill the largest device
	minRows    int // for each group: fewer are not worth a group's own sums
}{
	// A group is one thread, so that nothing has to meet and a row streams through one
	// core, whose caches hold what a GPU's registers do: 4096 floats each of x, dy, w and
	// dw are half of a fiber's stack. 64 bytes are a cache line, two vector registers or
	// one. 64 groups give each of a few cores several turns to even out.
	mlxc.BackendCPU: {maxThreads: 1, held: 4096, packBytes: 64, groups: 64, minRows: 16},
	// Loads of 16 bytes. A row in a thread's registers takes 32 of the 52 that each of
	// 1024 threads has (208 KiB a core). 256 groups are three for each core of the
	// largest GPU; ten rows for each keep a group's sums, two floats moved for every
	// column, below a quarter of the traffic of its rows in half precision.
	mlxc.BackendMetal: {maxThreads: 1024, held: 8, packBytes: 16, groups: 256, minRows: 10},
	// As above, of 64 registers a thread; 528 groups are four for each of 132
	// multiprocessors.
	mlxc.BackendCUDA: {maxThreads: 1024, held: 8, packBytes: 16, groups: 528, minRows: 10},
}

// rowGeometry is how a kernel is launched whose threadgroups walk over rows: the
// threads of a group, the elements C of a pack, the packs R that a thread holds of a
// row or of a block of its columns, and the groups that share the rows.
type rowGeometry struct {
	threads, chunk, packs int
	heldAs                mlxc.DType // what a thread holds of a row until it computes with it
	loose                 int        // elements of a pack of rows that are not packed
	ahead                 bool       // a row is loaded before the one in front of it is done
	groups                int
	resident              int // groups on a core at a time, 0 for as many as come about
	blocks                int // of columns; 1 if a group holds a row
}

// rowsOf is the geometry for rows of a width and dtype. There are two variants of a
// kernel's text for a dtype at most, whatever the width and the number of rows: with
// as many packs as a thread can hold, for rows that a group holds, and the same in
// blocks of columns, for wider ones.
func rowsOf(d mlxc.Backend, dtype mlxc.DType, rows, width int) rowGeometry {
	t := rowTable[d]
	// A GPU's loads are not waited for, and neighbouring threads read neighbouring elements.
	heldAs, loose := dtype, 1
	chunk := t.packBytes / dtype.Size()
	if d == mlxc.BackendCPU {
		heldAs = mlxc.Float32 // what is computed with, converted once
		chunk = t.packBytes / heldAs.Size()
		loose = chunk
	}
	g := rowGeometry{
		threads: min(wholeSimdgroups(width, t.held), t.maxThreads),
		chunk:   chunk,
		packs:   t.held / chunk,
		heldAs:  heldAs,
		loose:   loose,
	}
	g.blocks = (width + g.threads*t.held - 1) / (g.threads * t.held)
	minRows := t.minRows
	if g.blocks > 1 {
		// Rows are read twice already, and their blocks make up for fewer groups.
		minRows = max(minRows, 32)
	}
	g.groups = min(max(rows/minRows, 1), t.groups)
	return g
}

// independentRowsOf is rowsOf for a kernel that leaves no sums of groups behind: as many
// groups as make a full device of their threads, or one for each row.
func independentRowsOf(d mlxc.Backend, dtype mlxc.DType, rows, width int) rowGeometry {
	g := rowsOf(d, dtype, rows, width)
	t := rowTable[d]
	g.groups = min(max(rows, 1), t.groups*t.maxThreads/g.threads)
	return g
}

// summedTable has what a class of devices wants, in place of what rowTable has, of kernels
// whose threadgroups keep sums over their rows in registers.
var summedTable = map[mlxc.Backend]struct {
	cores    int
	resident int // threads on a core, and at most so many in a threadgroup
	held     int // elements of a row that a thread holds in registers
	loading  int // bytes of two matrices that a thread is to have under way: of the next row, too, if one row has fewer
	minRows  int // for each group
}{
	// All rows are taken in one turn, by 512 threads of 128 registers on each of 132
	// multiprocessors: further groups would cost their sums. 64 KiB under way on a
	// multiprocessor hide the latency of an H200's memory while a row is summed up: a row in
	// float32, or two in half precision. Sums, two floats moved for every column of a group,
	// stay in a cache of 50 MB.
	mlxc.BackendCUDA: {cores: 132, resident: 512, held: 16, loading: 128, minRows: 4},
}

// summedRowsOf is rowsOf for a kernel whose threadgroups keep sums over their rows in
// registers.
func summedRowsOf(d mlxc.Backend, dtype mlxc.DType, rows, width int) rowGeometry {
	g := rowsOf(d, dtype, rows, width)
	t, ok := summedTable[d]
	if !ok {
		return g
	}
	g.threads = min(wholeSimdgroups(width, t.held), t.resident)
	g.resident = t.resident / g.threads
	g.packs = t.held / g.chunk
	g.ahead = 2*t.held*dtype.Size() < t.loading
	g.blocks = (width + g.threads*t.held - 1) / (g.threads * t.held)
	g.groups = min(max(rows/t.minRows, 1), t.cores*g.resident)
	return g
}

// rowsTogether is how many rows the statistics kernel has in hand at a time, so that the
// weight's traffic is divided by it: 16 are a fiftieth of that of x and dy. A host reads
// the weight from a cache.
func rowsTogether(d mlxc.Backend) int {
	if d == mlxc.BackendCPU {
		return 1
	}
	return 16
}

package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// shareTable has what each class of devices wants of kernels whose threads never meet:
// neighbouring threads share a row, a few packs of its columns each.
var shareTable = map[mlxc.Backend]struct {
	threads   int // in a threadgroup
	packBytes int
	packs     int // that a thread holds
	beside    int // threads beside each other in narrow rows
	rows      int // at a time
}{
	// One thread has a row of 4096 floats, half of a cache of 32 KiB, and many rows far
	// apart, so that those that cost more than others are spread.
	mlxc.BackendCPU: {threads: 1, packBytes: 64, packs: 256, beside: 1, rows: 512},
	// Eight packs of 16 bytes: what a thread must know of a row, a number of 4 bytes, is
	// little beside what it moves of it. The sums of halves are 64 floats; with some 128
	// registers a thread, 208 KiB are for 400 threads, which load 50 KiB at a time. Eight
	// threads beside each other move a cache line.
	mlxc.BackendMetal: {threads: 256, packBytes: 16, packs: 8, beside: 8, rows: 1 << 18},
	// Two packs, since a multiprocessor loads more by threads than by what each has asked for.
	mlxc.BackendCUDA: {threads: 256, packBytes: 16, packs: 2, beside: 8, rows: 1 << 18},
}

// shareGeometry is how a kernel is launched whose threads share rows.
type shareGeometry struct {
	grid, threads int
	chunk, packs  int
	shares        int // threads that share a row
}

// sharesOf is the geometry for so many rows of a width and dtype.
func sharesOf(d mlxc.Backend, dtype mlxc.DType, rows, width int) shareGeometry {
	t := shareTable[d]
	chunk := t.packBytes / dtype.Size()
	if d == mlxc.BackendCPU {
		chunk = t.packBytes / mlxc.Float32.Size()
	}
	packs := (width + chunk - 1) / chunk // of a row
	shares := max((packs+t.packs-1)/t.packs, min(packs, t.beside))
	return shareGeometry{grid: min(rows, t.rows) * shares, threads: t.threads, chunk: chunk, packs: t.packs, shares: shares}
}

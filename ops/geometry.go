package ops

import (
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// device is a class of devices that wants the same launch geometry.
type device int

const (
	host device = iota
	apple
	cuda
)

// devices are all classes.
var devices = []device{host, apple, cuda}

func (d device) String() string {
	return [...]string{host: "host", apple: "apple", cuda: "cuda"}[d]
}

func currentDevice() device {
	switch mlxc.CurrentBackend() {
	case mlxc.BackendCPU:
		return host
	case mlxc.BackendCUDA:
		return cuda
	}
	return apple
}

// rowTable has what each class of devices wants of kernels whose threadgroups walk over
// rows.
var rowTable = map[device]struct {
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
	host: {maxThreads: 1, held: 4096, packBytes: 64, groups: 64, minRows: 16},
	// Loads of 16 bytes. A row in a thread's registers takes 32 of the 52 that each of
	// 1024 threads has (208 KiB a core). 256 groups are three for each core of the
	// largest GPU; ten rows for each keep a group's sums, two floats moved for every
	// column, below a quarter of the traffic of its rows in half precision.
	apple: {maxThreads: 1024, held: 8, packBytes: 16, groups: 256, minRows: 10},
	// As above, of 64 registers a thread; 528 groups are four for each of 132
	// multiprocessors.
	cuda: {maxThreads: 1024, held: 8, packBytes: 16, groups: 528, minRows: 10},
}

// rowGeometry is how a kernel is launched whose threadgroups walk over rows: the
// threads of a group, the elements C of a pack, the packs R that a thread holds of a
// row or of a block of its columns, and the groups that share the rows.
type rowGeometry struct {
	threads, chunk, packs int
	step                  int        // packs that a thread of a row of logits takes at a time
	beside                int        // threads that take turns in a block of logits
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
func rowsOf(d device, dtype mlxc.DType, rows, width int) rowGeometry {
	t := rowTable[d]
	// A GPU's loads are not waited for, and neighbouring threads read neighbouring elements.
	heldAs, loose := dtype, 1
	chunk := t.packBytes / dtype.Size()
	if d == host {
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
func independentRowsOf(d device, dtype mlxc.DType, rows, width int) rowGeometry {
	g := rowsOf(d, dtype, rows, width)
	t := rowTable[d]
	g.groups = min(max(rows, 1), t.groups*t.maxThreads/g.threads)
	return g
}

// summedTable has what a class of devices wants, in place of what rowTable has, of kernels
// whose threadgroups keep sums over their rows in registers.
var summedTable = map[device]struct {
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
	cuda: {cores: 132, resident: 512, held: 16, loading: 128, minRows: 4},
}

// summedRowsOf is rowsOf for a kernel whose threadgroups keep sums over their rows in
// registers.
func summedRowsOf(d device, dtype mlxc.DType, rows, width int) rowGeometry {
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

// logitGeometry is what a class of devices wants of a kernel whose threadgroups go along rows
// of logits, in blocks of what their threads hold.
type logitGeometry struct {
	maxThreads int // in a threadgroup
	heldBytes  int // of a row that a thread holds in registers
	threads    int // that fill the largest device
	resident   int // threads on a core; 0 for as many as come about
	step       int // elements that a thread takes at a time
	beside     int // threads that take turns in a block
}

// logitTable is for the kernels of the loss, of both it and its gradient, which goes back to a row,
// and of the gradient alone, whose groups take a block each on GPUs.
var logitTable = map[device]struct{ forward, both, backward logitGeometry }{
	// As of rowTable; a step ends where a row does, or soon after.
	host: {
		forward:  logitGeometry{maxThreads: 1, heldBytes: 4096 * 4, threads: 64, step: 256, beside: 1},
		both:     logitGeometry{maxThreads: 1, heldBytes: 4096 * 4, threads: 64, step: 256, beside: 1},
		backward: logitGeometry{maxThreads: 1, heldBytes: 4096 * 4, threads: 64, step: 256, beside: 1},
	},
	// A quarter of a thread's registers.
	apple: {
		forward:  logitGeometry{maxThreads: 1024, heldBytes: 64, threads: 256 * 1024, step: 16, beside: 32},
		both:     logitGeometry{maxThreads: 1024, heldBytes: 64, threads: 256 * 1024, step: 16, beside: 32},
		backward: logitGeometry{maxThreads: 256, heldBytes: 64, step: 16, beside: 32},
	},
	// 64 KiB under way on each of 132 multiprocessors hide the latency of an H200's memory. Who goes
	// back to a row finds 128 KiB of it in the registers of 1024 threads, half of theirs, and some of
	// the rest in a cache of 50 MB: with one row on each. A block of 32 KiB for 256 threads makes
	// up for what a group must know of its row.
	cuda: {
		forward:  logitGeometry{maxThreads: 256, heldBytes: 64, threads: 132 * 1024, resident: 1024, step: 16, beside: 32},
		both:     logitGeometry{maxThreads: 1024, heldBytes: 128, threads: 132 * 1024, resident: 1024, step: 16, beside: 32},
		backward: logitGeometry{maxThreads: 256, heldBytes: 128, resident: 1024, step: 16, beside: 32},
	},
}

// logitsOf is the geometry for so many rows of logits of a width and dtype.
func logitsOf(d device, t logitGeometry, dtype mlxc.DType, rows, width int) rowGeometry {
	g := rowGeometry{heldAs: dtype, beside: t.beside}
	g.chunk = rowTable[d].packBytes / dtype.Size()
	if d == host {
		g.heldAs = mlxc.Float32 // what is computed with
		g.chunk = rowTable[d].packBytes / g.heldAs.Size()
	}
	held := t.heldBytes / g.heldAs.Size()
	g.threads = min(wholeSimdgroups(width, held), t.maxThreads)
	g.packs = max(held/g.chunk, 1)
	g.step = min(max(t.step/g.chunk, 1), g.packs)
	g.resident = t.resident / g.threads
	g.blocks, g.groups = 1, min(max(rows, 1), mostBeside)
	if t.threads > 0 {
		g.groups = min(max(rows, 1), t.threads/g.threads)
	} else {
		block := g.threads * g.packs * g.chunk
		g.blocks = (width + block - 1) / block
	}
	return g
}

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

// groups is how many groups have all columns.
func (g columnGeometry) groups(width int) int {
	columns := min(g.threads, 32) * g.chunk
	return (width + columns - 1) / columns
}

// shareTable has what each class of devices wants of kernels whose threads never meet:
// neighbouring threads share a row, a few packs of its columns each.
var shareTable = map[device]struct {
	threads   int // in a threadgroup
	packBytes int
	packs     int // that a thread holds
	beside    int // threads beside each other in narrow rows
	rows      int // at a time
}{
	// One thread has a row of 4096 floats, half of a cache of 32 KiB, and many rows far
	// apart, so that those that cost more than others are spread.
	host: {threads: 1, packBytes: 64, packs: 256, beside: 1, rows: 512},
	// Eight packs of 16 bytes: what a thread must know of a row, a number of 4 bytes, is
	// little beside what it moves of it. The sums of halves are 64 floats; with some 128
	// registers a thread, 208 KiB are for 400 threads, which load 50 KiB at a time. Eight
	// threads beside each other move a cache line.
	apple: {threads: 256, packBytes: 16, packs: 8, beside: 8, rows: 1 << 18},
	// Two packs, since a multiprocessor loads more by threads than by what each has asked for.
	cuda: {threads: 256, packBytes: 16, packs: 2, beside: 8, rows: 1 << 18},
}

// shareGeometry is how a kernel is launched whose threads share rows.
type shareGeometry struct {
	grid, threads int
	chunk, packs  int
	shares        int // threads that share a row
}

// sharesOf is the geometry for so many rows of a width and dtype.
func sharesOf(d device, dtype mlxc.DType, rows, width int) shareGeometry {
	t := shareTable[d]
	chunk := t.packBytes / dtype.Size()
	if d == host {
		chunk = t.packBytes / mlxc.Float32.Size()
	}
	packs := (width + chunk - 1) / chunk // of a row
	shares := max((packs+t.packs-1)/t.packs, min(packs, t.beside))
	return shareGeometry{grid: min(rows, t.rows) * shares, threads: t.threads, chunk: chunk, packs: t.packs, shares: shares}
}

// tileTable has what each class of devices wants of kernels that move tiles of matrices.
var tileTable = map[device]struct {
	threads   int // in a threadgroup
	packBytes int // that a thread moves at a time, at most
	groups    int // at most
}{
	// One thread moves one element after the other, no slower than vectors that have to be
	// put together. 64 groups give each of a few cores several turns to even out.
	host: {threads: 1, packBytes: 1, groups: 64},
	// A group for every tile, within what a grid may have.
	apple: {threads: 256, packBytes: 16, groups: 1 << 22},
	cuda:  {threads: 256, packBytes: 16, groups: 1 << 22},
}

// tileGeometry is how a kernel is launched whose threadgroups move tiles of side × side
// elements: the threads of a group, the elements of a pack of the input's rows and of
// the output's, and the groups for the tiles of a row, for those of a column, and for the
// matrices.
type tileGeometry struct {
	threads, side   int
	inPack, outPack int
	groups          [3]int
}

// tilesOf is the geometry for the transposition of matrices of a dtype.
func tilesOf(d device, dtype mlxc.DType, matrices, rows, columns int) tileGeometry {
	t := tileTable[d]
	side := 32 // of which a cache of 32 KiB keeps the lines of both matrices
	if d != host {
		side = 128 / dtype.Size() // rows of a cache line
	}
	packOf := func(n int) int {
		n |= max(t.packBytes/dtype.Size(), 1)
		return n & -n // the largest of the powers of two that divide both
	}
	g := tileGeometry{threads: t.threads, side: side, inPack: packOf(columns), outPack: packOf(rows)}
	g.groups = matrixGroups(t.groups, matrices, (rows+side-1)/side, (columns+side-1)/side)
	return g
}

// blockTable has what each class of devices wants of kernels whose threads move square
// blocks of matrices. A host's thread has no registers for one.
var blockTable = map[device]struct {
	threads   int // in a threadgroup
	beside    int // of its threads along a row
	packBytes int // of a block's row
	groups    int // at most
}{
	// 16 packs are two cache lines of a row of the input, 16 below them two of the output's. A
	// block of halves takes 96 registers with what is on the way, so that 512 threads of a
	// multiprocessor load 64 KiB at a time.
	apple: {threads: 256, beside: 16, packBytes: 16, groups: 1 << 22},
	cuda:  {threads: 256, beside: 16, packBytes: 16, groups: 1 << 22},
}

// blockGeometry is how a kernel is launched whose threads move blocks of side × side
// elements: the threads of a group, of which so many lie beside each other along a row,
// and the groups as of tileGeometry.
type blockGeometry struct {
	threads, beside int
	side            int
	groups          [3]int
}

// blocksOf is the geometry for the transposition of matrices of a dtype. There is none for
// matrices that are not of whole blocks.
func blocksOf(d device, dtype mlxc.DType, matrices, rows, columns int) (g blockGeometry, ok bool) {
	t, ok := blockTable[d]
	if !ok {
		return g, false
	}
	g = blockGeometry{threads: t.threads, beside: t.beside, side: t.packBytes / dtype.Size()}
	height, width := g.threads/g.beside*g.side, g.beside*g.side
	g.groups = matrixGroups(t.groups, matrices, (rows+height-1)/height, (columns+width-1)/width)
	return g, rows%g.side == 0 && columns%g.side == 0
}

// mostBeside is how many groups CUDA has along a grid's second and third axis.
const mostBeside = 65535

// matrixGroups are the groups along a grid's axes for so many matrices, and in each so many
// rows and columns of tiles, or fewer: as many as there may be in all, the matrices first.
func matrixGroups(left, matrices, rows, columns int) (groups [3]int) {
	for i, n := range []int{matrices, rows, columns} {
		n = min(n, left, mostBeside)
		groups[2-i] = n
		left /= n
	}
	return groups
}

// elementsOf is the geometry for kernels whose threads never meet and take neighbouring
// elements: the threads of the grid and of a threadgroup.
func elementsOf(d device, elements int) (grid, threads int) {
	if d == host {
		return min(elements, 64), 1 // each of a few cores has several turns
	}
	return elements, 256
}

// wholeSimdgroups is the number of threads for a row of n elements, chunk at a
// time: a multiple of 32.
func wholeSimdgroups(n, chunk int) int {
	threads := (n + chunk - 1) / chunk
	return max((threads+31)/32*32, 32)
}

// attentionTable has what each class of devices wants of attention, whose simdgroups own
// tiles of rows and walk over panels of the other side's.
var attentionTable = map[device]struct {
	lanes      int // of a simdgroup
	simdgroups int // in a threadgroup
	elements   int // of a tile's rows, at most
	least      int // rows of a tile
	rows       int // the same, at most
	panel      int // bytes of both panels
	columns    int // rows of a panel, at most
	registers  int // that a lane may fill with its rows; beyond that, pairs of simdgroups share them
}{
	// A simdgroup is one thread. Tiles of 64 rows of 64 floats are 16 KiB: four of them and
	// three of scores, half as large, are on a fiber's stack of 128 KiB. A panel stays where
	// it is.
	host: {lanes: 1, simdgroups: 1, elements: 4096, least: 8, rows: 64, panel: math.MaxInt, columns: 32, registers: math.MaxInt},
	// 16 rows of 64 floats are 32 registers a lane, and so are 8 of 128: up to four such
	// tiles and the scores fit the 104 that a lane has with 512 threads on a core of
	// 208 KiB. Panels of 16 KiB let two threadgroups of 128 threads share a core's 32 KiB,
	// but pairs, which have up to 4 KiB of scores beside them.
	apple: {lanes: 32, simdgroups: 4, elements: 1024, least: 8, rows: 16, panel: 16 << 10, columns: 32, registers: 128},
	// The 16 rows of an mma. Of 255 registers scores and addresses take some 60. What is beyond is fetched
	// from memory for every panel, which costs more than to put the two parts of scores together
	// (docs/h200).
	cuda: {lanes: 32, simdgroups: 4, least: 16, rows: 16, panel: 16 << 10, columns: 64, registers: 192},
}

// exactProducts reports whether the products of a dtype's tiles, for heads of this width, are
// worth sums of their own errors: not those of 16 bits, and on CUDA not what is made of TF32
// (metal_tiles.h: narrow).
func (d device) exactProducts(dtype mlxc.DType, width int) bool {
	return dtype == mlxc.Float32 && (d != cuda || width <= 16)
}

// forwardResident is how many threadgroups of attention's forward kernel a core is to have at a
// time, 0 for as many as come about. What a lane of CUDA holds of 16 bits fits the 168 registers that
// are left to each of three; without being told, compilers take more, and leave two.
func (d device) forwardResident(dtype mlxc.DType, width int) int {
	if d == cuda && dtype.Size() == 2 && width <= 128 {
		return 3
	}
	return 0
}

// attentionGeometry is how attention is launched: the lanes of a simdgroup, the
// simdgroups of a threadgroup and whether pairs of them share rows, the rows M of a simdgroup
// and the rows N of a panel.
type attentionGeometry struct {
	lanes, simdgroups int
	paired            bool
	rows, columns     int
}

// heldRow is what a simdgroup keeps of each of its rows, while it walks over the other side's: elements of
// operands and of sums.
type heldRow struct{ operands, sums int }

// attentionOf is the geometry for a kernel that holds such rows of heads of these widths, for a length of
// rows that simdgroups share.
func attentionOf(d device, dtype mlxc.DType, width, valueWidth, length int, held heldRow) attentionGeometry {
	t := attentionTable[d]
	g := attentionGeometry{lanes: t.lanes, simdgroups: t.simdgroups, rows: t.least, columns: t.least}
	for g.rows < t.rows && g.rows*2*max(width, valueWidth) <= t.elements {
		g.rows *= 2
	}
	operandSize := mlxc.Float32.Size()
	if d == cuda {
		operandSize = dtype.Size() // as metal_tiles.h keeps them
	}
	registers := g.rows * (held.operands*operandSize/mlxc.Float32.Size() + held.sums) / g.lanes
	g.paired = registers > t.registers && width%16 == 0 && valueWidth%16 == 0 // or the halves were no tiles
	if length <= 8 {
		g.rows, g.simdgroups = t.least, g.parts() // as when one token after the other is decoded
	}
	for g.columns < t.columns && g.columns*2*(width+valueWidth)*dtype.Size() <= t.panel {
		g.columns *= 2
	}
	return g
}

// parts is how many simdgroups have the same rows.
func (g attentionGeometry) parts() int {
	if g.paired {
		return 2
	}
	return 1
}

// threads is the size of a threadgroup.
func (g attentionGeometry) threads() int { return g.lanes * g.simdgroups }

// groups is how many threadgroups have all rows of so many sequences, together of a
// length.
func (g attentionGeometry) groups(length, sequences int) int {
	rows := g.rows * g.simdgroups / g.parts()
	if sequences == 0 {
		return (length + rows - 1) / rows
	}
	return length/rows + sequences
}

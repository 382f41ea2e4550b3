package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// rowTuning holds the tuning of kernels whose threadgroups process rows one after the other.
var rowTuning = map[mlxc.Backend]struct {
	maxThreads        int // per threadgroup
	elementsPerThread int // of a row, held in registers
	vecBytes          int // of a load or store
	groups            int // threadgroups that fill the largest device
	minRows           int // rows per threadgroup that writes partial sums
}{
	// A threadgroup is one thread, so no thread waits for another, and a row streams through one core. The core's
	// caches take the place of a GPU's registers: 4096 floats each of x, dy, w and dw are half of a fiber's stack of
	// 128 KiB. 64 bytes are a cache line and one or two vector registers. 64 groups balance the load of a few cores.
	mlxc.BackendCPU: {maxThreads: 1, elementsPerThread: 4096, vecBytes: 64, groups: 64, minRows: 16},
	// Loads have 16 bytes. 8 elements each of x, dy, w and dw take 32 of the 52 registers that each of 1024 threads has
	// (208 KiB per core). 256 groups are three per core of the largest Apple GPU. With ten rows per group, the traffic
	// of its partial sums, two floats per column, is less than a quarter of the traffic of the rows in half precision.
	mlxc.BackendMetal: {maxThreads: 1024, elementsPerThread: 8, vecBytes: 16, groups: 256, minRows: 10},
	// As for Metal, with 64 registers per thread. 528 groups are four per multiprocessor of an H200, which has 132.
	mlxc.BackendCUDA: {maxThreads: 1024, elementsPerThread: 8, vecBytes: 16, groups: 528, minRows: 10},
}

// bytesPastCaches is the size from which a CPU's caches do not hold a result until its next use. Tests set it.
var bytesPastCaches = 8 << 20

// A rowGeometry is the launch geometry of a kernel whose threadgroups process rows, or blocks of their columns.
type rowGeometry struct {
	threads       int  // per threadgroup
	groups        int  // threadgroups that share the rows
	groupsPerCore int  // resident at a time; 0 if the compiler decides
	blocks        int  // of columns; 1 if a threadgroup holds a row
	vec           int  // elements per vector
	vecsPerThread int  // held in registers
	vecUnaligned  int  // elements per vector of unaligned rows
	prefetch      int  // arrays of a row to load before the sums of the previous one: none, x, or x and dy
	copyThreads   int  // of a threadgroup that prefetches rows to threadgroup memory; 0 for registers
	memory        int  // Launch.ThreadgroupMemory
	fullRows      bool // the vectors of the threads fill a row
	allAligned    bool // no code for unaligned rows, which takes a quarter of the compiler's time
	rowsPerGroup  int  // that a threadgroup processes at a time
	bypassCaches  bool // when storing rows of a result (RowWriter)
}

// rowGeometryFor returns the geometry for rows of a width and dtype. vecsPerThread does not depend on the number of
// rows and the width, so each kernel has few variants per dtype.
func rowGeometryFor(backend mlxc.Backend, dtype mlxc.DType, rows, width int) rowGeometry {
	t := rowTuning[backend]
	// Elements are held in the storage dtype: on a GPU a conversion would wait for the load, and on a CPU floats would
	// take more of the caches. In unaligned rows, neighboring threads load neighboring elements.
	g := rowGeometry{vecUnaligned: 1, vec: t.vecBytes / dtype.Size(), rowsPerGroup: 1}
	if backend == mlxc.BackendCPU {
		g.vec = t.vecBytes / mlxc.Float32.Size() // the sums are floats
		g.vecUnaligned = g.vec
		g.allAligned = width%g.vec == 0 // at any address
		g.bypassCaches = g.allAligned && rows*width*dtype.Size() >= bytesPastCaches
	}
	g.threads = min(wholeSimdgroups(width, t.elementsPerThread), t.maxThreads)
	g.vecsPerThread = t.elementsPerThread / g.vec
	g.blocks = ceilDiv(width, g.threads*t.elementsPerThread)
	minRows := t.minRows
	if g.blocks > 1 {
		// Wide rows are read twice, which makes partial sums less profitable. Blocks of columns replace the parallelism
		// of the missing groups.
		minRows = max(minRows, 32)
	}
	g.groups = min(max(rows/minRows, 1), t.groups)
	return g
}

// independentRowGeometry returns the geometry for a kernel without partial sums. It has as many threadgroups as fill
// the largest device, but at most one per row.
func independentRowGeometry(backend mlxc.Backend, dtype mlxc.DType, rows, width int) rowGeometry {
	g := rowGeometryFor(backend, dtype, rows, width)
	g.groups = independentGroups(backend, rows, g.threads)
	return g
}

func independentGroups(backend mlxc.Backend, rows, threads int) int {
	t := rowTuning[backend]
	return min(max(rows, 1), t.groups*t.maxThreads/threads)
}

// softmaxGeometry returns the geometry of a softmax kernel with one or two inputs. rowTuning is for the four arrays of a
// norm, so a thread holds four times as many elements of a single input, or twice as many of each of two.
func softmaxGeometry(backend mlxc.Backend, dtype mlxc.DType, rows, width, inputs int) rowGeometry {
	g := independentRowGeometry(backend, dtype, rows, width)
	g.vecsPerThread *= 4 / inputs
	if backend != mlxc.BackendCUDA || inputs == 1 {
		return g
	}
	// H200: a row has as few threads as can hold it, unless the device can run all rows at once with twice the threads.
	// A multiprocessor runs 1024 threads, with 64 registers each. In float32 the compiler spills registers to reach that
	// if a row has 512 threads, and without a bound it reaches it, too.
	t := rowTuning[backend]
	if rows*g.threads > accumulatingTuning[backend].cores*t.maxThreads {
		g.threads = min(wholeSimdgroups(width, 2*t.elementsPerThread), t.maxThreads)
		g.groups = independentGroups(backend, rows, g.threads)
	}
	if dtype.Size() < 4 || g.threads < 512 {
		g.groupsPerCore = t.maxThreads / g.threads
	}
	return g
}

// accumulatingTuning replaces rowTuning for kernels whose threadgroups accumulate sums over their rows in registers.
// Backends without an entry use rowTuning.
var accumulatingTuning = map[mlxc.Backend]struct {
	cores             int
	elementsPerCore   int // of resident rows, held in registers
	elementsPerThread int // of a row; twice as many if a simdgroup then holds the row
	bytesInFlight     int // of x and dy per core; with fewer bytes, both are prefetched
	minRows           int // rows per threadgroup, unless rowsPerGroup is larger
	rowsPerGroup      int // that a threadgroup processes at a time if a simdgroup holds a row
}{
	// H200: one wave on 132 multiprocessors, of 512 threads with 128 registers each, or of 256 threads with 255 registers
	// for rows of 513 to 1024 elements. Simdgroups that hold a row have no barrier. More threadgroups would write more
	// partial sums. 64 KiB in flight per multiprocessor, one row per thread in float32 or two in half precision, hide the
	// latency of memory during the sums of a row.
	mlxc.BackendCUDA: {
		cores: 132, elementsPerCore: 8192, elementsPerThread: 16, bytesInFlight: 64 << 10, minRows: 4, rowsPerGroup: 8,
	},
}

// accumulatingRowGeometry returns the geometry for a kernel whose threadgroups accumulate sums over their rows in
// registers.
func accumulatingRowGeometry(on target, dtype mlxc.DType, rows, width int) rowGeometry {
	g := rowGeometryFor(on.backend, dtype, rows, width)
	t, ok := accumulatingTuning[on.backend]
	if !ok {
		return g
	}
	elements := t.elementsPerThread
	if width > 32*elements && width <= 32*2*elements {
		elements *= 2
	}
	threadsPerCore := t.elementsPerCore / elements
	g.threads = min(wholeSimdgroups(width, elements), threadsPerCore)
	if g.threads == 32 {
		g.rowsPerGroup = t.rowsPerGroup
	}
	g.blocks = ceilDiv(width, g.threads*elements)
	g.fullRows = width == g.threads*elements
	g.threads *= g.rowsPerGroup
	g.groupsPerCore = threadsPerCore / g.threads
	g.vecsPerThread = elements / g.vec
	switch {
	case 2*t.elementsPerCore*dtype.Size() < t.bytesInFlight:
		g.prefetch = 2
		if on.warpgroups && g.blocks == 1 {
			g.prefetchByCopies(dtype)
		}
	case g.groupsPerCore == 1 && g.rowsPerGroup == 1:
		g.prefetch = 1 // otherwise a core has no loads in flight during the sums of its only row
	}
	g.groups = min(max(rows/max(t.minRows, g.rowsPerGroup), 1), t.cores*g.groupsPerCore)
	// Each group writes partial sums, so fewer groups are better if they process the rows in as many steps.
	steps := max(ceilDiv(rows, g.groups*g.rowsPerGroup), 1)
	g.groups = max(ceilDiv(rows, steps*g.rowsPerGroup), 1)
	return g
}

// prefetchByCopies prefetches rows to threadgroup memory. It takes up to 106 KB of a multiprocessor. Some GPUs other than
// Hopper have less.
func (g *rowGeometry) prefetchByCopies(dtype mlxc.DType) {
	g.copyThreads = g.threads
	copies := 2 * 2 * g.threads * g.vecsPerThread * g.vec * dtype.Size() // RowCopies
	sums := 0
	if g.rowsPerGroup > 1 {
		sums = g.rowsPerGroup * g.vecsPerThread * (g.vec + 1) * 32 * mlxc.Float32.Size() // GroupSums
	}
	g.memory = copies + sums + 3<<10 // two reductions and an unused GroupSums, each 1 KiB
}

// statisticsRowsPerStep returns the number of rows for which the statistics kernels of the norms load the weight once.
// With 16 rows, the weight is a fiftieth of the traffic of x and dy. A CPU loads the weight from a cache.
func statisticsRowsPerStep(backend mlxc.Backend) int {
	if backend == mlxc.BackendCPU {
		return 1
	}
	return 16
}

package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

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
var logitTable = map[mlxc.Backend]struct{ forward, both, backward logitGeometry }{
	// As of rowTable; a step ends where a row does, or soon after.
	mlxc.BackendCPU: {
		forward:  logitGeometry{maxThreads: 1, heldBytes: 4096 * 4, threads: 64, step: 256, beside: 1},
		both:     logitGeometry{maxThreads: 1, heldBytes: 4096 * 4, threads: 64, step: 256, beside: 1},
		backward: logitGeometry{maxThreads: 1, heldBytes: 4096 * 4, threads: 64, step: 256, beside: 1},
	},
	// A quarter of a thread's registers.
	mlxc.BackendMetal: {
		forward:  logitGeometry{maxThreads: 1024, heldBytes: 64, threads: 256 * 1024, step: 16, beside: 32},
		both:     logitGeometry{maxThreads: 1024, heldBytes: 64, threads: 256 * 1024, step: 16, beside: 32},
		backward: logitGeometry{maxThreads: 256, heldBytes: 64, step: 16, beside: 32},
	},
	// 64 KiB under way on each of 132 multiprocessors hide the latency of an H200's memory. Who goes
	// back to a row finds 128 KiB of it in the registers of 1024 threads, half of theirs, and some of
	// the rest in a cache of 50 MB: with one row on each. A block of 32 KiB for 256 threads makes
	// up for what a group must know of its row.
	mlxc.BackendCUDA: {
		forward:  logitGeometry{maxThreads: 256, heldBytes: 64, threads: 132 * 1024, resident: 1024, step: 16, beside: 32},
		both:     logitGeometry{maxThreads: 1024, heldBytes: 128, threads: 132 * 1024, resident: 1024, step: 16, beside: 32},
		backward: logitGeometry{maxThreads: 256, heldBytes: 128, resident: 1024, step: 16, beside: 32},
	},
}

// logitsOf is the geometry for so many rows of logits of a width and dtype.
func logitsOf(d mlxc.Backend, t logitGeometry, dtype mlxc.DType, rows, width int) rowGeometry {
	g := rowGeometry{heldAs: dtype, beside: t.beside}
	g.chunk = rowTable[d].packBytes / dtype.Size()
	if d == mlxc.BackendCPU {
		g.heldAs = mlxc.Float32 // what is computed with
		g.chunk = rowTable[d].packBytes / g.heldAs.Size()
	}
	held := t.heldBytes / g.heldAs.Size()
	g.threads = min(wholeSimdgroups(width, held), t.maxThreads)
	g.packs = max(held/g.chunk, 1)
	g.step = min(max(t.step/g.chunk, 1), g.packs)
	g.resident = t.resident / g.threads
	g.blocks, g.groups = 1, min(max(rows, 1), customkernels.MaxThreadgroupsYZ)
	if t.threads > 0 {
		g.groups = min(max(rows, 1), t.threads/g.threads)
	} else {
		block := g.threads * g.packs * g.chunk
		g.blocks = (width + block - 1) / block
	}
	return g
}

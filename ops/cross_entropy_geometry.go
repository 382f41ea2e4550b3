package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// lossKernelTuning holds the tuning of a cross-entropy kernel. Its threadgroups process rows of logits in blocks of
// columns (logit_block.h).
type lossKernelTuning struct {
	maxThreads      int // per threadgroup
	bytesPerThread  int // bytes of a row that a thread holds in registers
	deviceThreads   int // threads that fill the largest device; 0 for one threadgroup per block of columns
	coreThreads     int // threads resident on a core; 0 if the compiler decides
	elementsPerStep int // elements that a thread adds to its sums per step, at most
	minPerStep      int // the least elementsPerStep for rows that steps do not divide; 0 for elementsPerStep
	interleave      int // neighboring threads whose vectors alternate in a block
	stagedBlocks    int // most blocks in the threadgroup memory of a Hopper GPU, each of half a thread's bytes
}

var lossKernelCPU = lossKernelTuning{
	maxThreads: 1, bytesPerThread: 4096 * 4, deviceThreads: 64, elementsPerStep: 1024, minPerStep: 256, interleave: 1,
}

// lossTuning holds the tuning of cross_entropy_forward, cross_entropy_fwd_bwd and cross_entropy_backward by backend.
// fwd_bwd reads each row twice. In backward on GPUs, a threadgroup processes one block.
var lossTuning = map[mlxc.Backend]struct {
	vecBytes                  int // of a vector
	forward, fwdBwd, backward lossKernelTuning
}{
	// A threadgroup is one thread, a vector is a cache line, and 4096 floats of a row are an eighth of a fiber's stack
	// of 128 KiB. A step begins with a maximum, on which its exponentials wait. 64 groups balance the load of a few
	// cores. Backward has no sums, and the same kernel for all widths.
	mlxc.BackendCPU: {
		vecBytes: 64,
		forward:  lossKernelCPU,
		fwdBwd:   lossKernelCPU,
		backward: lossKernelTuning{
			maxThreads: 1, bytesPerThread: 4096 * 4, deviceThreads: 64, elementsPerStep: 256, interleave: 1,
		},
	},
	// The logits take a quarter of a thread's registers. 256 groups of 1024 threads are three per core of the largest
	// GPU.
	mlxc.BackendMetal: {
		vecBytes: 16,
		forward: lossKernelTuning{
			maxThreads: 1024, bytesPerThread: 64, deviceThreads: 256 * 1024,
			elementsPerStep: 16, interleave: 32,
		},
		fwdBwd: lossKernelTuning{
			maxThreads: 1024, bytesPerThread: 64, deviceThreads: 256 * 1024,
			elementsPerStep: 16, interleave: 32,
		},
		backward: lossKernelTuning{maxThreads: 256, bytesPerThread: 64, elementsPerStep: 16, interleave: 32},
	},
	// H200, 132 multiprocessors: 64 KiB of loads in flight on each hide the latency of memory. In fwd_bwd, rows of up to
	// 128 KiB are in the registers of 1024 threads (half of all registers). Of longer rows, the registers hold 64 KiB and
	// threadgroup memory 192 KiB. In backward a block of 32 KiB per 256 threads amortizes the loads of the row's state,
	// target and cotangent.
	mlxc.BackendCUDA: {
		vecBytes: 16,
		forward: lossKernelTuning{
			maxThreads: 256, bytesPerThread: 64, deviceThreads: 132 * 1024, coreThreads: 1024,
			elementsPerStep: 16, interleave: 32,
		},
		fwdBwd: lossKernelTuning{
			maxThreads: 1024, bytesPerThread: 128, deviceThreads: 132 * 1024, coreThreads: 1024,
			elementsPerStep: 16, interleave: 32, stagedBlocks: 3,
		},
		backward: lossKernelTuning{
			maxThreads: 256, bytesPerThread: 128, coreThreads: 1024,
			elementsPerStep: 16, interleave: 32,
		},
	},
}

// lossReductionTuning holds the tuning of reduced losses. The kernel cross_entropy_reduce has one threadgroup.
var lossReductionTuning = map[mlxc.Backend]struct {
	maxThreads int
	vec        int // elements of a vector
	maxCounted int // rows that each threadgroup of cross_entropy_fwd_bwd counts; MLX's operations count more rows
}{
	mlxc.BackendCPU:   {maxThreads: 1, vec: 16},
	mlxc.BackendMetal: {maxThreads: 1024, vec: 4, maxCounted: 512},
	// H200: 4224 threadgroups count 8192 rows in 9 µs, MLX's operations in 13 µs.
	mlxc.BackendCUDA: {maxThreads: 1024, vec: 4, maxCounted: 8192},
}

// lossGeometry is the launch geometry of a cross-entropy kernel.
type lossGeometry struct {
	threads       int        // per threadgroup
	groups        int        // threadgroups that share the rows
	blocks        int        // threadgroups that share the columns of a row; 1 except in backward on GPUs
	groupsPerCore int        // resident at a time; 0 if the compiler decides
	registerDType mlxc.DType // of the logits in registers
	vec           int        // elements of a vector
	vecsPerThread int
	vecsPerStep   int
	interleave    int
	stagedBlocks  int // in threadgroup memory
	memory        int // Launch.ThreadgroupMemory
}

// stepFor returns the elements of a step for rows of a width. A partial last step costs as much as a whole one, so steps
// are shorter if it would add more than an eighth to the row.
func (t lossKernelTuning) stepFor(width int) int {
	step := t.elementsPerStep
	for t.minPerStep > 0 && step > t.minPerStep && 8*ceilDiv(width, step)*step > 9*width {
		step /= 2
	}
	return step
}

// lossGeometryFor returns the geometry for rows × width logits of a dtype. t is the kernel's entry in lossTuning. `split`
// says that the logits are the first of two parts.
func lossGeometryFor(
	backend mlxc.Backend, t lossKernelTuning, dtype mlxc.DType, rows, width int, split bool,
) lossGeometry {
	g := lossGeometry{registerDType: dtype, interleave: t.interleave, blocks: 1}
	if backend == mlxc.BackendCPU {
		g.registerDType = mlxc.Float32 // converted once
	}
	elementSize := g.registerDType.Size()
	elementsPerThread := t.bytesPerThread / elementSize
	g.vec = lossTuning[backend].vecBytes / elementSize
	g.vecsPerThread = max(elementsPerThread/g.vec, 1)
	g.vecsPerStep = min(max(t.stepFor(width)/g.vec, 1), g.vecsPerThread)
	g.threads = min(wholeSimdgroups(width, elementsPerThread), t.maxThreads)
	if t.stagedBlocks > 0 && (split || width > g.threads*elementsPerThread) {
		g.vecsPerThread /= 2 // a second part takes registers, too
		g.stagedBlocks = min(t.stagedBlocks, ceilDiv(width, g.threads*g.vecsPerThread*g.vec)-1)
		if staged := g.stagedBlocks * g.threads * t.bytesPerThread / 2; staged > 47<<10 {
			g.memory = staged + 2<<10 // and two reductions
		}
	}
	g.groupsPerCore = t.coreThreads / g.threads
	if t.deviceThreads > 0 {
		g.groups = t.deviceThreads / g.threads
		if g.groupsPerCore > 0 { // the device runs all groups at once
			g.groups = t.deviceThreads / t.coreThreads * g.groupsPerCore
		}
		g.groups = min(max(rows, 1), g.groups)
		return g
	}
	g.groups = min(max(rows, 1), customkernels.MaxThreadgroupsYZ)
	block := g.threads * g.vecsPerThread * g.vec
	g.blocks = ceilDiv(width, block)
	return g
}

package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// ssmTuning holds the parameters of the launch geometry of SSMScan, by backend. A simdgroup owns a block of steps of a
// chunk, or of rows of a state, and iterates over panels of steps. Tiles of products among steps have a panel's rows as
// columns.
var ssmTuning = map[mlxc.Backend]struct {
	chunkGeometry
	blockElements int // limit of blockM · max(P, N)
	minBlock      int // least number of rows of a block and of a panel
	maxBlockM     int // rows of a block
	panelBytes    int // limit of the three panels, without their double buffers
	decayThreads  int // of a threadgroup of the kernels of decays
	minGroups     int // threadgroups that keep the device busy
}{
	// A simdgroup is one thread. Three tiles of 16 KiB, a tile of 64×8 scores and the packed columns of a product fit a
	// fiber's stack of 128 KiB. Panels of 8 steps keep the rounding error of float32 below that of single steps; panels
	// of 16 steps were 5 to 20 % faster, but missed the accuracy rule in one row of 723. In a chunk of 64 steps, the
	// products among steps cost half as much as the products with states of 64×128; longer chunks cost more time,
	// shorter ones more memory.
	mlxc.BackendCPU: {
		chunkGeometry: chunkGeometry{lanes: 1, simdgroups: 1, chunk: 64, maxBlock: 8},
		blockElements: 4096, minBlock: 8, maxBlockM: 64, panelBytes: 1 << 30, decayThreads: 1, minGroups: 32,
	},
	// Two tiles of 8 rows of 128 floats are 64 registers per lane, as in attention. The panels leave a part of the 32 KiB
	// of threadgroup memory to a second threadgroup if P and N are at most 64.
	mlxc.BackendMetal: {
		chunkGeometry: chunkGeometry{lanes: 32, simdgroups: 4, chunk: 64, maxBlock: 32},
		blockElements: 1024, minBlock: 8, maxBlockM: 16, panelBytes: 24 << 10, decayThreads: 64, minGroups: 256,
	},
	// An mma instruction multiplies 16 rows. Chunks of 128 steps halve the memory of states, and the products among
	// steps still cost less than the products with states.
	mlxc.BackendCUDA: {
		chunkGeometry: chunkGeometry{lanes: 32, simdgroups: 4, chunk: 128, maxBlock: 32},
		minBlock:      16, maxBlockM: 16, panelBytes: 24 << 10, decayThreads: 64, minGroups: 512,
	},
}

// ssmGeometry is the launch geometry of the kernels, in the terms of ssm.h.
type ssmGeometry struct {
	chunkGeometry
	blockM, blockN int
	memory         int // Launch.ThreadgroupMemory
}

func ssmGeometryFor(on target, dtype mlxc.DType, headDim, stateDim int) ssmGeometry {
	t := ssmTuning[on.backend]
	g := ssmGeometry{chunkGeometry: t.chunkGeometry, blockM: t.minBlock, blockN: t.minBlock}
	widest := max(headDim, stateDim)
	for g.blockM < t.maxBlockM && g.blockM*2*widest <= t.blockElements {
		g.blockM *= 2
	}
	perRow := (headDim+stateDim)*dtype.Size() + widest*mlxc.Float32.Size()
	for g.blockN < t.maxBlock && g.blockN*2*perRow <= t.panelBytes {
		g.blockN *= 2
	}
	if on.backend == mlxc.BackendCUDA {
		g.memory = g.deviceMemory(dtype, headDim, stateDim)
	}
	return g
}

// deviceMemory returns Launch.ThreadgroupMemory on CUDA: the bytes of the panels with two buffers if they exceed 48 KiB
// without, otherwise 0. A row has up to 16 bytes more than its elements (metal_panels.h).
func (g ssmGeometry) deviceMemory(dtype mlxc.DType, headDim, stateDim int) int {
	static, dynamic := 0, 0
	for _, row := range []int{headDim * dtype.Size(), stateDim * dtype.Size(), max(headDim, stateDim) * 4} {
		panel := g.blockN * (row + 16)
		dynamic += ceilDiv(2*panel, 1<<10) << 10
		if 2*panel <= 23<<10 { // such a panel may have two buffers
			panel *= 2
		}
		static += panel
	}
	if static <= 48<<10 {
		return 0
	}
	return dynamic
}

// blocks returns the number of threadgroups that share a chunk.
func (g ssmGeometry) blocks() int { return g.chunk / (g.blockM * g.simdgroups) }

// ssmParts returns the number of parts of a group's heads for ssm_db and ssm_dc, whose other axes have n threadgroups:
// the smallest divisor of `heads` that keeps the device busy, but at most 16, because each part takes memory.
func ssmParts(on target, heads, n int) int {
	parts := 1
	for p := 1; p <= min(heads, 16) && parts*n < ssmTuning[on.backend].minGroups; p++ {
		if heads%p == 0 {
			parts = p
		}
	}
	return parts
}

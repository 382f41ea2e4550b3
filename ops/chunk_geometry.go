package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// A chunkGeometry is the launch geometry of kernels that process chunks of consecutive steps of sequences with matrix
// products, in the terms of customkernels/shaders/gated_delta.h.
type chunkGeometry struct {
	lanes, simdgroups int // per simdgroup, per threadgroup
	chunk             int // steps of a chunk
	maxBlock          int // largest number of columns of a tile
}

// chunkTuning holds the launch geometry, by backend. A chunk of C steps costs C additional products per step for the
// scores, and C² operations for the inverse of a triangular matrix. A state of head_dim × valueDim floats is written for
// each chunk. So C is of the order of the head widths.
var chunkTuning = map[mlxc.Backend]chunkGeometry{
	// A simdgroup is one thread. A tile of 32 rows of 64 floats takes 8 KiB, so all tiles fit a fiber's stack of
	// 128 KiB and a second-level cache.
	mlxc.BackendCPU: {lanes: 1, simdgroups: 1, chunk: 32, maxBlock: 64},
	// Four simdgroups with 8 rows each. A square matrix of 32 steps takes 4 KiB of the 32 KiB of threadgroup memory, and
	// each panel takes 4 KiB.
	mlxc.BackendMetal: {lanes: 32, simdgroups: 4, chunk: 32, maxBlock: 32},
	// An mma instruction multiplies 16 rows. A square matrix of 64 steps takes 16 KiB of the 48 KiB of shared memory, and
	// a panel of 64 rows of 32 floats takes 9 KiB. Blocks of 32 columns give 64 threadgroups for 16 heads of 128 columns.
	mlxc.BackendCUDA: {lanes: 32, simdgroups: 4, chunk: 64, maxBlock: 32},
}

// threads returns the size of a threadgroup.
func (g chunkGeometry) threads() int { return g.lanes * g.simdgroups }

// slots returns the number of chunks of a head. If `sequences` is positive, it is an upper bound, because each packed
// sequence starts a new chunk. If `sequences` is 0, there are no packed sequences.
func (g chunkGeometry) slots(length, sequences int) int {
	if sequences == 0 {
		return ceilDiv(length, g.chunk)
	}
	return length/g.chunk + sequences
}

// block returns the number of columns of a tile for rows of this width, a multiple of 16.
func (g chunkGeometry) block(width int) int {
	block := g.maxBlock
	for width%block != 0 {
		block /= 2
	}
	return block
}

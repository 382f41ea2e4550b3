package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// transposeTileTuning holds the tuning of transpose_2d by backend.
var transposeTileTuning = map[mlxc.Backend]struct {
	threads   int // per threadgroup
	rowBytes  int // of a row of a tile, at most
	maxSide   int // rows and columns of a tile, at most
	vecBytes  int // of a vector, at most
	maxGroups int
}{
	// A thread copies one element at a time. Vectors are not faster, because they have to be assembled first. The cache
	// lines of a tile in both matrices stay in a cache of 32 KiB. 64 groups balance the load of a few cores.
	mlxc.BackendCPU: {threads: 1, rowBytes: 128, maxSide: 32, vecBytes: 1, maxGroups: 64},
	// One group per tile, up to the limits of a grid. A row is one cache line, or two if threadgroup memory suffices.
	mlxc.BackendMetal: {threads: 256, rowBytes: 128, maxSide: 64, vecBytes: 16, maxGroups: 1 << 22},
	mlxc.BackendCUDA:  {threads: 256, rowBytes: 256, maxSide: 64, vecBytes: 16, maxGroups: 1 << 22},
}

// transposeTiles is the launch geometry of transpose_2d.
type transposeTiles struct {
	threads    int    // per threadgroup
	side       int    // rows and columns of a tile
	vecX, vecY int    // elements of a vector of x and of y
	groups     [3]int // for the tiles along a column of x, along a row of x, and for the matrices
}

// transposeTilesFor returns the geometry of transpose_2d for matrices of rows × columns elements.
func transposeTilesFor(backend mlxc.Backend, dtype mlxc.DType, matrices, rows, columns int) transposeTiles {
	t := transposeTileTuning[backend]
	side := min(t.rowBytes/dtype.Size(), t.maxSide)
	vecFor := func(n int) int {
		n |= max(t.vecBytes/dtype.Size(), 1)
		return n & -n // the largest power of two that divides both numbers
	}
	g := transposeTiles{threads: t.threads, side: side, vecX: vecFor(columns), vecY: vecFor(rows)}
	g.groups = matrixGroups(t.maxGroups, matrices, ceilDiv(rows, side), ceilDiv(columns, side))
	return g
}

// transposeBlockTuning holds the tuning of transpose_2d_blocks on GPUs. A CPU thread does not have the registers for a
// block. 16 vectors along a row are two cache lines of x; 16 along a column are two cache lines of y. A block in half
// precision takes 96 registers including loads in flight, so 512 threads of a multiprocessor load 64 KiB at a time.
var transposeBlockTuning = struct {
	threads      int // per threadgroup
	blocksPerRow int // blocks of a threadgroup along a row of x
	vecBytes     int // of a row of a block
	maxGroups    int
}{threads: 256, blocksPerRow: 16, vecBytes: 16, maxGroups: 1 << 22}

// transposeBlocks is the launch geometry of transpose_2d_blocks.
type transposeBlocks struct {
	threads      int    // per threadgroup
	blocksPerRow int    // blocks of a threadgroup along a row of x
	side         int    // rows and columns of a block
	groups       [3]int // as in transposeTiles
}

// transposeBlocksFor returns the geometry of transpose_2d_blocks for matrices of rows × columns elements. ok is false
// on a CPU and if the matrices do not consist of whole blocks.
func transposeBlocksFor(
	backend mlxc.Backend, dtype mlxc.DType, matrices, rows, columns int,
) (g transposeBlocks, ok bool) {
	t := transposeBlockTuning
	g = transposeBlocks{threads: t.threads, blocksPerRow: t.blocksPerRow, side: t.vecBytes / dtype.Size()}
	height, width := g.threads/g.blocksPerRow*g.side, g.blocksPerRow*g.side // of a threadgroup's elements
	g.groups = matrixGroups(t.maxGroups, matrices, ceilDiv(rows, height), ceilDiv(columns, width))
	return g, backend != mlxc.BackendCPU && rows%g.side == 0 && columns%g.side == 0
}

// matrixGroups returns the numbers of threadgroups for the rows, the columns and the matrices of matrices of rows ×
// columns tiles. Their product is at most `limit`; matrices take precedence over rows, and rows over columns.
func matrixGroups(limit, matrices, rows, columns int) (groups [3]int) {
	for i, n := range []int{matrices, rows, columns} {
		n = min(n, limit, customkernels.MaxThreadgroupsYZ)
		groups[(i+2)%3] = n
		limit /= n
	}
	return groups
}

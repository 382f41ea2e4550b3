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

// transposeVectorTuning holds the tuning of transpose_2d_vectors on GPUs, measured on an H200. A row of y in a tile is two
// cache lines. A tile has 16 KiB. Four groups with 32 registers per thread fit a multiprocessor.
var transposeVectorTuning = struct {
	threads   int // per threadgroup
	rowBytes  int // of a row of y in a tile
	columns   int // of x in a tile
	vecBytes  int
	maxGroups int
}{threads: 512, rowBytes: 256, columns: 64, vecBytes: 16, maxGroups: 1 << 22}

// transposeVectors is the launch geometry of transpose_2d_vectors.
type transposeVectors struct {
	threads               int    // per threadgroup
	vec                   int    // elements per vector
	tileRows, tileColumns int    // of x
	groups                [3]int // as in transposeTiles
}

// transposeVectorsFor returns the geometry of transpose_2d_vectors for matrices of rows × columns elements. ok is false
// on a CPU, if the rows of x and y do not consist of whole vectors, and if a grid has no threadgroup for each tile.
func transposeVectorsFor(
	backend mlxc.Backend, dtype mlxc.DType, matrices, rows, columns int,
) (g transposeVectors, ok bool) {
	t := transposeVectorTuning
	g = transposeVectors{
		threads: t.threads, vec: t.vecBytes / dtype.Size(), tileRows: t.rowBytes / dtype.Size(), tileColumns: t.columns,
	}
	tiles := [3]int{ceilDiv(rows, g.tileRows), ceilDiv(columns, g.tileColumns), matrices}
	g.groups = matrixGroups(t.maxGroups, tiles[2], tiles[0], tiles[1])
	return g, backend != mlxc.BackendCPU && rows%g.vec == 0 && columns%g.vec == 0 && g.groups == tiles
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

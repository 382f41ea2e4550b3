package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// tileTable has what each class of devices wants of kernels that move tiles of matrices.
var tileTable = map[mlxc.Backend]struct {
	threads   int // in a threadgroup
	packBytes int // that a thread moves at a time, at most
	groups    int // at most
}{
	// One thread moves one element after the other, no slower than vectors that have to be
	// put together. 64 groups give each of a few cores several turns to even out.
	mlxc.BackendCPU: {threads: 1, packBytes: 1, groups: 64},
	// A group for every tile, within what a grid may have.
	mlxc.BackendMetal: {threads: 256, packBytes: 16, groups: 1 << 22},
	mlxc.BackendCUDA:  {threads: 256, packBytes: 16, groups: 1 << 22},
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
func tilesOf(d mlxc.Backend, dtype mlxc.DType, matrices, rows, columns int) tileGeometry {
	t := tileTable[d]
	side := 32 // of which a cache of 32 KiB keeps the lines of both matrices
	if d != mlxc.BackendCPU {
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
var blockTable = map[mlxc.Backend]struct {
	threads   int // in a threadgroup
	beside    int // of its threads along a row
	packBytes int // of a block's row
	groups    int // at most
}{
	// 16 packs are two cache lines of a row of the input, 16 below them two of the output's. A
	// block of halves takes 96 registers with what is on the way, so that 512 threads of a
	// multiprocessor load 64 KiB at a time.
	mlxc.BackendMetal: {threads: 256, beside: 16, packBytes: 16, groups: 1 << 22},
	mlxc.BackendCUDA:  {threads: 256, beside: 16, packBytes: 16, groups: 1 << 22},
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
func blocksOf(d mlxc.Backend, dtype mlxc.DType, matrices, rows, columns int) (g blockGeometry, ok bool) {
	t, ok := blockTable[d]
	if !ok {
		return g, false
	}
	g = blockGeometry{threads: t.threads, beside: t.beside, side: t.packBytes / dtype.Size()}
	height, width := g.threads/g.beside*g.side, g.beside*g.side
	g.groups = matrixGroups(t.groups, matrices, (rows+height-1)/height, (columns+width-1)/width)
	return g, rows%g.side == 0 && columns%g.side == 0
}

// matrixGroups are the groups along a grid's axes for so many matrices, and in each so many
// rows and columns of tiles, or fewer: as many as there may be in all, the matrices first.
func matrixGroups(left, matrices, rows, columns int) (groups [3]int) {
	for i, n := range []int{matrices, rows, columns} {
		n = min(n, left, customkernels.MaxThreadgroupsYZ)
		groups[2-i] = n
		left /= n
	}
	return groups
}

package ops

import (
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// attentionTable has what each class of devices wants of attention, whose simdgroups own
// tiles of rows and walk over panels of the other side's.
var attentionTable = map[mlxc.Backend]struct {
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
	mlxc.BackendCPU: {lanes: 1, simdgroups: 1, elements: 4096, least: 8, rows: 64, panel: math.MaxInt, columns: 32, registers: math.MaxInt},
	// 16 rows of 64 floats are 32 registers a lane, and so are 8 of 128: up to four such
	// tiles and the scores fit the 104 that a lane has with 512 threads on a core of
	// 208 KiB. Panels of 16 KiB let two threadgroups of 128 threads share a core's 32 KiB,
	// but pairs, which have up to 4 KiB of scores beside them.
	mlxc.BackendMetal: {lanes: 32, simdgroups: 4, elements: 1024, least: 8, rows: 16, panel: 16 << 10, columns: 32, registers: 128},
	// The 16 rows of an mma. Of 255 registers scores and addresses take some 60. What is beyond is fetched
	// from memory for every panel, which costs more than to put the two parts of scores together
	// (docs/h200).
	mlxc.BackendCUDA: {lanes: 32, simdgroups: 4, least: 16, rows: 16, panel: 16 << 10, columns: 64, registers: 192},
}

// exactProducts reports whether the products of a dtype's tiles, for heads of this width, are
// worth sums of their own errors: not those of 16 bits, and on CUDA not what is made of TF32
// (metal_tiles.h: narrow).
func exactProducts(d mlxc.Backend, dtype mlxc.DType, width int) bool {
	return dtype == mlxc.Float32 && (d != mlxc.BackendCUDA || width <= 16)
}

// forwardResident is how many threadgroups of attention's forward kernel a core is to have at a
// time, 0 for as many as come about. What a lane of CUDA holds of 16 bits fits the 168 registers that
// are left to each of three; without being told, compilers take more, and leave two.
func forwardResident(d mlxc.Backend, dtype mlxc.DType, width int) int {
	if d == mlxc.BackendCUDA && dtype.Size() == 2 && width <= 128 {
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
func attentionOf(d mlxc.Backend, dtype mlxc.DType, width, valueWidth, length int, held heldRow) attentionGeometry {
	t := attentionTable[d]
	g := attentionGeometry{lanes: t.lanes, simdgroups: t.simdgroups, rows: t.least, columns: t.least}
	for g.rows < t.rows && g.rows*2*max(width, valueWidth) <= t.elements {
		g.rows *= 2
	}
	operandSize := mlxc.Float32.Size()
	if d == mlxc.BackendCUDA {
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

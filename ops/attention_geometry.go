package ops

import (
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// attentionTuning holds the parameters of the launch geometry of attention, by backend. A simdgroup owns a block of
// queries and iterates over panels of keys and values, or it owns a block of keys and iterates over panels of queries.
var attentionTuning = map[mlxc.Backend]struct {
	lanes         int // per simdgroup
	simdgroups    int // per threadgroup
	blockElements int // limit of blockM · max(head_dim, valueDim)
	minBlockM     int // rows of a block
	maxBlockM     int
	panelBytes    int // limit of the two panels (k and v, or q and dout) together
	maxBlockN     int // rows of a panel
	registers     int // limit of 32-bit registers per lane for its rows; beyond it, pairs of simdgroups share rows
}{
	// A simdgroup is one thread. A tile of 64 rows of 64 floats takes 16 KiB. Four of these, three tiles of scores, which
	// are half as large, and a converted panel fit a fiber's stack of 128 KiB. Panels stay in device memory.
	mlxc.BackendCPU: {
		lanes: 1, simdgroups: 1, blockElements: 4096, minBlockM: 8, maxBlockM: 64,
		panelBytes: math.MaxInt, maxBlockN: 32, registers: math.MaxInt,
	},
	// 16 rows of 64 floats are 32 registers per lane, as are 8 rows of 128. A core has 208 KiB of registers: 208 per
	// lane for two threadgroups of 128 threads, 104 for four. Four tiles (128 registers) and the scores fit 208
	// registers. Panels of 16 KiB let two threadgroups share a core's 32 KiB of threadgroup memory, except with pairs,
	// which need up to 4 KiB more for partial scores.
	mlxc.BackendMetal: {
		lanes: 32, simdgroups: 4, blockElements: 1024, minBlockM: 8, maxBlockM: 16,
		panelBytes: 16 << 10, maxBlockN: 32, registers: 128,
	},
	// An mma instruction multiplies 16 rows. Of 255 registers, scores and addresses take about 60. Spilled registers
	// are reloaded for every panel, which costs more than the exchange of partial scores between the simdgroups of a
	// pair (docs/h200).
	mlxc.BackendCUDA: {
		lanes: 32, simdgroups: 4, minBlockM: 16, maxBlockM: 16,
		panelBytes: 16 << 10, maxBlockN: 64, registers: 192,
	},
}

// hasExactProducts reports whether tile products are exact to float32, so that the rounding error of a delta computed
// from the output would matter. Products of 16-bit operands are less exact. So is TF32, which CUDA uses for heads wider
// than 16 (see narrow in metal_tiles.h). width is the larger of head_dim and valueDim.
func hasExactProducts(b mlxc.Backend, dtype mlxc.DType, width int) bool {
	return dtype == mlxc.Float32 && (b != mlxc.BackendCUDA || width <= 16)
}

// forwardGroupsPerCore returns the minimum number of threadgroups of attention_forward on a core, or 0 for no minimum.
// On CUDA a lane with 16-bit operands fits 168 registers, which three threadgroups on a core allow. Without a minimum
// the compiler uses more registers, and only two threadgroups fit.
func forwardGroupsPerCore(b mlxc.Backend, dtype mlxc.DType, width int) int {
	if b == mlxc.BackendCUDA && dtype.Size() == 2 && width <= 128 {
		return 3
	}
	return 0
}

// attentionGeometry is the launch geometry of an attention kernel, in the terms of attention.h.
type attentionGeometry struct {
	lanes, simdgroups int  // lanes is warpgroupLanes if tiles belong to warpgroups
	paired            bool // pairs of simdgroups share rows
	blockM, blockN    int
	memory            int // Launch.ThreadgroupMemory
	groupsPerCore     int // Launch.MinGroupsPerCore
}

// rowFootprint describes what a simdgroup keeps while it iterates over panels.
type rowFootprint struct {
	inputs, accumulators int  // elements per row
	valueProducts        bool // it computes products with v beside the scores
	storedInputs         bool // a warpgroup keeps the inputs in threadgroup memory (StoredOperand)
	capped               bool // a soft cap takes registers for each score
}

// attentionGeometryFor returns the geometry of a kernel with this footprint for `length` rows. Warpgroups do not support
// an added mask.
func attentionGeometryFor(
	on target, dtype mlxc.DType, headDim, valueDim, length int, footprint rowFootprint,
	mask maskKind,
) attentionGeometry {
	b := on.backend
	if parts := warpgroupParts(headDim, valueDim, footprint); on.warpgroups && parts > 0 &&
		dtype.Size() == 2 && mask != addedMask && length > 8 {
		return warpgroupGeometry(headDim, valueDim, parts, footprint, mask)
	}
	if on.warpgroups && dtype == mlxc.Float32 && mask != addedMask && length > 8 && hasFloatWarpgroups(headDim, valueDim) {
		return floatWarpgroupGeometry(headDim, valueDim, footprint)
	}
	t := attentionTuning[b]
	g := attentionGeometry{lanes: t.lanes, simdgroups: t.simdgroups, blockM: t.minBlockM, blockN: t.minBlockM}
	for g.blockM < t.maxBlockM && g.blockM*2*max(headDim, valueDim) <= t.blockElements {
		g.blockM *= 2
	}
	inputSize := mlxc.Float32.Size()
	if b == mlxc.BackendCUDA {
		inputSize = dtype.Size() // metal_panels.h keeps operands in their dtype
	}
	registers := g.blockM * (footprint.inputs*inputSize/mlxc.Float32.Size() + footprint.accumulators) / g.lanes
	// Half of a head must consist of whole fragments of 8 columns.
	g.paired = registers > t.registers && headDim%16 == 0 && valueDim%16 == 0
	if length <= 8 { // for example one token at a time in decoding
		g.blockM, g.simdgroups = t.minBlockM, g.parts()
	}
	hasLargePanels := on.warpgroups && dtype == mlxc.Float32 && max(headDim, valueDim) > 64 && length > 8
	if hasLargePanels {
		t.panelBytes *= 2
	}
	for g.blockN < t.maxBlockN && g.blockN*2*(headDim+valueDim)*dtype.Size() <= t.panelBytes {
		g.blockN *= 2
	}
	if hasLargePanels {
		g.enlargePanels(headDim, valueDim)
	}
	return g
}

// enlargePanels double-buffers panels of floats in the dynamic shared memory of a GPU with warpgroups, two threadgroups
// to a core. Heads wider than 128 leave room for one, which then has twice the simdgroups, so that more rows share a
// panel. On an H200 this saves 9 to 17 % of the time for heads of 128 and 256; heads of 64 gain nothing.
func (g *attentionGeometry) enlargePanels(headDim, valueDim int) {
	const (
		padding   = 4       // floats of a row of a panel
		variables = 6 << 10 // bytes of statistics, and the alignment of variables
	)
	if max(headDim, valueDim) > 128 {
		g.simdgroups *= 2
	}
	row := headDim + valueDim + 2*g.parts()*padding
	g.memory = 2*g.blockN*row*4 + variables
	if g.paired {
		g.memory += g.simdgroups * g.blockM * g.blockN * 4 // partial scores
	}
}

// parts returns the number of simdgroups that share rows.
func (g attentionGeometry) parts() int {
	if g.paired {
		return 2
	}
	return 1
}

// threads returns the size of a threadgroup.
func (g attentionGeometry) threads() int { return g.lanes * g.simdgroups }

// groups returns the number of threadgroups for `length` rows. If `sequences` is positive, it is an upper bound,
// because each packed sequence starts a new threadgroup. If `sequences` is 0, there are no packed sequences.
func (g attentionGeometry) groups(length, sequences int) int {
	rows := g.blockM * g.simdgroups / g.parts()
	if sequences == 0 {
		return (length + rows - 1) / rows
	}
	return length/rows + sequences
}

// keyParts returns the number of threadgroups of attention_gradients for each of n heads of keys, whose query heads have
// this number of blocks: 32 threadgroups in all, but at most 4, because each part of dk and dv takes the memory of k and
// v in float32.
func keyParts(n, blocks int) int { return min((32+n-1)/n, 4, blocks) }

// warpgroupWidths are the numbers of columns of a row that a warpgroup supports in every kernel.
var warpgroupWidths = []int{64, 72, 80, 96, 128}

// warpgroupParts returns the number of warpgroups that share the columns of rows of these widths, or 0 if warpgroups do
// not support the widths. In the forward pass a lane has the registers for 192 columns.
func warpgroupParts(headDim, valueDim int, footprint rowFootprint) int {
	isForward := !footprint.valueProducts
	for parts := 1; parts <= 2; parts++ {
		fits := func(width int) bool {
			return width%parts == 0 && slices.Contains(warpgroupWidths, width/parts) ||
				width == 192 && parts == 1 && isForward
		}
		if fits(headDim) && fits(valueDim) {
			return parts
		}
	}
	return 0
}

// warpgroupLanes is LANES of kernels whose tiles belong to warpgroups.
const warpgroupLanes = 128

// warpgroupGeometry returns the geometry of a kernel whose tiles belong to warpgroups of 128 lanes. A tile has 64 rows
// of 16-bit elements. Panels are double-buffered in dynamic shared memory. They have 64 rows. For heads of 64 without a
// cap they have 128 rows in the forward pass, and three buffers in the kernels of gradients if there is no mask. A
// warpgroup's columns are padded to a multiple of 64. A threadgroup is one warpgroup, or a pair for wide heads, whose
// memory leaves no room for a second threadgroup on a core. Otherwise several threadgroups on a core hide each other's
// barriers and exponentials. The core's registers limit their number: it has 512 for each lane of a warpgroup. A lane
// needs about 24 registers for addresses. For each row of a panel it needs half a register for scores and a quarter for
// rounded scores, and in backward kernels another half for the gradients of scores.
func warpgroupGeometry(headDim, valueDim, parts int, footprint rowFootprint, mask maskKind) attentionGeometry {
	const (
		rows          = 64
		coreRegisters = 512
		addresses     = 24
		variables     = 3 << 10 // bytes of smaller variables, each aligned to 1 KiB
		coreMemory    = 228 << 10
		reserved      = 1 << 10 // bytes of a core's memory, by CUDA for each threadgroup
	)
	g := attentionGeometry{
		lanes: warpgroupLanes, simdgroups: parts, paired: parts == 2, blockM: rows, blockN: rows, groupsPerCore: 1,
	}
	buffers := 2
	if !footprint.capped && max(headDim, valueDim) == rows {
		switch {
		case !footprint.valueProducts:
			g.blockN = 2 * rows
		case footprint.accumulators > 0 && mask == noMask:
			buffers = 3
		}
	}
	padded := func(width int) int { return (width/parts + 63) / 64 * 64 * parts }
	columns := padded(headDim) + padded(valueDim)
	g.memory = buffers*g.blockN*columns*2 + variables
	if buffers == 3 {
		g.memory += 1 << 10 // for the statistics
	}
	held := rows * (footprint.inputs/2 + footprint.accumulators) / warpgroupLanes
	if footprint.storedInputs {
		held = rows * footprint.accumulators / warpgroupLanes
		g.memory += rows * columns * 2
	}
	if g.paired {
		g.memory += parts * rows * g.blockN * 4 // partial scores
		return g
	}
	scores := g.blockN * 3 / 4
	if footprint.valueProducts {
		scores = g.blockN * 5 / 4
	}
	g.groupsPerCore = min(coreRegisters/(held+scores+addresses), coreMemory/(g.memory+reserved))
	return g
}

package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// hasFloatWarpgroups reports whether warpgroups multiply float32 rows of these widths, which they do as TF32.
func hasFloatWarpgroups(headDim, valueDim int) bool {
	isSupported := func(width int) bool { return width == 64 || width == 128 }
	return mlxc.TF32Enabled() && isSupported(headDim) && isSupported(valueDim)
}

// floatWarpgroupGeometry returns the geometry of a kernel whose tiles belong to warpgroups and have 64 rows of floats.
// Two warpgroups share panels, because rounding and transposing a panel in shared memory takes as long as its products
// with 64 rows. A panel has 64 rows, or 32 if memory (dk and dv) or registers (dq with a cap) do not suffice.
func floatWarpgroupGeometry(headDim, valueDim int, footprint rowFootprint) attentionGeometry {
	const (
		rows      = 64
		floatSize = 4
		variables = 3 << 10 // bytes of smaller variables, each aligned to 1 KiB
	)
	g := attentionGeometry{lanes: warpgroupLanes, simdgroups: 2, blockM: rows, blockN: rows, groupsPerCore: 1}
	// A panel has two buffers for copies, and a third one if it is transposed.
	stored, panelRow := 0, 2*headDim+3*valueDim
	switch {
	case footprint.storedInputs:
		g.blockN = rows / 2
		stored, panelRow = headDim+valueDim, 3*(headDim+valueDim)
	case footprint.valueProducts:
		if footprint.capped {
			g.blockN = rows / 2
		}
		stored, panelRow = valueDim, 3*headDim+2*valueDim
	}
	g.memory = (g.simdgroups*rows*stored+g.blockN*panelRow)*floatSize + variables
	return g
}

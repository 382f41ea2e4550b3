package ops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// The memory of warpgroups fits the 227 KiB of a block, and rows without a warpgroup's geometry keep simdgroups of 32.
func TestGeometryOfWarpgroups(t *testing.T) {
	on := target{backend: mlxc.BackendCUDA, warpgroups: true}
	widths := []int{64, 72, 80, 96, 128, 192, 256}
	for _, headDim := range widths {
		for _, valueDim := range widths {
			for _, mask := range []maskKind{noMask, booleanMask} {
				both := headDim + valueDim
				for name, footprint := range map[string]rowFootprint{
					"forward": {inputs: headDim, accumulators: valueDim},
					"dq":      {inputs: both, accumulators: headDim, valueProducts: true},
					"dkv":     {inputs: both, accumulators: both, valueProducts: true, storedInputs: true},
				} {
					parts := warpgroupParts(headDim, valueDim, footprint)
					if parts == 0 {
						require.Greater(t, max(headDim, valueDim), 128)
						require.Less(t, min(headDim, valueDim), 128)
						continue
					}
					const reserved = 1 << 10 // by CUDA for each threadgroup
					g := attentionGeometryFor(on, mlxc.Float16, headDim, valueDim, 100, footprint, mask)
					require.Equal(t, parts*128, g.threads(), name)
					require.GreaterOrEqual(t, g.groupsPerCore, 3-parts, name)
					require.LessOrEqual(t, g.groupsPerCore*(g.memory+reserved), 228<<10, name)
					if hasFloatWarpgroups(headDim, valueDim) {
						g = attentionGeometryFor(on, mlxc.Float32, headDim, valueDim, 100, footprint, mask)
						require.Equal(t, warpgroupLanes, g.lanes, name)
						require.LessOrEqual(t, g.groupsPerCore*(g.memory+reserved), 228<<10, name)
					}
				}
			}
		}
	}
	simdgroups := func(on target, dtype mlxc.DType, headDim, length int, mask maskKind) {
		t.Helper()
		g := attentionGeometryFor(on, dtype, headDim, 64, length, rowFootprint{inputs: headDim, accumulators: 64}, mask)
		require.Equal(t, 32, g.lanes)
		require.Zero(t, g.memory)
	}
	simdgroups(on, mlxc.Float32, 64, 8, noMask)
	simdgroups(on, mlxc.Float32, 64, 100, addedMask)
	simdgroups(target{backend: mlxc.BackendCUDA}, mlxc.Float32, 64, 100, noMask)
	simdgroups(on, mlxc.Float16, 88, 100, noMask)
	simdgroups(on, mlxc.Float16, 256, 100, noMask)
	simdgroups(on, mlxc.Float16, 64, 8, noMask)
	simdgroups(on, mlxc.Float16, 64, 100, addedMask)
	simdgroups(target{backend: mlxc.BackendCUDA}, mlxc.Float16, 64, 100, noMask)
}

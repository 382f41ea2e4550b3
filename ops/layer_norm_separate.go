package ops

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops/internal/norms"
)

var layerNormSeparateKernels = newShaderFile("layer_norm_separate.metal")

func init() { norms.LayerNormSeparate = layerNormSeparate }

// layerNormSeparate implements separate.LayerNorm.
func layerNormSeparate(x, weight, bias *mlxc.Array, eps float32) *mlxc.Array {
	return layerNorm("separate.LayerNorm", x, weight, bias, eps, layerNormBackwardSeparate)
}

// layerNormBackwardSeparate computes the results of layerNormBackward in three kernels.
func layerNormBackwardSeparate(on target, x, weight, bias, dy *mlxc.Array, eps float32) []*mlxc.Array {
	if x.Size() == 0 {
		return zerosLike(x, weight, bias)
	}
	n := newNormGradient(x, weight, dy, eps)
	defer n.free()
	g := rowGeometryFor(on.backend, x.DType(), n.rows, n.width)
	// Each group loads the weight once, which is a fortieth of the traffic of 14 rows.
	g.groups = max(min(g.groups, n.rows/14), 1)
	g.threads = min(g.threads, layerNormThreads)
	input := on.launch(layerNormSeparateKernels.kernel("layer_norm_bwd_input"), customkernels.Launch{
		Grid:        [3]int{g.groups * g.threads},
		Threadgroup: [3]int{g.threads},
		Template:    n.template(g).weightedArgs(),
		Outputs:     []mlxc.Output{n.like(), {Shape: []int{n.rows, 2}, DType: mlxc.Float32}},
	}, slices.Concat(n.operands, n.scalars)...)
	dx, statistics := input[0], input[1]
	defer statistics.Free()
	parameters := []*mlxc.Array{weight, bias}
	var sums []*mlxc.Array
	if hasAny(parameters) {
		sums = layerNormParameterSums(on, n, statistics, parameters)
	}
	return gradients(dx, parameters, sums)
}

// layerNormParameterSums returns the gradients of the parameters that are not nil.
func layerNormParameterSums(on target, n normGradient, statistics *mlxc.Array, parameters []*mlxc.Array) []*mlxc.Array {
	g := gammaGeometry(on.backend, n.x.DType(), n.rows, n.width)
	output := n.partialSums(g.groups, parameters)
	if g.groups == 1 {
		output.DType = n.x.DType()
	}
	partial := on.launch(layerNormSeparateKernels.kernel("layer_norm_bwd_gamma_partial"), customkernels.Launch{
		Grid:        [3]int{g.blocks * g.threads, g.groups},
		Threadgroup: [3]int{g.threads, 1},
		Template:    n.template(g).gammaPartialArgs(output.DType, parameters[1] != nil),
		Outputs:     []mlxc.Output{output},
	}, slices.Concat([]*mlxc.Array{n.x, n.dy, statistics}, n.scalars[:2])...)[0]
	defer partial.Free()
	if g.groups == 1 {
		flat := partial.Reshape(-1)
		defer flat.Free()
		return flat.Split(flat.Size()/n.width, 0)
	}
	return columnSumBy(on, layerNormSeparateKernels.kernel("layer_norm_bwd_gamma_reduce"), partial, n.x.DType())
}

// gammaGeometry returns the geometry of layer_norm_bwd_gamma_partial. Each simdgroup processes all columns of a block
// in a part of the rows. A group has at least 512 rows on GPUs: the traffic of its partial sums, four floats per
// column, is then less than a hundredth of the traffic of its rows in half precision.
func gammaGeometry(backend mlxc.Backend, dtype mlxc.DType, rows, width int) rowGeometry {
	g := rowGeometryFor(backend, dtype, rows, width)
	lanes := min(g.threads, 32)
	g.blocks = ceilDiv(width, lanes*g.vecsPerThread*g.vec)
	g.threads = columnTuning[backend].threads
	g.groups = max(min(g.groups, rows/(64*g.threads/lanes)), 1)
	return g
}

package ops

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops/internal/norms"
)

var rmsNormSeparateKernels = newShaderFile("rms_norm_separate.metal")

func init() { norms.RMSNormSeparate = rmsNormSeparate }

// rmsNormSeparate implements separate.RMSNorm.
func rmsNormSeparate(x, weight *mlxc.Array, eps float32) *mlxc.Array {
	return rmsNorm("separate.RMSNorm", x, weight, eps, rmsNormBackwardSeparate)
}

// rmsNormBackwardSeparate computes the results of rmsNormBackward in three kernels.
func rmsNormBackwardSeparate(on target, x, weight, dy *mlxc.Array, eps float32) []*mlxc.Array {
	if x.Size() == 0 {
		return zerosLike(x, weight)
	}
	n := newNormGradient(x, weight, dy, eps)
	defer n.free()
	g := rowGeometryFor(on.backend, x.DType(), n.rows, n.width)

	rmsInv := on.launch(rmsNormSeparateKernels.kernel("rms_norm_compute_rms_inv"), customkernels.Launch{
		Grid:        [3]int{g.groups * g.threads},
		Threadgroup: [3]int{g.threads},
		Template:    n.template(g).vecArgs(),
		Outputs:     []mlxc.Output{{Shape: []int{n.rows}, DType: mlxc.Float32}},
	}, slices.Concat([]*mlxc.Array{x}, n.scalars)...)[0]
	defer rmsInv.Free()

	dx := on.launch(rmsNormSeparateKernels.kernel("rms_norm_backward_dx"), customkernels.Launch{
		Grid:        [3]int{g.groups * g.threads},
		Threadgroup: [3]int{g.threads},
		Template:    n.template(g).weightedArgs(),
		Outputs:     []mlxc.Output{n.like()},
	}, slices.Concat(n.operands, []*mlxc.Array{rmsInv}, n.scalars[:2])...)[0]
	if weight == nil {
		return []*mlxc.Array{dx, nil}
	}

	c := columnSumTuning[on.backend].columnGeometry
	c.vec = max(c.vec, g.vec)
	dw := on.launch(rmsNormSeparateKernels.kernel("rms_norm_backward_dw"), customkernels.Launch{
		Grid:        [3]int{c.threadgroups(n.width) * c.threads},
		Threadgroup: [3]int{c.threads},
		Template:    weightGradientTemplate{x.DType(), c.vec, c.simdgroups()}.args(),
		Outputs:     []mlxc.Output{{Shape: []int{n.width}, DType: x.DType()}},
	}, slices.Concat([]*mlxc.Array{x, n.dy, rmsInv}, n.scalars[:2])...)[0]
	return []*mlxc.Array{dx, dw}
}

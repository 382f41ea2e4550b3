package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var normForwardKernels = newShaderFile("norm_forward.metal")

// rmsNormForward returns the value of RMSNorm: on a CPU by a kernel of this project, on a GPU by MLX's.
func rmsNormForward(on target, x, weight *mlxc.Array, eps float32) *mlxc.Array {
	if on.backend != mlxc.BackendCPU || x.Size() == 0 {
		return mlxc.RMSNorm(x, weight, eps)
	}
	return normForward(on, "rms_norm_forward", x, eps, []*mlxc.Array{weight})
}

// layerNormForward returns the value of LayerNorm, as rmsNormForward does.
func layerNormForward(on target, x, weight, bias *mlxc.Array, eps float32) *mlxc.Array {
	if on.backend != mlxc.BackendCPU || x.Size() == 0 {
		return mlxc.LayerNorm(x, weight, bias, eps)
	}
	return normForward(on, "layer_norm_forward", x, eps, []*mlxc.Array{weight, bias}, hasBiasArg(bias != nil))
}

// normForward launches a kernel of norm_forward.metal. parameters are its operands after x, nil for an omitted one; the
// first is the weight.
func normForward(
	on target, kernel string, x *mlxc.Array, eps float32, parameters []*mlxc.Array, options ...mlxc.TemplateArg,
) *mlxc.Array {
	width := x.Dim(-1)
	rows := x.Size() / width
	g := independentRowGeometry(on.backend, x.DType(), rows, width)
	template := rowTemplate{dtype: x.DType(), geometry: g, hasWeight: parameters[0] != nil}
	inputs := []*mlxc.Array{x}
	for _, p := range parameters {
		if p == nil {
			p = x // not read
		}
		inputs = append(inputs, p)
	}
	return on.launch(normForwardKernels.kernel(kernel), customkernels.Launch{
		Grid:        [3]int{g.groups * g.threads},
		Threadgroup: [3]int{g.threads},
		Template:    append(append(template.vecArgs(), template.weightArg()), options...),
		Outputs:     []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}},
	}, append(inputs, rowScalars(rows, width, eps)...)...)[0]
}

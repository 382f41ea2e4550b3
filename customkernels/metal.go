package customkernels

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// launchMetal adds MLX's custom kernel to the graph.
func (k *Kernel) launchMetal(l Launch, inputs []*mlxc.Array) ([]*mlxc.Array, error) {
	return k.metal.Apply(mlxc.KernelLaunch{
		Outputs: l.Outputs, Grid: l.Grid, Threadgroup: l.Threadgroup,
		Template: k.templateArgs(l), InitValue: l.InitValue,
	}, k.padded(inputs)...)
}

// padded returns the inputs, padded to at least 8 elements where Pads is set: the kernel declares device memory, and
// MLX passes smaller inputs in constant memory.
func (k *Kernel) padded(inputs []*mlxc.Array) []*mlxc.Array {
	inputs = slices.Clone(inputs)
	for i, a := range inputs {
		if n := a.Size(); n < shader.InDevice && k.loaded.Pads[i] {
			inputs[i] = mlxc.Concatenate(0, a.Reshape(n), mlxc.Zeros(a.DType(), shader.InDevice-n))
		}
	}
	return inputs
}

// templateArgs returns the template arguments in the order of the function's parameters, under the names in the source
// for MLX.
func (k *Kernel) templateArgs(l Launch) []mlxc.TemplateArg {
	args := make([]mlxc.TemplateArg, len(k.parsed.Template))
	for i, name := range k.source.TemplateNames {
		args[i] = mlxc.TemplateArg{Name: name, Value: k.templateValue(l, i)}
	}
	return args
}

// templateValue returns the argument of template parameter i.
func (k *Kernel) templateValue(l Launch, i int) any {
	name := k.parsed.Template[i].Name
	return l.Template[slices.IndexFunc(l.Template, func(a mlxc.TemplateArg) bool { return a.Name == name })].Value
}

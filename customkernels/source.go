package customkernels

import (
	"fmt"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// MetalSource returns the Metal source that MLX generates for a launch on these inputs, without MLX's prelude. The
// Metal, host and CUDA executors and the checker all start from this text.
func (k *Kernel) MetalSource(l Launch, inputs ...*mlxc.Array) (string, error) {
	l = k.withDefaults(l)
	if err := k.check(l, inputs); err != nil {
		return "", err
	}
	return k.generate(l, inputs)
}

// generate returns the Metal source of a launch. MLX generates it on any machine, during export.
func (k *Kernel) generate(l Launch, inputs []*mlxc.Array) (string, error) {
	// Zeros instead of the inputs, which may be tracers of a transform.
	var zeros []*mlxc.Array
	for i, a := range inputs {
		zeros = append(zeros, mlxc.Zeros(a.DType(), k.sizeClass(i, a)...))
	}
	l.Grid = [3]int{1, 1, 1} // the text does not depend on the grid, which may have no threads
	l.Outputs = slices.Clone(l.Outputs)
	for i := range l.Outputs {
		l.Outputs[i].Shape = []int{1}
	}
	nodes, err := mlxc.Trace(func(args []*mlxc.Array) (outputs []*mlxc.Array) {
		var err error
		mlxc.WithPlaceholderGPU(func() { outputs, err = k.launchMetal(l, args) })
		if err != nil {
			return []*mlxc.Array{mlxc.InvalidArray(err)}
		}
		return outputs
	}, zeros)
	for _, a := range zeros {
		a.Free()
	}
	if err != nil {
		return "", err
	}
	for _, n := range nodes {
		if n.Primitive == "CustomKernel" && len(n.Strings) >= 2 {
			return n.Strings[1], nil
		}
	}
	return "", fmt.Errorf("MLX %s exported no custom kernel: its export format differs from the pinned version's",
		mlxc.Version())
}

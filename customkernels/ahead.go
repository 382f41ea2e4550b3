package customkernels

import (
	"context"
	"fmt"
	"slices"

	"github.com/mlxgrad/mlxgrad/internal/ahead"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// collect passes the program of a launch to add instead of running the launch. It returns zeros as the outputs.
func (k *Kernel) collect(add func(ahead.Program), l Launch, inputs []*mlxc.Array) []*mlxc.Array {
	var arguments []string
	for i, p := range k.parsed.Template {
		arguments = append(arguments, fmt.Sprintf("%s=%v", p.Name, k.templateValue(l, i)))
	}
	dtypes, classes := make([]mlxc.DType, len(inputs)), make([][]int, len(inputs))
	for i, a := range inputs {
		dtypes[i], classes[i] = a.DType(), k.sizeClass(i, a)
		arguments = append(arguments, fmt.Sprintf("%s: %v%v", k.source.InputNames[i], dtypes[i], classes[i]))
	}
	signature, values := k.signature(nil, l, inputs), valuesOf(inputs).inputs
	if mlxc.CurrentBackend() == mlxc.BackendCUDA {
		signature = k.cudaKey(l, inputs, values)
	}
	l.Outputs, l.Template = slices.Clone(l.Outputs), slices.Clone(l.Template)
	add(ahead.Program{
		File:      k.loaded.File,
		Kernel:    k.name,
		Signature: string(signature),
		Arguments: arguments,
		Compile: func(ctx context.Context) error {
			backend := mlxc.CurrentBackend()
			if ctx.Err() != nil || backend == mlxc.BackendMetal {
				return ctx.Err()
			}
			zeros := make([]*mlxc.Array, len(dtypes)) // the inputs themselves may have been freed
			for i := range zeros {
				zeros[i] = mlxc.Zeros(dtypes[i], classes[i]...)
				defer zeros[i].Free()
			}
			if backend == mlxc.BackendCUDA {
				_, err := k.cudaKernel(ctx, l, zeros, values)
				return err
			}
			_, err := k.program(l, zeros)
			return err
		},
	})
	outputs := make([]*mlxc.Array, len(l.Outputs))
	for i, o := range l.Outputs {
		outputs[i] = mlxc.Zeros(o.DType, o.Shape...)
	}
	return outputs
}

package silu

import (
	"embed"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

//go:embed silu.metal
var files embed.FS

// New returns the function x·σ(x) of one array.
func New() (mlxc.Func, error) {
	library, err := customkernels.Load(files, "silu.metal")
	if err != nil {
		return nil, err
	}
	forward, err := library.Kernel("silu")
	if err != nil {
		return nil, err
	}
	backward, err := library.Kernel("silu_backward")
	if err != nil {
		return nil, err
	}
	launch := func(inputs []*mlxc.Array) customkernels.Launch {
		x := inputs[0]
		return customkernels.Launch{
			Grid:        [3]int{x.Size()},
			Threadgroup: [3]int{256},
			Template:    []mlxc.TemplateArg{{Name: "T", Value: x.DType()}},
			Outputs:     []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}},
		}
	}
	return customkernels.WithVJP(forward, launch, func(inputs, cotangents, _ []*mlxc.Array) []*mlxc.Array {
		return backward.Launch(launch(inputs), inputs[0], cotangents[0])
	}), nil
}

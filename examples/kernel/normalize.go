package main

import (
	"embed"
	"fmt"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

//go:embed normalize.metal
var shaders embed.FS

// loadNormalize returns a function that scales each row of x, float32 of shape (rows, width), to length 1. Its gradient
// is a kernel, too. Rows of zeros give NaN.
func loadNormalize() (func(x *mlxc.Array) *mlxc.Array, error) {
	library, err := customkernels.Load(shaders, "normalize.metal")
	if err != nil {
		return nil, err
	}
	forward, err := library.Kernel("normalize")
	if err != nil {
		return nil, err
	}
	backward, err := library.Kernel("normalize_backward")
	if err != nil {
		return nil, err
	}
	// The second input is the width, the second output the length of each row.
	both := customkernels.WithVJP(forward, func(in []*mlxc.Array) customkernels.Launch {
		return perRow(in[0], mlxc.Output{Shape: in[0].Shape()[:1], DType: mlxc.Float32})
	}, func(in, cotangents, out []*mlxc.Array) []*mlxc.Array {
		dx := backward.Launch(perRow(in[0]), out[0], out[1], cotangents[0], in[1])
		return []*mlxc.Array{dx[0], nil}
	})
	return func(x *mlxc.Array) *mlxc.Array {
		if err := x.Err(); err != nil {
			return x
		}
		if x.NDim() != 2 || x.DType() != mlxc.Float32 {
			return mlxc.InvalidArray(mlxc.NewError("normalize", fmt.Errorf("x must be float32 of shape (rows, width)"), x))
		}
		return both([]*mlxc.Array{x, customkernels.Constant(uint32(x.Dim(1)))})[0]
	}, nil
}

// perRow returns a launch with a threadgroup for each row of x. Its first output has the shape of x.
func perRow(x *mlxc.Array, more ...mlxc.Output) customkernels.Launch {
	const threads = 128
	return customkernels.Launch{
		Grid:        [3]int{x.Dim(0) * threads},
		Threadgroup: [3]int{threads},
		Outputs:     append([]mlxc.Output{{Shape: x.Shape(), DType: x.DType()}}, more...),
	}
}

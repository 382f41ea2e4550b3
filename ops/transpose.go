package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var transposeKernels = newShaderFile("transpose_2d.metal")

// Transpose2D exchanges the last two axes, and moves the elements to where the result has
// them in row-major order; MLX's SwapAxes makes a view, which the next operation may
// have to copy.
//
// x has shape (…,R,C) and is float32, float16 or bfloat16; the result has shape (…,C,R) and
// x's dtype. Elements keep their bits, those of a NaN too. The gradient is Transpose2D
// of the cotangent, and has a gradient of its own.
func Transpose2D(x *mlxc.Array) *mlxc.Array {
	const op = "ops.Transpose2D"
	if err := checkMatrices(x); err != nil {
		return mlxc.InvalidArray(opError(op, err, x))
	}
	if !kernelsAvailable(op) {
		return x.SwapAxes(-1, -2).Contiguous()
	}
	return withGradient([]*mlxc.Array{x},
		func(args []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{transpose(currentTarget(), args[0])}
		},
		func(primals, cotangents, _ []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{Transpose2D(cotangents[0].AsType(primals[0].DType()))}
		})[0]
}

func checkMatrices(x *mlxc.Array) error {
	if err := requireArray("x", x); err != nil {
		return err
	}
	if x.NDim() < 2 {
		return errors.New("there are no two axes to exchange: add one with ExpandDims")
	}
	if !slices.Contains(gradientDTypes, x.DType()) {
		return fmt.Errorf("x is %v: the kernel takes float32, float16 and bfloat16; convert with AsType, or use SwapAxes", x.DType())
	}
	return nil
}

// transposeTilesTemplate holds the template parameters of transpose_2d.
type transposeTilesTemplate struct {
	dtype                       mlxc.DType
	vecX, vecY, tile, groupSize int
}

func (t transposeTilesTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{
		{Name: "T", Value: t.dtype},
		{Name: "VEC_X", Value: t.vecX},
		{Name: "VEC_Y", Value: t.vecY},
		{Name: "TILE", Value: t.tile},
		{Name: "GROUP_SIZE", Value: t.groupSize},
	}
}

// transposeBlocksTemplate holds the template parameters of transpose_2d_blocks.
type transposeBlocksTemplate struct {
	dtype                        mlxc.DType
	vec, blocksPerRow, groupSize int
}

func (t transposeBlocksTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{
		{Name: "T", Value: t.dtype},
		{Name: "VEC", Value: t.vec},
		{Name: "BLOCKS_PER_ROW", Value: t.blocksPerRow},
		{Name: "GROUP_SIZE", Value: t.groupSize},
	}
}

// transposeDirectTemplate holds the template parameters of transpose_2d_direct.
type transposeDirectTemplate struct {
	dtype   mlxc.DType
	gathers bool
}

func (t transposeDirectTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{{Name: "T", Value: t.dtype}, {Name: "GATHERS", Value: t.gathers}}
}

// transpose launches the kernel for the shape.
func transpose(on target, x *mlxc.Array) *mlxc.Array {
	shape := x.Shape()
	last := len(shape) - 1
	rows, columns := shape[last-1], shape[last]
	shape[last-1], shape[last] = columns, rows
	if x.Size() == 0 {
		return mlxc.Zeros(x.DType(), shape...)
	}
	// A tile would be all but empty.
	if min(rows, columns) < 16 && x.Size() <= math.MaxInt32 {
		return transposeDirect(on, x, shape)
	}
	matrices := x.Size() / (rows * columns)
	n := uint32Args(matrices, rows, columns)
	kernel, launch := "transpose_2d", customkernels.Launch{Outputs: []mlxc.Output{{Shape: shape, DType: x.DType()}}}
	if g, ok := blocksOf(on.backend, x.DType(), matrices, rows, columns); ok {
		kernel = "transpose_2d_blocks"
		launch.Grid, launch.Threadgroup = gridOf(g.groups, g.threads)
		launch.Template = transposeBlocksTemplate{dtype: x.DType(), vec: g.side, blocksPerRow: g.beside, groupSize: g.threads}.args()
	} else {
		g := tilesOf(on.backend, x.DType(), matrices, rows, columns)
		launch.Grid, launch.Threadgroup = gridOf(g.groups, g.threads)
		launch.Template = transposeTilesTemplate{
			dtype: x.DType(), vecX: g.inPack, vecY: g.outPack, tile: g.side, groupSize: g.threads,
		}.args()
	}
	return on.launch(transposeKernels.kernel(kernel), launch, x, n[0], n[1], n[2])[0]
}

// gridOf is the grid of groups of so many threads along x, and the threadgroup.
func gridOf(groups [3]int, threads int) (grid, threadgroup [3]int) {
	return [3]int{groups[0] * threads, groups[1], groups[2]}, [3]int{threads, 1, 1}
}

// transposeDirect is transpose without tiles.
func transposeDirect(on target, x *mlxc.Array, shape []int) *mlxc.Array {
	grid, threads := elementGrid(on.backend, x.Size())
	// A GPU's threads side by side write side by side.
	length, others := x.Dim(-2), x.Dim(-1)
	strip, gathers := length, true
	if on.backend == mlxc.BackendCPU {
		// A host's thread goes along the longer axis, in strips that stay in a cache until all
		// of their 16 rows or columns are moved.
		gathers = length >= others
		if !gathers {
			length, others = others, length
		}
		strip = min(length, 256)
	}
	n := uint32Args(x.Size(), length, others, strip)
	return on.launch(transposeKernels.kernel("transpose_2d_direct"), customkernels.Launch{
		Grid:        [3]int{grid},
		Threadgroup: [3]int{threads},
		Template:    transposeDirectTemplate{x.DType(), gathers}.args(),
		Outputs:     []mlxc.Output{{Shape: shape, DType: x.DType()}},
	}, x, n[0], n[1], n[2], n[3])[0]
}

package ops

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var transposeKernels = newShaderFile("transpose_2d.metal")

// Transpose2D returns x with its last two axes exchanged, as a row-major array. MLX's SwapAxes returns a view, which
// the next operation may have to copy.
//
// x has shape (…,R,C) and dtype float32, float16 or bfloat16; the result has shape (…,C,R) and x's dtype. Elements are
// copied bit for bit, NaNs included. The gradient is Transpose2D of the cotangent; it can be differentiated again.
func Transpose2D(x *mlxc.Array) *mlxc.Array {
	const op = "ops.Transpose2D"
	if y := recorded(op, x); y != nil {
		return y[0]
	}
	if err := checkMatrices(x); err != nil {
		return mlxc.InvalidArray(opError(op, err, x))
	}
	if !kernelsAvailable(op) {
		return x.SwapAxes(-1, -2).Contiguous()
	}
	return withGradient(op, []*mlxc.Array{x},
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
		return fmt.Errorf("x has shape %v; it must have at least two axes: add one with ExpandDims", x.Shape())
	}
	if !slices.Contains(gradientDTypes, x.DType()) {
		return fmt.Errorf("x is %v; it must be float32, float16 or bfloat16: convert it with AsType, or use SwapAxes",
			x.DType())
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

// transposeVectorsTemplate holds the template parameters of transpose_2d_vectors.
type transposeVectorsTemplate struct {
	dtype                                 mlxc.DType
	vec, tileRows, tileColumns, groupSize int
}

func (t transposeVectorsTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{
		{Name: "T", Value: t.dtype},
		{Name: "VEC", Value: t.vec},
		{Name: "TILE_ROWS", Value: t.tileRows},
		{Name: "TILE_COLUMNS", Value: t.tileColumns},
		{Name: "GROUP_SIZE", Value: t.groupSize},
	}
}

// transposeDirectTemplate holds the template parameters of transpose_2d_direct.
type transposeDirectTemplate struct {
	dtype   mlxc.DType
	gathers bool // strided reads and consecutive writes; if false, the reverse
}

func (t transposeDirectTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{{Name: "T", Value: t.dtype}, {Name: "GATHERS", Value: t.gathers}}
}

// transpose returns the transposes of the matrices in x. It selects the kernel by their shape.
func transpose(on target, x *mlxc.Array) *mlxc.Array {
	shape := x.Shape()
	last := len(shape) - 1
	rows, columns := shape[last-1], shape[last]
	shape[last-1], shape[last] = columns, rows
	if x.Size() == 0 {
		return mlxc.Zeros(x.DType(), shape...)
	}
	// Tiles of narrow matrices would be almost empty.
	if min(rows, columns) < 16 && x.Size() <= math.MaxInt32 {
		return transposeDirect(on, x, shape)
	}
	matrices := x.Size() / (rows * columns)
	launch := customkernels.Launch{Outputs: []mlxc.Output{{Shape: shape, DType: x.DType()}}}
	if g, ok := transposeVectorsFor(on.backend, x.DType(), matrices, rows, columns); ok {
		launch.Grid, launch.Threadgroup = matrixGrid(g.groups, g.threads)
		launch.Template = transposeVectorsTemplate{
			dtype: x.DType(), vec: g.vec, tileRows: g.tileRows, tileColumns: g.tileColumns, groupSize: g.threads,
		}.args()
		n := uint32Args(rows, columns)
		return on.launch(transposeKernels.kernel("transpose_2d_vectors"), launch, x, n[0], n[1])[0]
	}
	g := transposeTilesFor(on.backend, x.DType(), matrices, rows, columns)
	launch.Grid, launch.Threadgroup = matrixGrid(g.groups, g.threads)
	launch.Template = transposeTilesTemplate{
		dtype: x.DType(), vecX: g.vecX, vecY: g.vecY, tile: g.side, groupSize: g.threads,
	}.args()
	n := uint32Args(matrices, rows, columns)
	return on.launch(transposeKernels.kernel("transpose_2d"), launch, x, n[0], n[1], n[2])[0]
}

// matrixGrid returns the grid and the threadgroup for these numbers of groups, each with `threads` threads along x.
func matrixGrid(groups [3]int, threads int) (grid, threadgroup [3]int) {
	return [3]int{groups[0] * threads, groups[1], groups[2]}, [3]int{threads, 1, 1}
}

// transposeDirect returns the transposes by transpose_2d_direct. shape is the shape of the result.
func transposeDirect(on target, x *mlxc.Array, shape []int) *mlxc.Array {
	grid, threads := elementGrid(on.backend, x.Size())
	// On a GPU, neighboring threads write neighboring elements.
	length, others := x.Dim(-2), x.Dim(-1)
	strip, gathers := length, true
	if on.backend == mlxc.BackendCPU {
		// A CPU thread iterates along the longer axis in strips. The shorter axis has fewer than 16 elements, so
		// a strip stays in a cache until all of it has been copied.
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

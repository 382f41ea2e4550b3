package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/blas"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var matrixProductFile = newShaderFile("matrix_product.metal")

// A matrix is an operand of matrixProduct: a 2-D array, or its transpose.
type matrix struct {
	array      *mlxc.Array
	transposed bool
}

func (m matrix) dims() (rows, columns int) {
	if m.transposed {
		return m.array.Dim(1), m.array.Dim(0)
	}
	return m.array.Dim(0), m.array.Dim(1)
}

// mlx returns the matrix as an array of MLX.
func (m matrix) mlx() *mlxc.Array {
	if m.transposed {
		return m.array.Transpose()
	}
	return m.array
}

// hasSlowProducts reports whether MLX's matrix products take many times as long as ours. Recorded launches are the same
// on every system.
func hasSlowProducts(on target) bool {
	return on.backend == mlxc.BackendCPU && (blas.IsReference || on.intercept != nil)
}

// matrixProduct returns a·b in the dtype of a, which is b's: by a kernel of this project if MLX's products are slow,
// otherwise by MLX.
func matrixProduct(on target, a, b matrix) *mlxc.Array {
	rows, inner := a.dims()
	_, columns := b.dims()
	if !hasSlowProducts(on) || rows*columns*inner == 0 {
		return a.mlx().MatMul(b.mlx())
	}
	t := matrixProductTuning
	groups := min(ceilDiv(rows, t.blockM)*ceilDiv(columns, t.blockN), t.groups)
	scalars := uint32Args(rows, columns, inner)
	return on.launch(matrixProductFile.kernel("matrix_product"), customkernels.Launch{
		Grid:        [3]int{groups},
		Threadgroup: [3]int{1},
		Template:    matrixProductTemplate{dtype: a.array.DType(), transposed: [2]bool{a.transposed, b.transposed}}.args(),
		Outputs:     []mlxc.Output{{Shape: []int{rows, columns}, DType: a.array.DType()}},
	}, append([]*mlxc.Array{a.array, b.array}, scalars...)...)[0]
}

// matrixProductTuning holds the launch geometry of matrix_product. The sums of a block take 32 KiB of a fiber's stack of
// 128 KiB and stay in the L2 cache; the packed rows of a and columns of b take 12 KiB of the L1 cache. Two registers of
// AVX-512 hold 32 columns. Sums of 32 terms keep the rounding error of float32 small, and longer ones were not faster.
// 1024 groups balance the load of many cores.
var matrixProductTuning = struct{ blockM, blockN, inner, width, groups int }{64, 128, 32, 32, 1024}

// matrixProductTemplate holds the template arguments of matrix_product.
type matrixProductTemplate struct {
	dtype      mlxc.DType
	transposed [2]bool // of a and b
}

func (m matrixProductTemplate) args() []mlxc.TemplateArg {
	t := matrixProductTuning
	return []mlxc.TemplateArg{
		{Name: "T", Value: m.dtype},
		{Name: "A_TRANSPOSED", Value: m.transposed[0]},
		{Name: "B_TRANSPOSED", Value: m.transposed[1]},
		{Name: "BLOCK_M", Value: t.blockM},
		{Name: "BLOCK_N", Value: t.blockN},
		{Name: "INNER", Value: t.inner},
		{Name: "WIDTH", Value: t.width},
	}
}

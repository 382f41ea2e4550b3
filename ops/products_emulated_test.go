package ops

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/products"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// useProductsInPlace makes products in place available to a test. Without a CUDA device they are emulated by MLX's
// operations: a product takes new memory. Kernels write in place everywhere.
func useProductsInPlace(t *testing.T) {
	t.Helper()
	device := productsInPlace()
	if device.Available() {
		return
	}
	products.Set(products.Functions[*mlxc.Array, mlxc.DType]{
		Available:   func() bool { return true },
		Undefined:   func(d mlxc.DType, shape ...int) *mlxc.Array { return mlxc.Full(d, mlxc.Scalar[float32](7), shape...) },
		Reuse:       device.Reuse,
		ReuseCopies: device.ReuseCopies,
		Into:        emulatedProduct,
		Beginning:   device.Beginning,
		ScaleRows:   device.ScaleRows,
	})
	t.Cleanup(func() { products.Set(device) })
}

func emulatedProduct(p products.Product[*mlxc.Array]) *mlxc.Array {
	a, b, destination := p.A.After(p.After...).AsType(mlxc.Float32), p.B.AsType(mlxc.Float32), p.Destination.After(p.After...)
	if p.TransposedA {
		a = a.Transpose()
	}
	if p.TransposedB {
		b = b.Transpose()
	}
	product := a.MatMul(b).Reshape(-1)
	if p.Factor != nil {
		product = product.Mul(p.Factor)
	}
	size := destination.Size()
	flat := destination.Reshape(size)
	part := func(begin, end int) *mlxc.Array { return flat.Slice([]int{begin}, []int{end}, nil) }
	end := p.Begin + product.Size()
	if p.Accumulate {
		product = product.Add(part(p.Begin, end).AsType(mlxc.Float32))
	}
	product = product.AsType(destination.DType())
	return mlxc.Concatenate(0, part(0, p.Begin), product, part(end, size)).Reshape(destination.Shape()...)
}

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
	products.Set(products.Functions[*mlxc.Array]{
		Available:   func() bool { return true },
		Reuse:       device.Reuse,
		ReuseCopies: device.ReuseCopies,
		Into:        emulatedProduct,
		ScaleRows:   device.ScaleRows,
	})
	t.Cleanup(func() { products.Set(device) })
}

func emulatedProduct(p products.Product[*mlxc.Array]) *mlxc.Array {
	a, b := p.A.After(p.After...).AsType(mlxc.Float32), p.B.AsType(mlxc.Float32)
	b = b.Slice([]int{p.FirstB, 0}, []int{p.EndB, b.Dim(1)}, nil)
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
	// The elements of a larger result, which another product computes, are 7.
	size := p.Result[0] * p.Result[1]
	others := mlxc.Full(p.A.DType(), mlxc.Scalar[float32](7), size)
	if p.Destination != nil && p.Destination.Size() == size {
		others = p.Destination.After(p.After...).Reshape(size)
	}
	part := func(begin, end int) *mlxc.Array { return others.Slice([]int{begin}, []int{end}, nil) }
	end := p.Begin + product.Size()
	if p.Accumulate {
		product = product.Add(part(p.Begin, end).AsType(mlxc.Float32))
	}
	product = product.AsType(others.DType())
	return mlxc.Concatenate(0, part(0, p.Begin), product, part(end, size)).Reshape(p.Result[0], p.Result[1])
}

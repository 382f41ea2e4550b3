// Package oracle computes operations and their gradients in float64, in plain Go loops, as the
// truth that every other implementation is measured against.
//
// Nothing here is fast or shares code with a kernel. MLX's own float64 cannot serve: it computes
// several functions in single precision. A formula may still be wrong in a way that a kernel
// repeats, so [CheckDirectional] holds each gradient against the forward function alone.
package oracle

import "fmt"

// Tensor is a dense array of float64 in row-major order. Data holds as many elements as the
// product of Shape; a nil Shape is a scalar.
type Tensor struct {
	Shape []int
	Data  []float64
}

// New returns a tensor of zeros.
func New(shape ...int) Tensor {
	return Tensor{Shape: shape, Data: make([]float64, Size(shape))}
}

// Size returns the number of elements of a shape.
func Size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// matrix returns the number of rows and their width when every axis but the last counts as rows.
// It panics on a scalar, which no operation over rows accepts.
func (t Tensor) matrix() (rows, width int) {
	if len(t.Shape) == 0 {
		panic("oracle: a scalar has no rows")
	}
	last := len(t.Shape) - 1
	return Size(t.Shape[:last]), t.Shape[last]
}

// row returns row i, a view of t.
func (t Tensor) row(i int) []float64 {
	_, width := t.matrix()
	return t.Data[i*width : (i+1)*width]
}

// String describes the tensor by its shape; the elements are too many to be useful.
func (t Tensor) String() string {
	return fmt.Sprintf("tensor%v", t.Shape)
}

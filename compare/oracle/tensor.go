// Package oracle computes operations and their gradients in float64, in plain Go loops. Its results are the reference
// that every other implementation is compared with. Functions panic if shapes do not match.
//
// The package shares no code with a kernel and is not fast. MLX's float64 is not a reference, because it computes
// several functions in single precision. An error in a formula could be repeated in a kernel, so [CheckDirectional]
// checks each gradient against the forward function alone.
package oracle

import "fmt"

// Tensor is a dense row-major array of float64. The length of Data is the product of Shape; a nil Shape is a scalar.
type Tensor struct {
	Shape []int
	Data  []float64
}

// New returns a tensor of zeros. It keeps the slice shape.
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

// matrix returns the number of rows and their width; the last axis is the width and the others are rows. It panics for
// a scalar, which no operation on rows accepts.
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

// String returns the shape of the tensor.
func (t Tensor) String() string {
	return fmt.Sprintf("tensor%v", t.Shape)
}

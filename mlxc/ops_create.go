package mlxc

import "errors"

// Array creation. A size that exceeds the address space is an error.

// Full returns an array of dtype d with the elements of value, broadcast to the shape.
func Full(d DType, value *Array, shape ...int) *Array {
	const op = "full"
	err := checkNew(d, shape)
	if err == nil && value.Err() == nil {
		err = broadcastInto(value.Shape(), shape)
	}
	if err != nil {
		return invalid(opError(op, err, value))
	}
	// MLX's own full has a wrong gradient.
	converted := value.AsType(d)
	defer converted.Free()
	spread := converted.BroadcastTo(shape...)
	defer spread.Free()
	return spread.Contiguous()
}

// FullLike returns an array of a's shape and dtype with the elements of value, broadcast to the shape.
func FullLike(a, value *Array) *Array {
	const op = "full_like"
	if err := a.Err(); err != nil {
		return invalid(operandError(op, err, 0, a, value))
	}
	return Full(a.DType(), value, a.Shape()...)
}

// Zeros returns an array of zeros.
func Zeros(d DType, shape ...int) *Array {
	const op = "zeros"
	if err := checkNew(d, shape); err != nil {
		return invalid(opError(op, err))
	}
	return mlxZeros(shape, d)
}

// ZerosLike returns zeros of a's shape and dtype.
func ZerosLike(a *Array) *Array { return mlxZerosLikeDtype(a, a.DType()) }

// Ones returns an array of ones.
func Ones(d DType, shape ...int) *Array {
	const op = "ones"
	if err := checkNew(d, shape); err != nil {
		return invalid(opError(op, err))
	}
	return mlxOnes(shape, d)
}

// OnesLike returns ones of a's shape and dtype.
func OnesLike(a *Array) *Array { return mlxOnesLikeDtype(a, a.DType()) }

// Arange returns the one-dimensional array start, start+step, … below stop, or above stop if step is negative. Elements
// are computed in dtype d, which must not be Bool.
func Arange(d DType, start, stop, step float64) *Array {
	const op = "arange"
	if step == 0 {
		return invalid(opError(op, errors.New("the step is 0")))
	}
	return mlxArange(start, stop, step, d)
}

// Linspace returns n evenly spaced numbers from start to stop, both included. They are computed in float32, or in
// float64 if d is Float64.
func Linspace(d DType, start, stop float64, n int) *Array {
	return mlxLinspaceEndpoint(start, stop, n, true, d)
}

// LinspaceOpen is Linspace without stop: n evenly spaced numbers from start, the last one step before stop.
func LinspaceOpen(d DType, start, stop float64, n int) *Array {
	return mlxLinspaceEndpoint(start, stop, n, false, d)
}

// Eye returns a rows × columns matrix with ones on diagonal k and zeros elsewhere. Diagonal 0 is the main diagonal;
// diagonals above it have k > 0.
func Eye(d DType, rows, columns, k int) *Array {
	const op = "eye"
	if err := checkNew(d, []int{rows, columns}); err != nil {
		return invalid(opError(op, err))
	}
	return mlxEye(rows, columns, limitDiagonal(k, rows, columns), d)
}

// Tri returns a rows × columns matrix with ones on and below diagonal k, and zeros above.
func Tri(d DType, rows, columns, k int) *Array {
	const op = "tri"
	if err := checkNew(d, []int{rows, columns}); err != nil {
		return invalid(opError(op, err))
	}
	return mlxTri(rows, columns, limitDiagonal(k, rows, columns), d)
}

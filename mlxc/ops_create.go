package mlxc

import "errors"

// Making arrays. Their sizes are checked: one that memory cannot hold is an error.

// Full makes an array of dtype d from value, which is broadcast to the shape: of a scalar,
// all elements are equal.
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

// FullLike makes an array of a's shape and dtype from value, which is broadcast to it.
func FullLike(a, value *Array) *Array {
	const op = "full_like"
	if err := a.Err(); err != nil {
		return invalid(operandError(op, err, 0, a, value))
	}
	return Full(a.DType(), value, a.Shape()...)
}

// Zeros makes an array of zeros.
func Zeros(d DType, shape ...int) *Array {
	const op = "zeros"
	if err := checkNew(d, shape); err != nil {
		return invalid(opError(op, err))
	}
	return mlxZeros(shape, d)
}

// ZerosLike makes an array of zeros of a's shape and dtype.
func ZerosLike(a *Array) *Array { return mlxZerosLikeDtype(a, a.DType()) }

// Ones makes an array of ones.
func Ones(d DType, shape ...int) *Array {
	const op = "ones"
	if err := checkNew(d, shape); err != nil {
		return invalid(opError(op, err))
	}
	return mlxOnes(shape, d)
}

// OnesLike makes an array of ones of a's shape and dtype.
func OnesLike(a *Array) *Array { return mlxOnesLikeDtype(a, a.DType()) }

// Arange makes the one-dimensional array start, start+step, … below stop, or above it if
// step is negative. Elements are computed as numbers of d, which is not Bool.
func Arange(d DType, start, stop, step float64) *Array {
	const op = "arange"
	if step == 0 {
		return invalid(opError(op, errors.New("the step is 0")))
	}
	return mlxArange(start, stop, step, d)
}

// Linspace makes the one-dimensional array of n numbers from start to stop, at equal
// distances. They are computed in float32, or in float64 if that is d.
func Linspace(d DType, start, stop float64, n int) *Array {
	return mlxLinspaceEndpoint(start, stop, n, true, d)
}

// LinspaceOpen is Linspace without stop: n steps begin in start … stop, the last of them
// one step before stop.
func LinspaceOpen(d DType, start, stop float64, n int) *Array {
	return mlxLinspaceEndpoint(start, stop, n, false, d)
}

// Eye makes a matrix of rows × columns with ones on diagonal k and zeros elsewhere.
// Diagonal 0 is the main one, those above it have k > 0.
func Eye(d DType, rows, columns, k int) *Array {
	const op = "eye"
	if err := checkNew(d, []int{rows, columns}); err != nil {
		return invalid(opError(op, err))
	}
	return mlxEye(rows, columns, limitDiagonal(k, rows, columns), d)
}

// Tri makes a matrix of rows × columns with ones on diagonal k and below it, and zeros
// above.
func Tri(d DType, rows, columns, k int) *Array {
	const op = "tri"
	if err := checkNew(d, []int{rows, columns}); err != nil {
		return invalid(opError(op, err))
	}
	return mlxTri(rows, columns, limitDiagonal(k, rows, columns), d)
}

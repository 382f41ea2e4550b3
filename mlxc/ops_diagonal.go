package mlxc

// Diagonals and triangles of matrices.

// Tril keeps the elements on and below diagonal k of the last two axes, and sets the others to 0. Diagonal 0 is the
// main diagonal; diagonals above it have k > 0.
func (a *Array) Tril(k int) *Array {
	return mlxTril(a, a.diagonal(k))
}

// Triu keeps the elements on and above diagonal k of the last two axes, and sets the others to 0.
func (a *Array) Triu(k int) *Array {
	return mlxTriu(a, a.diagonal(k))
}

// Diagonal returns the elements on diagonal k of the matrices with rows along axis1 and columns along axis2. They form
// the last axis of the result, which lacks both axes.
func (a *Array) Diagonal(k, axis1, axis2 int) *Array {
	d := mlxDiagonal(a, limitDiagonal(k, a.Dim(axis1), a.Dim(axis2)), axis1, axis2)
	if a.Size() == 0 && d.err == nil {
		// The strides of MLX's empty view make a later sum fail (fault sum-empty-view).
		return d.Contiguous()
	}
	return d
}

// Trace returns the sum over diagonal k of the matrices with rows along axis1 and columns along axis2, in the dtypes of
// Sum.
func (a *Array) Trace(k, axis1, axis2 int) *Array {
	if a.Size() == 0 {
		return a.Diagonal(k, axis1, axis2).Sum(-1)
	}
	return mlxTraceAxes(a, limitDiagonal(k, a.Dim(axis1), a.Dim(axis2)), axis1, axis2, a.DType())
}

// Diag returns diagonal k of a matrix as a vector. For a vector it returns the square matrix with the vector on
// diagonal k and zeros elsewhere.
func (a *Array) Diag(k int) *Array {
	const op = "diag"
	if a.NDim() == 2 {
		return mlxDiag(a, a.diagonal(k))
	}
	if a.NDim() == 1 {
		err := check32(k)
		if err == nil {
			n := a.Size() + max(k, -k)
			err = checkNew(a.DType(), []int{n, n})
		}
		if err != nil {
			return invalid(opError(op, err, a))
		}
	}
	return mlxDiag(a, k).zerosIfEmpty()
}

// diagonal limits k to the diagonals of the last two axes and one empty diagonal on either side. All diagonals beyond
// are empty too, and a large k would overflow in MLX (fault tril-diagonal-overflow).
func (a *Array) diagonal(k int) int { return limitDiagonal(k, a.Dim(-2), a.Dim(-1)) }

func limitDiagonal(k, rows, columns int) int { return min(max(k, -rows), columns) }

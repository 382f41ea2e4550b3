package mlxc

// Diagonals and triangles of matrices.

// Tril keeps, in the last two axes, the elements on diagonal k and below it; the
// others become 0. Diagonal 0 is the main one, those above it have k > 0.
func (a *Array) Tril(k int) *Array {
	return mlxTril(a, a.diagonal(k))
}

// Triu keeps, in the last two axes, the elements on diagonal k and above it; the
// others become 0.
func (a *Array) Triu(k int) *Array {
	return mlxTriu(a, a.diagonal(k))
}

// Diagonal gives the elements on diagonal k of the matrices in axis1, for rows, and axis2,
// for columns. They form the last axis of the result, in the place of both.
func (a *Array) Diagonal(k, axis1, axis2 int) *Array {
	d := mlxDiagonal(a, limitDiagonal(k, a.Dim(axis1), a.Dim(axis2)), axis1, axis2)
	if a.Size() == 0 && d.err == nil {
		// MLX's view has no strides that its sums could end with.
		return d.Contiguous()
	}
	return d
}

// Trace adds up diagonal k of the matrices in axis1, for rows, and axis2, for columns, in
// the dtypes of Sum.
func (a *Array) Trace(k, axis1, axis2 int) *Array {
	if a.Size() == 0 {
		return a.Diagonal(k, axis1, axis2).Sum(-1)
	}
	return mlxTraceAxes(a, limitDiagonal(k, a.Dim(axis1), a.Dim(axis2)), axis1, axis2, a.DType())
}

// Diag gives diagonal k of a matrix as a vector, and of a vector the square matrix that has
// it as diagonal k and zeros elsewhere.
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

// diagonal limits k to what the last two axes have: beyond the corners all diagonals are
// alike, and MLX's integers would overflow.
func (a *Array) diagonal(k int) int { return limitDiagonal(k, a.Dim(-2), a.Dim(-1)) }

func limitDiagonal(k, rows, columns int) int { return min(max(k, -rows), columns) }

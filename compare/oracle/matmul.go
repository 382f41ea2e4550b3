package oracle

// MatMul returns the matrix product a·b of a, of shape (…,K), and b, of shape (K,N).
func MatMul(a, b Tensor) Tensor {
	rows, inner := a.matrix()
	columns := b.Shape[1]
	y := New(append(a.Shape[:len(a.Shape)-1:len(a.Shape)-1], columns)...)
	for i := range rows {
		for k := range inner {
			for j := range columns {
				y.row(i)[j] += a.row(i)[k] * b.row(k)[j]
			}
		}
	}
	return y
}

// MatMulVJP returns the gradients of ⟨dy, MatMul(a, b)⟩ with respect to a and b.
//
// From ∂y_ij/∂a_ik = b_kj and ∂y_ij/∂b_kj = a_ik follow da_ik = Σ_j dy_ij·b_kj and db_kj = Σ_i a_ik·dy_ij.
func MatMulVJP(a, b, dy Tensor) (da, db Tensor) {
	da, db = New(a.Shape...), New(b.Shape...)
	rows, inner := a.matrix()
	for i := range rows {
		for k := range inner {
			for j, d := range dy.row(i) {
				da.row(i)[k] += d * b.row(k)[j]
				db.row(k)[j] += a.row(i)[k] * d
			}
		}
	}
	return da, db
}

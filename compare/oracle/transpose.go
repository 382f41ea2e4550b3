package oracle

// Transpose2D returns x of shape [..., R, C] with its last two axes exchanged, y_cr = x_rc. The gradient of
// ⟨dy, Transpose2D(x)⟩ is Transpose2D(dy), because dx_rc = dy_cr.
func Transpose2D(x Tensor) Tensor {
	n := len(x.Shape)
	shape := append([]int(nil), x.Shape...)
	rows, columns := shape[n-2], shape[n-1]
	shape[n-2], shape[n-1] = columns, rows
	y := New(shape...)
	for start := 0; start < len(x.Data); start += rows * columns {
		for r := range rows {
			for c := range columns {
				y.Data[start+c*rows+r] = x.Data[start+r*columns+c]
			}
		}
	}
	return y
}

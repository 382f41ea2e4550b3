package mlxc

import (
	"errors"
	"math"
)

// Linear algebra over the last two axes, the rows and columns of matrices; earlier axes are a batch. Unless noted,
// functions take float32 and float64, and MLX computes them with LAPACK on CPU streams only: if the default device is a
// GPU, call them inside WithDevice(CPU, …). A matrix without a result, such as a singular matrix for Inv, is an error
// at evaluation. MLX has gradients for Norm, Cross, the right-hand side of Solve and SolveTriangular, Det and SlogDet
// of matrices with at most 3 rows, and NormOrd except the matrix norms by singular values (2 and −2). The other
// functions have none.

// onCPU returns an error if the current device is not the CPU.
func onCPU() error {
	if CurrentDevice() == CPU {
		return nil
	}
	return errors.New("MLX computes this on CPU streams only: call it inside WithDevice(CPU, …)")
}

// cpuResults returns the n results of a call that requires a CPU stream; if the call fails, all carry its error.
func cpuResults(n int, call func() ([]*Array, error), op string, a *Array) []*Array {
	if err := onCPU(); err != nil {
		return invalidArrays(n, opError(op, err, a))
	}
	return orInvalid(n)(call())
}

// cpuResult is cpuResults for one result.
func cpuResult(op string, f func() *Array, operands ...*Array) *Array {
	if err := onCPU(); err != nil {
		return invalid(opError(op, err, operands...))
	}
	// For an empty matrix, MLX divides by the number of elements (fault inverse-empty).
	return f().zerosIfEmpty()
}

// whereFinite calls f on a with every matrix that contains an infinity or a NaN replaced by zeros, and sets the results
// of these matrices to NaN. LAPACK's eigenvalue routines end the process for such a matrix; its other routines fail or
// return numbers.
func (a *Array) whereFinite(f func(a *Array) []*Array) []*Array {
	if n := a.NDim(); n < 2 || a.DType().IsInteger() || a.DType() == Bool {
		return f(a) // f returns the error
	}
	var results []*Array
	WithScope(func() {
		finite := mlxAllAxes(mlxIsfinite(a), []int{-2, -1}, false)
		results = f(Where(finite.ExpandDims(-2, -1), a, Zeros(a.DType())))
		nan := Scalar(float32(math.NaN()))
		for i, r := range results {
			ok := finite
			for ok.NDim() < r.NDim() {
				ok = ok.ExpandDims(-1)
			}
			if r.Err() == nil {
				r = Where(ok, r, nan)
			}
			results[i] = r.Keep()
		}
	})
	return results
}

// Inv returns the inverse of square matrices. A singular matrix is an error at evaluation.
func (a *Array) Inv() *Array {
	return cpuResult("linalg_inv", func() *Array { return mlxLinalgInv(a) }, a)
}

// TriInv returns the inverse of upper or lower triangular matrices. It does not read the other triangle.
func (a *Array) TriInv(upper bool) *Array {
	return cpuResult("linalg_tri_inv", func() *Array { return mlxLinalgTriInv(a, upper) }, a)
}

// Pinv returns the Moore-Penrose inverse, of shape (…,N,M), of matrices of shape (…,M,N). With the singular value
// decomposition A = U·S·Vᴴ it is V·S⁻¹·Uᴴ, without singular values near 0. For a matrix with an infinity or a NaN it is
// NaN.
func (a *Array) Pinv() *Array {
	return cpuResult("linalg_pinv", func() *Array {
		return a.whereFinite(func(a *Array) []*Array { return []*Array{mlxLinalgPinv(a)} })[0]
	}, a)
}

// Cholesky returns the lower triangular L with L·Lᵀ = a, or the upper triangular U with Uᵀ·U = a, for symmetric
// positive definite a. It reads only that triangle. MLX does not check a: for other matrices the result has no meaning.
func (a *Array) Cholesky(upper bool) *Array {
	return cpuResult("linalg_cholesky", func() *Array { return mlxLinalgCholesky(a, upper) }, a)
}

// CholeskyInv returns the inverse of the matrix with Cholesky factor a, which is upper or lower triangular: (Uᵀ·U)⁻¹ or
// (L·Lᵀ)⁻¹.
func (a *Array) CholeskyInv(upper bool) *Array {
	return cpuResult("linalg_cholesky_inv", func() *Array { return mlxLinalgCholeskyInv(a, upper) }, a)
}

// Det returns the determinants of square matrices: shape (…,N,N) gives (…). Integers are computed as float32. The
// determinant of an empty matrix is 1.
func (a *Array) Det() *Array {
	if err := onCPU(); err != nil {
		return invalid(opError("linalg_det", err, a))
	}
	return mlxLinalgDet(a)
}

// SlogDet returns the sign of the determinants, −1, 0 or 1, and the natural logarithm of their absolute values, −Inf
// for 0. It also represents determinants that overflow the dtype.
func (a *Array) SlogDet() (sign, logAbs *Array) {
	if err := onCPU(); err != nil {
		return pair(nil, opError("linalg_slogdet", err, a))
	}
	return mlxLinalgSlogdet(a)
}

// QR returns the reduced QR decomposition q·r = a of matrices of shape (…,M,N), with K = min(M, N). q, of shape
// (…,M,K), has orthonormal columns; r, of shape (…,K,N), is upper triangular.
func (a *Array) QR() (q, r *Array) {
	if err := onCPU(); err != nil {
		return pair(nil, opError("linalg_qr", err, a))
	}
	return mlxLinalgQr(a)
}

// LU returns the LU decomposition with row pivoting of matrices of shape (…,M,N), with K = min(M, N). l, of shape
// (…,M,K), is lower triangular with a unit diagonal; u, of shape (…,K,N), is upper triangular. p, of shape (…,M) and
// dtype uint32, is the permutation: row i of a is row p[i] of l·u. For one matrix, l.Take(p, 0).MatMul(u) is a.
func (a *Array) LU() (p, l, u *Array) {
	parts := cpuResults(3, func() ([]*Array, error) { return mlxLinalgLu(a) }, "linalg_lu", a)
	p, l, u = parts[0].zerosIfEmpty(), parts[1].zerosIfEmpty(), parts[2].zerosIfEmpty()
	if p.Size() > 0 && a.Size() == 0 { // rows without columns are not permuted
		defer p.Free()
		rows := Arange(Uint32, 0, float64(a.Dim(-2)), 1)
		defer rows.Free()
		p = rows.BroadcastTo(p.Shape()...)
	}
	return p, l, u
}

// LUFactor returns both triangles of LU in one array of a's shape, without the unit diagonal, and the pivots, of shape
// (…,K) and dtype uint32: row i was exchanged with row pivots[i], in this order.
func (a *Array) LUFactor() (lu, pivots *Array) {
	if err := onCPU(); err != nil {
		return pair(nil, opError("linalg_lu_factor", err, a))
	}
	lu, pivots = mlxLinalgLuFactor(a)
	return lu.zerosIfEmpty(), pivots.zerosIfEmpty()
}

// Solve returns x with a·x = b, for square a of shape (…,N,N) and b of shape (…,N,K), or (N) for a vector. Batch axes
// are broadcast. A singular a is an error at evaluation.
func (a *Array) Solve(b *Array) *Array {
	return cpuResult("linalg_solve", func() *Array { return mlxLinalgSolve(a, b) }, a, b)
}

// SolveTriangular is Solve for an upper or lower triangular a. It does not read the other triangle.
func (a *Array) SolveTriangular(b *Array, upper bool) *Array {
	return cpuResult("linalg_solve_triangular", func() *Array { return mlxLinalgSolveTriangular(a, b, upper) }, a, b)
}

// SVD returns the full singular value decomposition u·S·vᴴ = a of float32, float64 or complex64 matrices of shape
// (…,M,N), with K = min(M, N). u, of shape (…,M,M), and vᴴ, of shape (…,N,N), are unitary. s, of shape (…,K), holds the
// singular values in descending order; S has a's shape, with s on its diagonal. The first K columns of u and rows of vᴴ
// form the reduced decomposition. For a matrix with an infinity or a NaN, all results are NaN.
func (a *Array) SVD() (u, s, vh *Array) {
	parts := a.whereFinite(func(a *Array) []*Array {
		return cpuResults(3, func() ([]*Array, error) { return mlxLinalgSvd(a, true) }, "linalg_svd", a)
	})
	return parts[0], parts[1], parts[2]
}

// SingularValues returns only s of SVD.
func (a *Array) SingularValues() *Array {
	return a.whereFinite(func(a *Array) []*Array {
		return cpuResults(1, func() ([]*Array, error) { return mlxLinalgSvd(a, false) }, "linalg_svd", a)
	})[0]
}

// Eig returns the eigenvalues, of shape (…,N), and the eigenvectors, as columns of shape (…,N,N), of square float32,
// float64 or complex64 matrices. Both are complex64, in unspecified order; the vectors have length 1. For a matrix with
// an infinity or a NaN, both are NaN.
func (a *Array) Eig() (values, vectors *Array) {
	parts := a.whereFinite(func(a *Array) []*Array {
		return cpuResults(2, func() ([]*Array, error) { return both(mlxLinalgEig(a)) }, "linalg_eig", a)
	})
	return parts[0], parts[1]
}

// Eigvals returns only the eigenvalues of Eig.
func (a *Array) Eigvals() *Array {
	return cpuResult("linalg_eigvals", func() *Array {
		return a.whereFinite(func(a *Array) []*Array { return []*Array{mlxLinalgEigvals(a)} })[0]
	}, a)
}

// Eigh returns the eigenvalues, of shape (…,N), real and ascending, and the eigenvectors, as columns of shape (…,N,N),
// of symmetric or Hermitian matrices of float32, float64 or complex64. It reads only the upper or the lower triangle.
// For a matrix with an infinity or a NaN, both are NaN.
func (a *Array) Eigh(upper bool) (values, vectors *Array) {
	parts := a.whereFinite(func(a *Array) []*Array {
		return cpuResults(2, func() ([]*Array, error) { return both(mlxLinalgEigh(a, triangle(upper))) }, "linalg_eigh",
			a)
	})
	return parts[0], parts[1]
}

// Eigvalsh returns only the eigenvalues of Eigh.
func (a *Array) Eigvalsh(upper bool) *Array {
	return cpuResult("linalg_eigvalsh", func() *Array {
		return a.whereFinite(func(a *Array) []*Array { return []*Array{mlxLinalgEigvalsh(a, triangle(upper))} })[0]
	}, a)
}

// both returns two arrays as a list.
func both(first, second *Array) ([]*Array, error) { return []*Array{first, second}, nil }

// triangle returns LAPACK's letter for a triangle.
func triangle(upper bool) string {
	if upper {
		return "U"
	}
	return "L"
}

// Cross returns the cross product along the axis. The axis has size 3, or size 2 for vectors whose third component is
// 0. The result has size 3 there. The other axes are broadcast. Cross runs on every device.
func (a *Array) Cross(b *Array, axis int) *Array { return mlxLinalgCross(a, b, axis) }

// Norm returns the 2-norm √Σ|a|² over one axis, the Frobenius norm over two, or the 2-norm of all elements if no axes
// are given. Integers are computed as float32. It runs on every device.
func (a *Array) Norm(axes ...int) *Array { return a.norm(axes, false) }

// NormKeepDims is Norm with the axes kept, at size 1.
func (a *Array) NormKeepDims(axes ...int) *Array { return a.norm(axes, true) }

func (a *Array) norm(axes []int, keep bool) *Array {
	a, release := a.real()
	defer release()
	if len(axes) > 0 {
		return mlxLinalgNormL2(a, axes, keep)
	}
	flat := a.Reshape(-1)
	if a.Size() == 0 {
		flat = a.Reshape(0)
	}
	defer flat.Free()
	norm := mlxLinalgNormL2(flat, []int{0}, false)
	if !keep {
		return norm
	}
	defer norm.Free()
	ones := make([]int, a.NDim())
	for i := range ones {
		ones[i] = 1
	}
	return norm.Reshape(ones...)
}

// NormOrd returns a norm of order ord: a vector norm over one axis, or a matrix norm over two, rows first. Without
// axes, a must have one or two. Integers are computed as float32.
//
//   - Vector norms: ord p is (Σ|a|ᵖ)^(1/p), 0 counts the elements other than 0, and ±Inf are the maximum and the
//     minimum of |a|.
//   - Matrix norms: 1 and −1 are the maximum and the minimum column sum of |a|, Inf and −Inf the maximum and the
//     minimum row sum, and 2 and −2 the maximum and the minimum singular value. Singular values need a CPU stream, and
//     neither float16 nor bfloat16.
func (a *Array) NormOrd(ord float64, axes ...int) *Array { return a.normOrd(ord, axes, false) }

// NormOrdKeepDims is NormOrd with the axes kept, at size 1.
func (a *Array) NormOrdKeepDims(ord float64, axes ...int) *Array { return a.normOrd(ord, axes, true) }

func (a *Array) normOrd(ord float64, axes []int, keep bool) *Array {
	a, release := a.real()
	defer release()
	axes = a.allAxes(axes)
	norm := func(a *Array) *Array { return mlxLinalgNorm(a, ord, axes, keep) }
	if len(axes) == 2 && math.Abs(ord) == 2 {
		return a.normWhereFinite(axes, keep, norm)
	}
	return norm(a)
}

// normWhereFinite is whereFinite for a norm by singular values of matrices along any two axes.
func (a *Array) normWhereFinite(axes []int, keep bool, norm func(a *Array) *Array) *Array {
	checked := norm(a)
	if checked.Err() != nil {
		return checked
	}
	checked.Free()
	var result *Array
	WithScope(func() {
		finite := mlxIsfinite(a)
		result = norm(Where(mlxAllAxes(finite, axes, true), a, Zeros(a.DType())))
		result = Where(mlxAllAxes(finite, axes, keep), result, Scalar(float32(math.NaN()))).Keep()
	})
	return result
}

// NuclearNorm returns the sum of the singular values of matrices along two axes, rows first. Without axes, a must have
// two. Integers are computed as float32. It needs a CPU stream, and neither float16 nor bfloat16. For a matrix with an
// infinity or a NaN it is NaN.
func (a *Array) NuclearNorm(axes ...int) *Array { return a.nuclear(axes, false) }

// NuclearNormKeepDims is NuclearNorm with the axes kept, at size 1.
func (a *Array) NuclearNormKeepDims(axes ...int) *Array { return a.nuclear(axes, true) }

func (a *Array) nuclear(axes []int, keep bool) *Array {
	a, release := a.real()
	defer release()
	axes = a.allAxes(axes)
	return a.normWhereFinite(axes, keep, func(a *Array) *Array { return mlxLinalgNormMatrix(a, "nuc", axes, keep) })
}

// real converts integers to float32, in which squares do not overflow, and returns other arrays unchanged. release
// frees the conversion.
func (a *Array) real() (x *Array, release func()) {
	if d := a.DType(); d != Bool && !d.IsInteger() {
		return a, func() {}
	}
	x = a.AsType(Float32)
	return x, x.Free
}

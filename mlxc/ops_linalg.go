package mlxc

import (
	"errors"
	"math"
)

// Linear algebra over the last two axes, the rows and columns of matrices; the axes
// before them are a batch. Unless it says otherwise a function takes float32 and float64,
// and MLX computes it with LAPACK on CPU streams only: where the default device is a GPU,
// call it inside WithDevice(CPU, …). A matrix that has no result, such as the inverse of
// a singular one, is found where the result is computed: Eval or ToSlice returns the
// error. MLX has gradients for Norm, Cross, Det and SlogDet of up to 3 rows, the right-hand
// side of Solve and SolveTriangular, and NormOrd but for the orders 2, −2 and nuclear of
// matrices, which are of singular values; and none for the others.

// onCPU says so where MLX would compute only on a CPU.
func onCPU() error {
	if CurrentDevice() == CPU {
		return nil
	}
	return errors.New("MLX computes this on CPU streams only: call it inside WithDevice(CPU, …)")
}

// factors takes the n results of a call apart; if it failed, all carry the error.
func cpuResults(n int, call func() ([]*Array, error), op string, a *Array) []*Array {
	if err := onCPU(); err != nil {
		return invalidArrays(n, opError(op, err, a))
	}
	return orInvalid(n)(call())
}

// lapack is factors for one result.
func cpuResult(op string, f func() *Array, operands ...*Array) *Array {
	if err := onCPU(); err != nil {
		return invalid(opError(op, err, operands...))
	}
	// LAPACK divides by the number of elements.
	return f().zerosIfEmpty()
}

// whereFinite calls f on an array in which zeros stand for each matrix that has an
// infinity or a NaN, and puts NaN into f's results for these matrices. LAPACK's eigenvalue
// routines end the process over such a matrix, and its others fail or give numbers.
func (a *Array) whereFinite(f func(a *Array) []*Array) []*Array {
	if n := a.NDim(); n < 2 || a.DType().IsInteger() || a.DType() == Bool {
		return f(a) // which says what is wrong
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

// Inv returns the inverse of square matrices. A singular one is an error at evaluation.
func (a *Array) Inv() *Array {
	return cpuResult("linalg_inv", func() *Array { return mlxLinalgInv(a) }, a)
}

// TriInv returns the inverse of upper or lower triangular matrices; the other triangle is
// not looked at.
func (a *Array) TriInv(upper bool) *Array {
	return cpuResult("linalg_tri_inv", func() *Array { return mlxLinalgTriInv(a, upper) }, a)
}

// Pinv returns the Moore-Penrose inverse of matrices of shape (…,M,N), of shape (…,N,M):
// with the singular value decomposition A = U·S·Vᴴ it is V·S⁻¹·Uᴴ, singular values near 0
// left out. That of a matrix with an infinity or a NaN is NaN.
func (a *Array) Pinv() *Array {
	return cpuResult("linalg_pinv", func() *Array {
		return a.whereFinite(func(a *Array) []*Array { return []*Array{mlxLinalgPinv(a)} })[0]
	}, a)
}

// Cholesky returns the lower triangular L with L·Lᵀ = a, or the upper triangular U with
// Uᵀ·U = a, for symmetric positive definite a, of which only that triangle is read. MLX
// does not look whether a is one: of others it returns numbers without meaning.
func (a *Array) Cholesky(upper bool) *Array {
	return cpuResult("linalg_cholesky", func() *Array { return mlxLinalgCholesky(a, upper) }, a)
}

// CholeskyInv returns the inverse of the matrix whose Cholesky factor, the upper or the
// lower one, a is: (L·Lᵀ)⁻¹ or (Uᵀ·U)⁻¹.
func (a *Array) CholeskyInv(upper bool) *Array {
	return cpuResult("linalg_cholesky_inv", func() *Array { return mlxLinalgCholeskyInv(a, upper) }, a)
}

// Det returns the determinants of square matrices: shape (…,N,N) gives (…). Integers
// count as float32. That of no rows is 1.
func (a *Array) Det() *Array {
	if err := onCPU(); err != nil {
		return invalid(opError("linalg_det", err, a))
	}
	return mlxLinalgDet(a)
}

// SlogDet returns the sign of the determinants, −1, 0 or 1, and the natural logarithm of
// their absolute values, −Inf for 0: a determinant beyond what its dtype holds has both.
func (a *Array) SlogDet() (sign, logAbs *Array) {
	if err := onCPU(); err != nil {
		return pair(nil, opError("linalg_slogdet", err, a))
	}
	return mlxLinalgSlogdet(a)
}

// QR returns the reduced QR decomposition of matrices of shape (…,M,N): q, of shape
// (…,M,K), has orthonormal columns, r, of shape (…,K,N), is upper triangular, K is the
// smaller of M and N, and q·r = a.
func (a *Array) QR() (q, r *Array) {
	if err := onCPU(); err != nil {
		return pair(nil, opError("linalg_qr", err, a))
	}
	return mlxLinalgQr(a)
}

// LU returns the factorisation with row exchanges of matrices of shape (…,M,N). l, of
// shape (…,M,K), is lower triangular with ones on its diagonal, u, of shape (…,K,N), is
// upper triangular, K is the smaller of M and N. p, of shape (…,M) and dtype uint32, says
// where the rows of a are in the product: row i of a is row p[i] of l·u, so
// l.Take(p, 0).MatMul(u) is a, for one matrix.
func (a *Array) LU() (p, l, u *Array) {
	parts := cpuResults(3, func() ([]*Array, error) { return mlxLinalgLu(a) }, "linalg_lu", a)
	p, l, u = parts[0].zerosIfEmpty(), parts[1].zerosIfEmpty(), parts[2].zerosIfEmpty()
	if p.Size() > 0 && a.Size() == 0 { // rows without columns stay where they are
		defer p.Free()
		rows := Arange(Uint32, 0, float64(a.Dim(-2)), 1)
		defer rows.Free()
		p = rows.BroadcastTo(p.Shape()...)
	}
	return p, l, u
}

// LUFactor returns LU's two triangles in one array of a's shape, without the ones on the
// lower one's diagonal, and the pivots, of shape (…,K) and dtype uint32: row i was
// exchanged with row pivots[i], in this order.
func (a *Array) LUFactor() (lu, pivots *Array) {
	if err := onCPU(); err != nil {
		return pair(nil, opError("linalg_lu_factor", err, a))
	}
	lu, pivots = mlxLinalgLuFactor(a)
	return lu.zerosIfEmpty(), pivots.zerosIfEmpty()
}

// Solve returns x with a·x = b, for square a of shape (…,N,N) and b of shape (…,N,K) or
// (N), a vector. The axes in front are broadcast. A singular a is an error at evaluation.
func (a *Array) Solve(b *Array) *Array {
	return cpuResult("linalg_solve", func() *Array { return mlxLinalgSolve(a, b) }, a, b)
}

// SolveTriangular is Solve for an a that is upper or lower triangular; the other triangle
// is not looked at.
func (a *Array) SolveTriangular(b *Array, upper bool) *Array {
	return cpuResult("linalg_solve_triangular", func() *Array { return mlxLinalgSolveTriangular(a, b, upper) }, a, b)
}

// SVD returns the full singular value decomposition of matrices of shape (…,M,N), of
// float32, float64 or complex64: u·S·vᴴ = a, where u, of shape (…,M,M), and vᴴ, of shape
// (…,N,N), are unitary, and S, of a's shape, has s, which descends, on its diagonal and
// zeros elsewhere. s has the shape (…,K), K being the smaller of M and N; the first K
// columns of u and rows of vᴴ are the reduced decomposition. Those of a matrix with an
// infinity or a NaN are NaN.
func (a *Array) SVD() (u, s, vh *Array) {
	parts := a.whereFinite(func(a *Array) []*Array {
		return cpuResults(3, func() ([]*Array, error) { return mlxLinalgSvd(a, true) }, "linalg_svd", a)
	})
	return parts[0], parts[1], parts[2]
}

// SingularValues returns s of SVD alone.
func (a *Array) SingularValues() *Array {
	return a.whereFinite(func(a *Array) []*Array {
		return cpuResults(1, func() ([]*Array, error) { return mlxLinalgSvd(a, false) }, "linalg_svd", a)
	})[0]
}

// Eig returns the eigenvalues, of shape (…,N), and eigenvectors, the columns of an array
// of shape (…,N,N), of square matrices of float32, float64 or complex64. Both are
// complex64, in no particular order; the vectors have length 1. Those of a matrix with an
// infinity or a NaN are NaN.
func (a *Array) Eig() (values, vectors *Array) {
	parts := a.whereFinite(func(a *Array) []*Array {
		return cpuResults(2, func() ([]*Array, error) { return both(mlxLinalgEig(a)) }, "linalg_eig", a)
	})
	return parts[0], parts[1]
}

// Eigvals returns the eigenvalues of Eig alone.
func (a *Array) Eigvals() *Array {
	return cpuResult("linalg_eigvals", func() *Array {
		return a.whereFinite(func(a *Array) []*Array { return []*Array{mlxLinalgEigvals(a)} })[0]
	}, a)
}

// Eigh returns the eigenvalues, of shape (…,N), real and ascending, and eigenvectors, the
// columns of an array of shape (…,N,N), of symmetric or Hermitian matrices of float32,
// float64 or complex64, of which only the upper or the lower triangle is read. Those of a
// matrix with an infinity or a NaN are NaN.
func (a *Array) Eigh(upper bool) (values, vectors *Array) {
	parts := a.whereFinite(func(a *Array) []*Array {
		return cpuResults(2, func() ([]*Array, error) { return both(mlxLinalgEigh(a, triangle(upper))) }, "linalg_eigh", a)
	})
	return parts[0], parts[1]
}

// Eigvalsh returns the eigenvalues of Eigh alone.
func (a *Array) Eigvalsh(upper bool) *Array {
	return cpuResult("linalg_eigvalsh", func() *Array {
		return a.whereFinite(func(a *Array) []*Array { return []*Array{mlxLinalgEigvalsh(a, triangle(upper))} })[0]
	}, a)
}

// both is a pair as a list.
func both(first, second *Array) ([]*Array, error) { return []*Array{first, second}, nil }

// triangle is LAPACK's letter.
func triangle(upper bool) string {
	if upper {
		return "U"
	}
	return "L"
}

// Cross returns the vector product along the axis, of size 3, or 2 for vectors whose third
// component is 0; the result has size 3. The other axes are broadcast. It runs on every
// device.
func (a *Array) Cross(b *Array, axis int) *Array { return mlxLinalgCross(a, b, axis) }

// Norm returns the 2-norm √Σ|a|² over one axis, the Frobenius norm over two, or that of
// all elements if no axes are given. Integers count as float32. It runs on every device.
func (a *Array) Norm(axes ...int) *Array { return a.norm(axes, false) }

// NormKeepDims is Norm that leaves the axes, with size 1.
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

// NormOrd returns another norm: over one axis that of a vector, over two that of a matrix
// whose rows are the first axis; without axes a itself must have one or two. Of a vector,
// ord p stands for (Σ|a|ᵖ)^(1/p), 0 for the number of elements that are not 0, ±Inf for
// the largest and the least |a|. Of a matrix, 1 and −1 stand for the largest and the least
// sum of |a| down a column, Inf and −Inf along a row, 2 and −2 for the largest and the
// least singular value, which need a CPU stream and no half dtype. Integers count as
// float32.
func (a *Array) NormOrd(ord float64, axes ...int) *Array { return a.normOrd(ord, axes, false) }

// NormOrdKeepDims is NormOrd that leaves the axes, with size 1.
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

// normWhereFinite is whereFinite for a norm by singular values, of matrices along any two axes.
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

// NuclearNorm returns the sum of the singular values of matrices, whose rows are the first
// of the two axes and columns the second; without axes a itself must have two. Integers
// count as float32. It needs a CPU stream and no half dtype. That of a matrix with an infinity or
// a NaN is NaN.
func (a *Array) NuclearNorm(axes ...int) *Array { return a.nuclear(axes, false) }

// NuclearNormKeepDims is NuclearNorm that leaves the axes, with size 1.
func (a *Array) NuclearNormKeepDims(axes ...int) *Array { return a.nuclear(axes, true) }

func (a *Array) nuclear(axes []int, keep bool) *Array {
	a, release := a.real()
	defer release()
	axes = a.allAxes(axes)
	return a.normWhereFinite(axes, keep, func(a *Array) *Array { return mlxLinalgNormMatrix(a, "nuc", axes, keep) })
}

// real gives integers as float32, in which their squares do not overflow, and other arrays
// as they are; release frees what was made.
func (a *Array) real() (x *Array, release func()) {
	if d := a.DType(); d != Bool && !d.IsInteger() {
		return a, func() {}
	}
	x = a.AsType(Float32)
	return x, x.Free
}

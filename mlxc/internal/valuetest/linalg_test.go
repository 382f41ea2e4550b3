package valuetest

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// same requires equal shapes and elements that differ by at most the tolerance. The elements may be complex.
func same(t testing.TB, want, got *mlxc.Array, tolerance float64) {
	t.Helper()
	require.NoError(t, got.Err())
	require.Equal(t, want.Shape(), got.Shape())
	d := want.Sub(got).Abs()
	near(t, make([]float64, d.Size()), d, tolerance)
}

// columnMajor returns an array equal to a in column-major layout.
func columnMajor(a *mlxc.Array) *mlxc.Array { return a.SwapAxes(-1, -2).Contiguous().SwapAxes(-1, -2) }

// strided returns an array equal to a that is a view of a larger array: every second element along its last axis.
func strided(a *mlxc.Array) *mlxc.Array {
	start, stop, strides := make([]int, a.NDim()), a.Shape(), make([]int, a.NDim())
	for i := range strides {
		strides[i] = 1
	}
	last := a.NDim() - 1
	start[last], stop[last], strides[last] = 1, 2*stop[last], 2
	return mlxc.Stack(a.NDim(), a.Neg(), a).Flatten(last, last+1).Slice(start, stop, strides)
}

func identity(n int) *mlxc.Array { return mlxc.Ones(mlxc.Float32, n, n).Tril(0).Triu(0) }

// layouts runs f on a in row-major, column-major and strided layout, and as float64.
func layouts(t *testing.T, a *mlxc.Array, f func(t *testing.T, a *mlxc.Array)) {
	t.Helper()
	for name, b := range map[string]*mlxc.Array{
		"rows": a, "columns": columnMajor(a), "part": strided(a),
		"float64": a.AsType(mlxc.Float64),
	} {
		t.Run(name, func(t *testing.T) { f(t, b) })
	}
}

func init() {
	value("mlx_linalg_inv", func(t *testing.T) {
		near(t, []float64{1, -1, -1, 2}, mlxc.FromSlice([]float32{2, 1, 1, 1}, 2, 2).Inv(), 1e-6)
		layouts(t, dominant(1, 2, 4, 4), func(t *testing.T, a *mlxc.Array) {
			same(t, identity(4).BroadcastTo(2, 4, 4), a.MatMul(a.Inv()), 1e-6)
			same(t, identity(4).BroadcastTo(2, 4, 4), a.Inv().MatMul(a), 1e-6)
		})
		require.Equal(t, []int{2, 0, 0}, mlxc.Zeros(mlxc.Float32, 2, 0, 0).Inv().Shape())
		require.ErrorContains(t, mlxc.Eval(mlxc.Ones(mlxc.Float32, 2, 2).Inv()), "factorization failed")
	})
	value("mlx_linalg_tri_inv", func(t *testing.T) {
		a := mlxc.FromSlice([]float32{2, 9, 4, 8}, 2, 2)
		near(t, []float64{0.5, 0, -0.25, 0.125}, a.TriInv(false), 1e-6)
		near(t, []float64{0.5, -0.5625, 0, 0.125}, a.TriInv(true), 1e-6)
		layouts(t, dominant(2, 3, 5, 5), func(t *testing.T, a *mlxc.Array) {
			same(t, identity(5).BroadcastTo(3, 5, 5), a.Tril(0).MatMul(a.TriInv(false)), 1e-6)
		})
		require.ErrorContains(t, mlxc.Eval(mlxc.Zeros(mlxc.Float32, 2, 2).TriInv(true)), "inversion failed")
		require.Equal(t, []float32{}, floats(t, mlxc.Zeros(mlxc.Float32, 0, 0).TriInv(true)))
	})
	value("mlx_linalg_pinv", func(t *testing.T) {
		near(t, []float64{1, 0, 0, 0, 0.5, 0}, mlxc.FromSlice([]float32{1, 0, 0, 2, 0, 0}, 3, 2).Pinv(), 1e-6)
		// A matrix of rank 1. Pinv must ignore its singular value near zero.
		near(t, []float64{0.04, 0.08, 0.08, 0.16}, mlxc.FromSlice([]float32{1, 2, 2, 4}, 2, 2).Pinv(), 1e-6)
		layouts(t, normal(3, 2, 3, 5), func(t *testing.T, a *mlxc.Array) {
			p := a.Pinv()
			require.Equal(t, []int{2, 5, 3}, p.Shape())
			// Penrose's four conditions.
			same(t, a, a.MatMul(p).MatMul(a), 1e-5)
			same(t, p, p.MatMul(a).MatMul(p), 1e-5)
			same(t, a.MatMul(p), a.MatMul(p).SwapAxes(1, 2), 1e-5)
			same(t, p.MatMul(a), p.MatMul(a).SwapAxes(1, 2), 1e-5)
		})
		require.Equal(t, []int{3, 0}, mlxc.Zeros(mlxc.Float32, 0, 3).Pinv().Shape())
	})
	value("mlx_linalg_cholesky", func(t *testing.T) {
		a := mlxc.FromSlice([]float32{4, 2, 2, 5}, 2, 2)
		near(t, []float64{2, 0, 1, 2}, a.Cholesky(false), 1e-6)
		near(t, []float64{2, 1, 0, 2}, a.Cholesky(true), 1e-6)
		b := normal(4, 2, 4, 4)
		layouts(t, b.MatMul(b.SwapAxes(1, 2)).Add(identity(4)), func(t *testing.T, a *mlxc.Array) {
			l := a.Cholesky(false)
			same(t, a, l.MatMul(l.SwapAxes(1, 2)), 1e-5)
		})
	})
	value("mlx_linalg_cholesky_inv", func(t *testing.T) {
		a := mlxc.FromSlice([]float32{4, 2, 2, 5}, 2, 2)
		want := []float64{0.3125, -0.125, -0.125, 0.25}
		near(t, want, a.Cholesky(false).CholeskyInv(false), 1e-6)
		near(t, want, a.Cholesky(true).CholeskyInv(true), 1e-6)
		require.Equal(t, []float32{}, floats(t, mlxc.Zeros(mlxc.Float32, 0, 0).CholeskyInv(true)))
	})
	value("mlx_linalg_det", func(t *testing.T) {
		near(t, []float64{-2}, mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2).Det(), 1e-6)
		near(t, []float64{-2}, mlxc.FromSlice([]int32{1, 2, 3, 4}, 2, 2).Det(), 1e-6)
		near(t, []float64{1, 0}, mlxc.Stack(0, identity(3), mlxc.Ones(mlxc.Float32, 3, 3)).Det(), 1e-6)
		near(t, []float64{1}, mlxc.Zeros(mlxc.Float32, 0, 0).Det(), 0)
		layouts(t, dominant(5, 5, 5), func(t *testing.T, a *mlxc.Array) {
			v := wide(t, a)
			near(t, []float64{determinant(v, 5)}, a.Det(), 1e-5)
		})
	})
	value("mlx_linalg_slogdet", func(t *testing.T) {
		sign, logAbs := mlxc.FromSlice([]float32{1, 2, 3, 4, 1, 2, 2, 4, 0, 1, -1, 0}, 3, 2, 2).SlogDet()
		near(t, []float64{-1, 0, 1}, sign, 0)
		near(t, []float64{math.Log(2), math.Inf(-1), 0}, logAbs, 1e-6)
		layouts(t, dominant(6, 4, 4).MulScalar(-1e12), func(t *testing.T, a *mlxc.Array) {
			v := read[float64](t, a.AsType(mlxc.Float64).MulScalar(1e-12))
			sign, logAbs := a.SlogDet()
			d := determinant(v, 4)
			near(t, []float64{math.Copysign(1, d)}, sign, 0)
			near(t, []float64{math.Log(math.Abs(d)) + 4*12*math.Ln10}, logAbs, 1e-5)
		})
	})
	value("mlx_linalg_qr", func(t *testing.T) {
		for _, shape := range [][]int{{2, 4, 3}, {3, 5}} {
			layouts(t, normal(7, shape...), func(t *testing.T, a *mlxc.Array) {
				q, r := a.QR()
				same(t, a, q.MatMul(r), 1e-5)
				k := min(a.Dim(-1), a.Dim(-2))
				same(t, identity(k).Add(mlxc.Zeros(mlxc.Float32, append(shape[:len(shape)-2:len(shape)-2], k, k)...)),
					q.SwapAxes(-1, -2).MatMul(q), 1e-5)
				same(t, r.Triu(0), r, 0)
			})
		}
	})
	value("mlx_linalg_lu", func(t *testing.T) {
		for _, shape := range [][]int{{4, 4}, {5, 3}, {3, 5}} {
			layouts(t, normal(8, shape...), func(t *testing.T, a *mlxc.Array) {
				p, l, u := a.LU()
				same(t, a, l.Take(p, 0).MatMul(u), 1e-5)
				same(t, l.Tril(0), l, 0)
				same(t, u.Triu(0), u, 0)
				k := min(shape[0], shape[1])
				same(t, mlxc.Ones(mlxc.Float32, k), l.Slice([]int{0, 0}, []int{k, k}, nil).Mul(identity(k)).Sum(1), 0)
			})
		}
		// A cyclic permutation of three rows differs from its inverse, so this checks the direction.
		p, l, u := mlxc.FromSlice([]float32{0, 0, 3, 1, 0, 0, 0, 2, 0}, 3, 3).LU()
		require.Equal(t, []uint32{2, 0, 1}, read[uint32](t, p))
		near(t, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}, l, 0)
		near(t, []float64{1, 0, 0, 0, 2, 0, 0, 0, 3}, u, 0)
		p, l, u = mlxc.Zeros(mlxc.Float32, 2, 3, 0).LU()
		require.Equal(t, []uint32{0, 1, 2, 0, 1, 2}, read[uint32](t, p))
		require.Equal(t, [][]int{{2, 3, 0}, {2, 0, 0}}, [][]int{l.Shape(), u.Shape()})
		require.NoError(t, mlxc.Eval(l, u))
	})
	value("mlx_linalg_lu_factor", func(t *testing.T) {
		lu, pivots := mlxc.FromSlice([]float32{1, 2, 4, 4}, 2, 2).LUFactor()
		near(t, []float64{4, 4, 0.25, 1}, lu, 1e-6)
		require.Equal(t, []uint32{1, 1}, read[uint32](t, pivots))
		lu, pivots = mlxc.Zeros(mlxc.Float32, 0, 3).LUFactor()
		require.NoError(t, mlxc.Eval(lu, pivots))
		require.Equal(t, [][]int{{0, 3}, {0}}, [][]int{lu.Shape(), pivots.Shape()})
	})
	value("mlx_linalg_solve", func(t *testing.T) {
		a := mlxc.FromSlice([]float32{0, 2, 4, 0}, 2, 2)
		near(t, []float64{0.75, 0.5}, a.Solve(mlxc.FromSlice([]float32{1, 3})), 1e-6)
		layouts(t, dominant(9, 2, 4, 4), func(t *testing.T, a *mlxc.Array) {
			b := normal(10, 2, 4, 3).AsType(a.DType())
			same(t, b, a.MatMul(a.Solve(b)), 1e-5)
		})
		require.Equal(t, []int{0, 2}, mlxc.Zeros(mlxc.Float32, 0, 0).Solve(mlxc.Zeros(mlxc.Float32, 0, 2)).Shape())
		require.Equal(t, []float32{}, floats(t, mlxc.Zeros(mlxc.Float32, 0, 0).Solve(mlxc.Zeros(mlxc.Float32, 0, 2))))
	})
	value("mlx_linalg_solve_triangular", func(t *testing.T) {
		a, b := mlxc.FromSlice([]float32{2, 9, 4, 8}, 2, 2), mlxc.FromSlice([]float32{2, 12})
		near(t, []float64{1, 1}, a.SolveTriangular(b, false), 1e-6)
		near(t, []float64{-5.75, 1.5}, a.SolveTriangular(b, true), 1e-6)
		require.Equal(t, []float32{},
			floats(t, mlxc.Zeros(mlxc.Float32, 0, 0).SolveTriangular(mlxc.Zeros(mlxc.Float32, 0), true)))
	})
	value("mlx_linalg_svd", func(t *testing.T) {
		near(t, []float64{3, 2}, mlxc.FromSlice([]float32{0, -3, 2, 0}, 2, 2).SingularValues(), 1e-6)
		for _, shape := range [][]int{{2, 3, 3}, {4, 2}, {2, 4}} {
			layouts(t, normal(11, shape...), func(t *testing.T, a *mlxc.Array) {
				u, s, vh := a.SVD()
				k := min(a.Dim(-1), a.Dim(-2))
				require.Equal(t, k, s.Dim(-1))
				cut := func(a *mlxc.Array, axis int) *mlxc.Array { return a.SplitAt(axis, k)[0] }
				same(t, a, cut(u, -1).Mul(s.ExpandDims(-2)).MatMul(cut(vh, -2)), 1e-5)
				same(t, identity(u.Dim(-1)).Add(u.Mul(mlxc.Zeros(u.DType()))), u.MatMul(u.SwapAxes(-1, -2)), 1e-5)
				same(t, identity(vh.Dim(-1)).Add(vh.Mul(mlxc.Zeros(u.DType()))), vh.MatMul(vh.SwapAxes(-1, -2)), 1e-5)
				same(t, s, a.SingularValues(), 1e-5)
				same(t, s.Neg().Sort(-1).Neg(), s, 0)
			})
		}
		// A complex matrix. Its singular values are real.
		c := mlxc.FromSlice([]complex64{2i, 0, 0, -1}, 2, 2)
		u, s, vh := c.SVD()
		near(t, []float64{2, 1}, s, 1e-6)
		same(t, c, u.Mul(s).MatMul(vh), 1e-6)
		// A batch of two matrices, the first with a NaN.
		nan := float32(math.NaN())
		u, s, vh = mlxc.FromSlice([]float32{nan, 0, 0, 1, 3, 0, 0, 2}, 2, 2, 2).SVD()
		near(t, []float64{math.NaN(), math.NaN(), 3, 2}, s, 1e-6)
		same(t, mlxc.FromSlice([]float32{3, 0, 0, 2}, 2, 2),
			u.Mul(s.ExpandDims(-2)).MatMul(vh).Take(mlxc.Scalar[int32](1), 0), 1e-6)
	})
	value("mlx_linalg_eig", func(t *testing.T) {
		layouts(t, normal(12, 2, 4, 4), func(t *testing.T, a *mlxc.Array) {
			values, vectors := a.Eig()
			require.Equal(t, mlxc.Complex64, values.DType())
			same(t, a.AsType(mlxc.Complex64).MatMul(vectors), vectors.Mul(values.ExpandDims(-2)), 1e-5)
			same(t, mlxc.Ones(mlxc.Float32, 2, 4), vectors.Abs().Square().Sum(-2), 1e-5)
		})
		nan := float32(math.NaN()) // LAPACK would end the process
		values, vectors := mlxc.FromSlice([]float32{nan, 1, 2, 3}, 2, 2).Eig()
		near(t, []float64{math.NaN(), math.NaN()}, values.Abs(), 0)
		near(t, []float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}, vectors.Abs(), 0)
	})
	value("mlx_linalg_eigvals", func(t *testing.T) {
		// A rotation by 90° has the eigenvalues i and −i.
		got := read[complex64](t, mlxc.FromSlice([]float32{0, -1, 1, 0}, 2, 2).Eigvals())
		require.InDelta(t, 0, real(got[0])+real(got[1]), 1e-6)
		require.InDelta(t, 1, imag(got[0])*-imag(got[1]), 1e-6)
		inf := float32(math.Inf(1))
		near(t, []float64{math.NaN(), math.NaN()}, mlxc.FromSlice([]float32{inf, 1, 2, 3}, 2, 2).Eigvals().Abs(), 0)
	})
	value("mlx_linalg_eigh", func(t *testing.T) {
		a := mlxc.FromSlice([]float32{2, 1, 1, 2}, 2, 2)
		values, vectors := a.Eigh(false)
		near(t, []float64{1, 3}, values, 1e-6)
		near(t, []float64{0.5, 0.5, 0.5, 0.5}, vectors.Square(), 1e-6)
		b := normal(13, 2, 4, 4)
		layouts(t, b.Add(b.SwapAxes(1, 2)), func(t *testing.T, a *mlxc.Array) {
			for _, upper := range []bool{false, true} {
				// The other triangle is not read.
				half := a.Tril(0)
				if upper {
					half = a.Triu(0)
				}
				values, vectors := half.Eigh(upper)
				same(t, a.MatMul(vectors), vectors.Mul(values.ExpandDims(-2)), 2e-5)
				same(t, identity(4).BroadcastTo(2, 4, 4), vectors.SwapAxes(1, 2).MatMul(vectors), 1e-5)
				same(t, values.Sort(-1), values, 0)
			}
		})
		h := mlxc.FromSlice([]complex64{2, -1i, 1i, 2}, 2, 2)
		values, vectors = h.Eigh(true)
		near(t, []float64{1, 3}, values, 1e-6)
		same(t, h.MatMul(vectors), vectors.Mul(values), 1e-6)
	})
	value("mlx_linalg_eigvalsh", func(t *testing.T) {
		a := mlxc.FromSlice([]float32{2, 7, 1, 2}, 2, 2)
		near(t, []float64{1, 3}, a.Eigvalsh(false), 1e-6)
		near(t, []float64{-5, 9}, a.Eigvalsh(true), 1e-6)
		near(t, []float64{math.NaN(), math.NaN()}, a.MulScalar(math.NaN()).Eigvalsh(true), 0)
	})
	value("mlx_linalg_cross", func(t *testing.T) {
		a, b := mlxc.FromSlice([]int32{1, 2, 3, 0, 1, 0}, 2, 3), mlxc.FromSlice([]int32{4, 5, 6})
		require.Equal(t, []int32{-3, 6, -3, 6, 0, -4}, read[int32](t, a.Cross(b, -1)))
		near(t, []float64{-3, 6, -3, 6, 0, -4},
			a.Transpose().AsType(mlxc.Float16).Cross(b.ExpandDims(1).AsType(mlxc.Float16), 0).Transpose(), 0)
		near(t, []float64{0, 0, -2}, mlxc.FromSlice([]float32{1, 2}).Cross(mlxc.FromSlice([]float32{3, 4}), 0), 0)
		near(t, []float64{6, -3, -2}, mlxc.FromSlice([]float32{1, 2}).Cross(mlxc.FromSlice([]float32{3, 4, 3}), 0), 0)
	})
	value("mlx_linalg_norm_l2", func(t *testing.T) {
		a := mlxc.FromSlice([]float32{3, 4, 0, 0, 5, 12}, 2, 3)
		near(t, []float64{5, 13}, a.Norm(1), 1e-6)
		near(t, []float64{math.Sqrt(194)}, a.Norm(), 1e-6)
		near(t, []float64{math.Sqrt(194)}, a.Norm(0, 1), 1e-6)
		require.Equal(t, []int{2, 1}, a.NormKeepDims(-1).Shape())
		require.Equal(t, []int{1, 1}, a.NormKeepDims().Shape())
		near(t, []float64{math.Sqrt(194)}, a.Reshape(1, 2, 3).Transpose().Norm(), 1e-6)
		// 200² overflows uint8.
		near(t, []float64{math.Sqrt(200*200 + 100*100)}, mlxc.FromSlice([]uint8{200, 100}).Norm(), 1e-6)
		near(t, []float64{5}, mlxc.FromSlice([]complex64{3i, -4}).Norm(), 1e-6)
		near(t, []float64{5}, mlxc.FromSlice([]float32{3, 4}).AsType(mlxc.BFloat16).Norm(), 0)
		near(t, []float64{0}, mlxc.Zeros(mlxc.Float32, 2, 0).Norm(), 0)
		near(t, []float64{7}, mlxc.Scalar[float32](-7).Norm(), 0)
	})
	value("mlx_linalg_norm", func(t *testing.T) {
		inf := math.Inf(1)
		v := mlxc.FromSlice([]int8{-3, 0, 2, -100})
		for ord, want := range map[float64]float64{
			0: 3, 1: 105, 2: math.Sqrt(9 + 4 + 10000), 3: math.Cbrt(27 + 8 + 1e6), inf: 100, -inf: 0,
		} {
			near(t, []float64{want}, v.NormOrd(ord), 1e-5)
			near(t, []float64{want, want}, mlxc.Stack(1, v, v).NormOrd(ord, 0), 1e-5)
		}
		m := mlxc.FromSlice([]float32{1, -2, 3, 4, 0, 0}, 2, 3)
		for ord, want := range map[float64]float64{1: 5, -1: 2, inf: 6, -inf: 4} {
			near(t, []float64{want}, m.NormOrd(ord), 1e-6)
			near(t, []float64{want}, m.Transpose().NormOrd(ord, 1, 0), 1e-6)
			require.Equal(t, []int{1, 1}, m.NormOrdKeepDims(ord).Shape())
		}
		s := floats(t, m.SingularValues())
		near(t, []float64{float64(s[0])}, m.NormOrd(2), 1e-6)
		near(t, []float64{float64(s[1])}, m.NormOrd(-2), 1e-6)
	})
	value("mlx_linalg_norm_matrix", func(t *testing.T) {
		near(t, []float64{5}, mlxc.FromSlice([]int32{0, -3, 2, 0}, 2, 2).NuclearNorm(), 1e-6)
		a := normal(14, 3, 4, 2)
		same(t, a.Transpose(0, 2, 1).SingularValues().Sum(-1), a.NuclearNorm(1, 2), 1e-6)
		require.Equal(t, []int{3, 1, 1}, a.NuclearNormKeepDims(1, 2).Shape())
	})
}

// determinant returns the determinant of an n×n matrix by elimination.
func determinant(m []float64, n int) float64 {
	det := 1.0
	for i := range n {
		p := i
		for r := i; r < n; r++ {
			if math.Abs(m[r*n+i]) > math.Abs(m[p*n+i]) {
				p = r
			}
		}
		if p != i {
			for c := range n {
				m[p*n+c], m[i*n+c] = m[i*n+c], m[p*n+c]
			}
			det = -det
		}
		det *= m[i*n+i]
		for r := i + 1; r < n; r++ {
			f := m[r*n+i] / m[i*n+i]
			for c := i; c < n; c++ {
				m[r*n+c] -= f * m[i*n+c]
			}
		}
	}
	return det
}

// Under Vmap, operations on triangular matrices do not read the other triangle.
func TestVmapOfTriangularMatrices(t *testing.T) {
	testdevice.CPUOnly(t, "uses operations that MLX has for CPUs alone")
	a := mlxc.FromSlice([]float32{2, 7, 1, 4}, 2, 2)
	for _, upper := range []bool{false, true} {
		for name, f := range map[string]func(a *mlxc.Array) *mlxc.Array{
			"TriInv":      func(a *mlxc.Array) *mlxc.Array { return a.TriInv(upper) },
			"CholeskyInv": func(a *mlxc.Array) *mlxc.Array { return a.CholeskyInv(upper) },
			"SolveTriangular": func(a *mlxc.Array) *mlxc.Array {
				return a.SolveTriangular(mlxc.FromSlice([]float32{1, 2}), upper)
			},
		} {
			want := floats(t, f(a))
			for axis := range 3 {
				got := mlxc.Vmap(single(f), []int{axis}, nil)([]*mlxc.Array{mlxc.Stack(axis, a, a)})[0]
				require.Equal(t, slices.Concat(want, want), floats(t, got), "%s %v", name, upper)
			}
		}
	}
}

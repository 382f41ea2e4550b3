package valuetest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// product returns the product of matrices of shapes (m,k) and (k,n) in float64.
func product(a, b []float64, m, k, n int) []float64 {
	out := make([]float64, m*n)
	for i := range m {
		for j := range n {
			for l := range k {
				out[i*n+j] += a[i*k+l] * b[l*n+j]
			}
		}
	}
	return out
}

// matrices returns a random array of small integers. Products of such matrices are exact in every dtype.
func matrices(seed uint64, shape ...int) *mlxc.Array {
	return normal(seed, shape...).MulScalar(2).AsType(mlxc.Int32)
}

// floating runs f for every real floating-point dtype.
func floating(t *testing.T, f func(t *testing.T, d mlxc.DType)) {
	t.Helper()
	for _, d := range []mlxc.DType{mlxc.Float16, mlxc.BFloat16, mlxc.Float32, mlxc.Float64} {
		t.Run(d.String(), func(t *testing.T) { f(t, d) })
	}
}

func init() {
	value("mlx_matmul", func(t *testing.T) {
		a, b := matrices(1, 3, 4), matrices(2, 4, 5)
		want := product(wide(t, a), wide(t, b), 3, 4, 5)
		floating(t, func(t *testing.T, d mlxc.DType) {
			x, y := a.AsType(d), b.AsType(d)
			require.Equal(t, d, x.MatMul(y).DType())
			near(t, want, x.MatMul(y), 0)
			near(t, want, columnMajor(x).MatMul(strided(y)), 0)
		})
		batch, b := matrices(3, 2, 1, 3, 4).AsType(mlxc.Float32), b.AsType(mlxc.Float32)
		got := batch.MatMul(mlxc.Stack(0, b, b.Neg()))
		require.Equal(t, []int{2, 2, 3, 5}, got.Shape())
		near(t, product(wide(t, batch.Take(mlxc.Scalar[int32](1), 0)), wide(t, b.Neg()), 3, 4, 5),
			got.Slice([]int{1, 1, 0, 0}, []int{2, 2, 3, 5}, nil), 0)
		v := mlxc.FromSlice([]float32{1, 2, 3})
		near(t, []float64{14}, v.MatMul(v), 0)
		nearComplex(t, []complex128{-1, 1i},
			mlxc.FromSlice([]complex64{1i, 0, 0, 1}, 2, 2).MatMul(mlxc.FromSlice([]complex64{1i, 1i})))
		// A product over an empty axis is zero.
		near(t, make([]float64, 6), mlxc.Zeros(mlxc.Float32, 2, 0).MatMul(mlxc.Zeros(mlxc.Float32, 0, 3)), 0)
	})
	value("mlx_addmm", func(t *testing.T) {
		a, b, c := matrices(4, 3, 4), matrices(5, 4, 2), matrices(6, 2)
		ab, row := product(wide(t, a), wide(t, b), 3, 4, 2), wide(t, c)
		want := make([]float64, 6)
		for i := range want {
			want[i] = 2*ab[i] - 3*row[i%2]
		}
		floating(t, func(t *testing.T, d mlxc.DType) {
			near(t, want, c.AsType(d).AddMM(a.AsType(d), columnMajor(b).AsType(d), 2, -3), 0)
		})
		near(t, wide(t, c.BroadcastTo(2, 2)),
			c.AsType(mlxc.Float32).AddMM(mlxc.Zeros(mlxc.Float32, 2, 0), mlxc.Zeros(mlxc.Float32, 0, 2), 5, 1), 0)
	})
	value("mlx_inner", func(t *testing.T) {
		a, b := matrices(7, 2, 3).AsType(mlxc.Float32), matrices(8, 4, 3).AsType(mlxc.Float32)
		near(t, product(wide(t, a), wide(t, b.Transpose()), 2, 3, 4), a.Inner(b), 0)
		near(t, []float64{11}, mlxc.FromSlice([]float32{1, 2}).Inner(mlxc.FromSlice([]float32{3, 4})), 0)
		near(t, []float64{3, 6}, mlxc.FromSlice([]float32{1, 2}).Inner(mlxc.Scalar[float32](3)), 0)
		require.Equal(t, []int{2, 5, 4}, mlxc.Zeros(mlxc.Float32, 2, 5, 3).Inner(b).Shape())
	})
	value("mlx_outer", func(t *testing.T) {
		a, b := mlxc.FromSlice([]int32{1, 2, 3, 4}, 2, 2), mlxc.FromSlice([]int32{5, 6, 7})
		require.Equal(t, []int32{5, 6, 7, 15, 18, 21, 10, 12, 14, 20, 24, 28}, read[int32](t, a.Transpose().Outer(b)))
		require.Equal(t, []int{4, 3}, a.Outer(b).Shape())
		require.Equal(t, []int{0, 3}, mlxc.Zeros(mlxc.Int32, 0).Outer(b).Shape())
	})
	value("mlx_kron", func(t *testing.T) {
		a, b := mlxc.FromSlice([]int32{1, 2, 3, 4}, 2, 2), mlxc.FromSlice([]int32{0, 1, 1, 0}, 2, 2)
		require.Equal(t, []int32{0, 1, 0, 2, 1, 0, 2, 0, 0, 3, 0, 4, 3, 0, 4, 0}, read[int32](t, a.Kron(b)))
		require.Equal(t, []int32{5, 6, 10, 12, 15, 18, 20, 24}, read[int32](t, a.Kron(mlxc.FromSlice([]int32{5, 6}))))
		require.Equal(t, []int32{5, 10, 6, 12},
			read[int32](t, mlxc.FromSlice([]int32{5, 6}).Kron(mlxc.FromSlice([]int32{1, 2}))))
	})
	value("mlx_vecdot", func(t *testing.T) {
		a, b := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2), mlxc.FromSlice([]float32{5, 6})
		near(t, []float64{17, 39}, a.VecDot(b, -1), 0)
		near(t, []float64{20, 36}, a.VecDot(b.Reshape(1, 2).BroadcastTo(2, 2), 0), 0)
		near(t, []float64{23, 34}, a.Transpose().VecDot(b, 1), 0)
		near(t, []float64{17, 39}, b.VecDot(a, 1), 0)
		// The first operand is conjugated.
		nearComplex(t, []complex128{1 + 1i},
			mlxc.FromSlice([]complex64{1i, 1}).VecDot(mlxc.FromSlice([]complex64{1i, 1i}), 0))
	})
	value("mlx_tensordot", func(t *testing.T) {
		a, b := matrices(9, 2, 3, 4).AsType(mlxc.Float32), matrices(10, 4, 5, 3).AsType(mlxc.Float32)
		want := make([]float64, 2*5)
		x, y := wide(t, a), wide(t, b)
		for i := range 2 {
			for j := range 5 {
				for k := range 3 {
					for l := range 4 {
						want[i*5+j] += x[(i*3+k)*4+l] * y[(l*5+j)*3+k]
					}
				}
			}
		}
		got := a.TensorDot(b, []int{1, -1}, []int{2, 0})
		require.Equal(t, []int{2, 5}, got.Shape())
		near(t, want, got, 0)
		near(t, want, columnMajor(a).TensorDot(strided(b), []int{2, 1}, []int{-3, -1}), 0)
		near(t, []float64{3, 4, 6, 8},
			mlxc.FromSlice([]float32{1, 2}).TensorDot(mlxc.FromSlice([]float32{3, 4}), nil, nil), 0)
	})
	value("mlx_einsum", func(t *testing.T) {
		a, b := matrices(11, 3, 4).AsType(mlxc.Float32), matrices(12, 4, 5).AsType(mlxc.Float32)
		same(t, a.MatMul(b), mlxc.Einsum("ij,jk->ik", a, b), 0)
		same(t, a.MatMul(b), mlxc.Einsum("ij,jk", a, b), 0)
		same(t, a.Transpose(), mlxc.Einsum("ij->ji", a), 0)
		same(t, a.Sum(0), mlxc.Einsum("ij->j", a), 0)
		m := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
		near(t, []float64{1, 4}, mlxc.Einsum("ii->i", m), 0)
		near(t, []float64{5}, mlxc.Einsum("ii", m), 0)
		near(t, []float64{1 * 5, 2 * 6, 3 * 5, 4 * 6}, mlxc.Einsum("...j,j->...j", m, mlxc.FromSlice([]float32{5, 6})),
			0)
		near(t, []float64{1*5 + 2*6, 3*5 + 4*6},
			mlxc.Einsum("ij,j,k->i", m, mlxc.FromSlice([]float32{5, 6}), mlxc.FromSlice([]float32{0.5, 0.5})), 0)
		batch := matrices(13, 2, 3, 4).AsType(mlxc.Float32)
		same(t, batch.MatMul(b), mlxc.Einsum("bij,jk->bik", batch, b), 0)
	})
	value("mlx_hadamard_transform", func(t *testing.T) {
		x := mlxc.FromSlice([]float32{1, 2, 3, 4})
		near(t, []float64{10, -2, -4, 0}, x.HadamardTransform(1), 1e-6)
		near(t, []float64{5, -1, -2, 0}, x.HadamardTransform(0), 1e-6)
		floating(t, func(t *testing.T, d mlxc.DType) {
			if d == mlxc.Float64 {
				return
			}
			near(t, []float64{5, -1, -2, 0, -5, 1, 2, 0},
				strided(mlxc.Stack(0, x, x.Neg()).AsType(d)).HadamardTransform(0), 1e-2)
		})
		// The size 24 = 12·2: orthogonal rows of ±1.
		h := identity(24).HadamardTransform(1)
		same(t, mlxc.Ones(mlxc.Float32, 24, 24), h.Abs(), 1e-5)
		same(t, identity(24).MulScalar(24), h.MatMul(h.Transpose()), 1e-4)
	})
	value("mlx_gather_mm", func(t *testing.T) {
		a, b := matrices(14, 2, 3, 4), matrices(15, 3, 4, 5)
		left, right := []uint32{1, 0, 1, 1}, []uint32{2, 2, 0, 1}
		floating(t, func(t *testing.T, d mlxc.DType) {
			if d != mlxc.Float32 {
				return // MLX's CPU backend supports float32 only
			}
			ids := mlxc.MatMulIDs{Left: mlxc.FromSlice(left, 2, 2), Right: mlxc.FromSlice(right, 2, 2)}
			got := columnMajor(a.AsType(d)).GatherMM(strided(b.AsType(d)), ids)
			require.Equal(t, []int{2, 2, 3, 5}, got.Shape())
			x, y := wide(t, a), wide(t, b)
			var want []float64
			for i := range left {
				want = append(want, product(x[left[i]*12:][:12], y[right[i]*20:][:20], 3, 4, 5)...)
			}
			near(t, want, got, 0)
			ids = mlxc.MatMulIDs{Right: mlxc.FromSlice([]int32{0, 2}), Sorted: true}
			same(t, a.AsType(d).MatMul(b.AsType(d).Take(ids.Right, 0)), a.AsType(d).GatherMM(b.AsType(d), ids), 0)
		})
	})
	value("mlx_segmented_mm", func(t *testing.T) {
		a, b := matrices(16, 3, 6), matrices(17, 6, 2)
		segments := mlxc.FromSlice([]uint32{0, 2, 2, 6, 3, 3}, 3, 2)
		floating(t, func(t *testing.T, d mlxc.DType) {
			got := columnMajor(a.AsType(d)).SegmentedMM(strided(b.AsType(d)), segments)
			require.Equal(t, []int{3, 3, 2}, got.Shape())
			part := func(from, to int) *mlxc.Array {
				return a.AsType(d).Slice([]int{0, from}, []int{3, to},
					nil).MatMul(b.AsType(d).Slice([]int{from, 0}, []int{to, 2}, nil))
			}
			same(t, mlxc.Stack(0, part(0, 2), part(2, 6), mlxc.Zeros(d, 3, 2)), got, 0)
		})
		near(t, make([]float64, 4),
			mlxc.Zeros(mlxc.Float32, 2, 0).SegmentedMM(mlxc.Zeros(mlxc.Float32, 0, 2),
				mlxc.Zeros(mlxc.Uint32, 1, 2)), 0)
	})
	value("mlx_block_masked_mm", func(t *testing.T) {
		a, b := matrices(18, 64, 40).AsType(mlxc.Float32), matrices(19, 40, 33).AsType(mlxc.Float32)
		// With blocks of 32, a, b and the result have 2×2 blocks each.
		blocks := func(mask *mlxc.Array, rows, columns int) *mlxc.Array {
			return mask.AsType(mlxc.Float32).Repeat(32, 0).Repeat(32, 1).Slice([]int{0, 0}, []int{rows, columns}, nil)
		}
		out := mlxc.FromSlice([]bool{true, false, true, true}, 2, 2)
		left := mlxc.FromSlice([]bool{true, true, false, true}, 2, 2)
		right := mlxc.FromSlice([]bool{false, true, true, true}, 2, 2)
		same(t, a.MatMul(b), a.BlockMaskedMM(b, mlxc.BlockMasks{}), 0)
		same(t, a.MatMul(b).Mul(blocks(out, 64, 33)), a.BlockMaskedMM(b, mlxc.BlockMasks{Size: 32, Out: out}), 0)
		want := a.Mul(blocks(left, 64, 40)).MatMul(b.Mul(blocks(right, 40, 33)))
		same(t, want, columnMajor(a).BlockMaskedMM(strided(b), mlxc.BlockMasks{Size: 32, Left: left, Right: right}), 0)
		same(t, want.Mul(blocks(out, 64, 33)),
			a.BlockMaskedMM(b, mlxc.BlockMasks{Size: 32, Out: out, Left: left, Right: right}), 0)
		// A mask of factors instead of booleans.
		half := mlxc.FromSlice([]float32{0.5, 2, 1, 0}, 2, 2)
		same(t, a.MatMul(b).Mul(blocks(half, 64, 33)), a.BlockMaskedMM(b, mlxc.BlockMasks{Size: 32, Out: half}), 0)
	})
	value("mlx_softmax_axes", func(t *testing.T) {
		x := []float64{1, -2, 3, 0.5, 0, 100}
		a := mlxc.FromSlice(x, 2, 3)
		soft := func(rows ...[]int) []float64 {
			out := make([]float64, len(x))
			for _, row := range rows {
				sum, largest := 0.0, math.Inf(-1)
				for _, i := range row {
					largest = max(largest, x[i])
				}
				for _, i := range row {
					sum += math.Exp(x[i] - largest)
				}
				for _, i := range row {
					out[i] = math.Exp(x[i]-largest) / sum
				}
			}
			return out
		}
		rows, columns, all := soft([]int{0, 1, 2}, []int{3, 4, 5}), soft([]int{0, 3}, []int{1, 4},
			[]int{2, 5}), soft([]int{0, 1, 2, 3, 4, 5})
		for d, tolerance := range map[mlxc.DType]float64{
			mlxc.Float64: 1e-6, mlxc.Float32: 1e-6, mlxc.Float16: 2e-3,
			mlxc.BFloat16: 1e-2,
		} {
			for _, b := range []*mlxc.Array{a.AsType(d), columnMajor(a.AsType(d)), strided(a.AsType(d))} {
				require.Equal(t, d, b.Softmax(-1).DType())
				near(t, rows, b.Softmax(-1), tolerance)
				near(t, columns, b.Softmax(0), tolerance)
				near(t, all, b.Softmax(), tolerance)
				near(t, all, b.Softmax(1, 0), tolerance)
				near(t, rows, b.SoftmaxPrecise(1), tolerance)
			}
		}
		near(t, []float64{0.5, 0.5}, mlxc.FromSlice([]bool{true, true}).Softmax(), 0)
		near(t, []float64{0, 1}, mlxc.FromSlice([]float64{math.Inf(-1), 0}).Softmax(), 0)
		near(t, []float64{}, mlxc.Zeros(mlxc.Float32, 0, 3).Softmax(-1), 0)
	})
	value("mlx_bartlett", window(mlxc.Bartlett, func(x float64) float64 { return 1 - math.Abs(2*x-1) }))
	value("mlx_blackman", window(mlxc.Blackman, func(x float64) float64 {
		return 0.42 - 0.5*math.Cos(2*math.Pi*x) + 0.08*math.Cos(4*math.Pi*x)
	}))
	value("mlx_hamming", window(mlxc.Hamming, func(x float64) float64 { return 0.54 - 0.46*math.Cos(2*math.Pi*x) }))
	value("mlx_hanning", window(mlxc.Hanning, func(x float64) float64 { return 0.5 - 0.5*math.Cos(2*math.Pi*x) }))
}

// window tests a window function against its formula. x is 0 at the first sample and 1 at the last.
func window(got func(n int) *mlxc.Array, want func(x float64) float64) func(t *testing.T) {
	return func(t *testing.T) {
		for _, n := range []int{0, 1, 2, 7, 8} {
			w := make([]float64, n)
			for i := range w {
				w[i] = want(float64(i) / float64(n-1))
			}
			if n == 1 {
				w[0] = 1
			}
			near(t, w, got(n), 1e-6)
		}
	}
}

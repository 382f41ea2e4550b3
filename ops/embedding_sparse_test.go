package ops

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// sparseOfMLX returns EmbeddingSparseGradient composed of MLX operations.
func sparseOfMLX(dy, ids *mlxc.Array, vocabulary int) arrays {
	rows, gradients, count := sparseGradientMLX(dy, ids, vocabulary, min(vocabulary, ids.Size()))
	return arrays{rows, gradients, count}
}

func TestEmbeddingSparseGradientValues(t *testing.T) {
	dy := mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 5, 2)
	for _, c := range []struct {
		name       string
		ids        *mlxc.Array
		vocabulary int
		rows       []uint32
		gradients  []float32
		count      uint32
	}{
		{
			"fewer ids than rows", mlxc.FromSlice([]int32{7, 2, 7, 7, 0}), 9,
			[]uint32{0, 2, 7, 9, 9},
			[]float32{9, 10, 3, 4, 13, 16, 0, 0, 0, 0},
			3,
		},
		{
			"fewer rows than ids", mlxc.FromSlice([]uint32{2, 2, 0, 2, 0}), 3,
			[]uint32{0, 2, 3},
			[]float32{14, 16, 11, 14, 0, 0},
			2,
		},
		{
			"all rows", mlxc.FromSlice([]uint32{2, 1, 0, 2, 0}), 3,
			[]uint32{0, 1, 2},
			[]float32{14, 16, 3, 4, 8, 10},
			3,
		},
		{
			"all ids different", mlxc.FromSlice([]int32{8, 6, 4, 2, 0}), 9,
			[]uint32{0, 2, 4, 6, 8},
			[]float32{9, 10, 7, 8, 5, 6, 3, 4, 1, 2},
			5,
		},
		{"one row", mlxc.FromSlice([]int32{0, 0, 0, 0, 0}), 1, []uint32{0}, []float32{25, 30}, 1},
		{
			"some out of range", lazily(mlxc.FromSlice([]int32{-1, 2, 3, 2, math.MinInt32})), 3,
			[]uint32{2, 3, 3},
			[]float32{10, 12, 0, 0, 0, 0},
			1,
		},
		{
			"all out of range", lazily(mlxc.FromSlice([]int32{-1, -1, 3, 4, 5})), 3,
			[]uint32{3, 3, 3},
			make([]float32, 6), 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			rows, gradients, count := EmbeddingSparseGradient(dy, c.ids, c.vocabulary)
			for _, got := range []arrays{{rows, gradients, count}, sparseOfMLX(dy, c.ids, c.vocabulary)} {
				n, err := mlxc.ToSlice[uint32](got[0])
				require.NoError(t, err)
				require.Equal(t, c.rows, n)
				require.Equal(t, []int{len(c.rows), 2}, got[1].Shape())
				require.Equal(t, c.gradients, mlxtest.Floats(t, got[1]))
				k, err := mlxc.Item[uint32](got[2])
				require.NoError(t, err)
				require.Equal(t, c.count, k)
				require.Empty(t, got[2].Shape())
			}
		})
	}
}

var _ = testdevice.AlsoOnGPU(TestEmbeddingSparseGradientValues)

// The rows have the same bits as in the dense gradient.
func TestEmbeddingSparseGradientEqualsDense(t *testing.T) {
	for _, dtype := range gradientDTypes {
		for _, c := range []struct{ tokens, vocabulary, width int }{
			{1, 5, 3}, {2, 1, 3}, {300, 7, 33}, {300, 5000, 129}, {4099, 2, 24},
		} {
			t.Run(fmt.Sprintf("%v/%d of %dx%d", dtype, c.tokens, c.vocabulary, c.width), func(t *testing.T) {
				dy, ids := normal(1, dtype, c.tokens, c.width), randomIDs(2, c.vocabulary, c.tokens)
				dense := mlxtest.Floats(t, embeddingBackward(currentTarget(), dy, ids, c.vocabulary))
				rows, gradients, count := EmbeddingSparseGradient(dy, ids, c.vocabulary)
				require.Equal(t, dtype, gradients.DType())
				n, err := mlxc.ToSlice[uint32](rows)
				require.NoError(t, err)
				k, err := mlxc.Item[uint32](count)
				require.NoError(t, err)
				got := mlxtest.Floats(t, gradients)
				rebuilt := make([]float32, len(dense))
				for i, row := range n[:k] {
					copy(rebuilt[int(row)*c.width:], got[i*c.width:(i+1)*c.width])
				}
				require.Equal(t, dense, rebuilt)
				require.Equal(t, make([]float32, (len(n)-int(k))*c.width), got[int(k)*c.width:])
			})
		}
	}
}

func TestEmbeddingSparseGradientCompiled(t *testing.T) {
	c := mlxc.Compile(func(args arrays) arrays {
		rows, gradients, count := EmbeddingSparseGradient(args[0], args[1], 9)
		return arrays{rows, gradients, count}
	})
	defer c.Close()
	dy := normal(1, mlxc.Float32, 2, 3, 5).SwapAxes(0, 1)
	for seed := range uint64(3) {
		ids := randomIDs(seed, 9, 3, 2)
		rows, gradients, count := EmbeddingSparseGradient(dy, ids, 9)
		out, err := c.Call(dy, ids)
		require.NoError(t, err)
		for i, want := range (arrays{rows, gradients, count}) {
			require.Equal(t, want.DType(), out[i].DType())
			require.Equal(t, mlxtest.Floats(t, want), mlxtest.Floats(t, out[i]))
		}
	}
}

func TestEmbeddingSparseGradientWithoutElements(t *testing.T) {
	for _, c := range []struct {
		tokens, vocabulary, width, rows int
	}{{0, 3, 4, 0}, {0, 0, 4, 0}, {2, 3, 0, 2}} {
		rows, gradients, count := EmbeddingSparseGradient(
			mlxc.Ones(mlxc.Float16, c.tokens, c.width), mlxc.Zeros(mlxc.Int32, c.tokens), c.vocabulary)
		require.NoError(t, mlxc.Eval(rows, gradients, count))
		require.Equal(t, []int{c.rows}, rows.Shape())
		require.Equal(t, []int{c.rows, c.width}, gradients.Shape())
		k, err := mlxc.Item[uint32](count)
		require.NoError(t, err)
		require.EqualValues(t, min(c.rows, 1), k)
	}
}

var _ = testdevice.AlsoOnGPU(TestEmbeddingSparseGradientWithoutElements)

func TestEmbeddingSparseGradientArgumentErrors(t *testing.T) {
	dy, ids := mlxc.Ones(mlxc.Float32, 2, 4), mlxc.FromSlice([]int32{0, 2})
	results := func(dy, ids *mlxc.Array, vocabulary int) arrays {
		rows, gradients, count := EmbeddingSparseGradient(dy, ids, vocabulary)
		return arrays{rows, gradients, count}
	}
	for _, c := range []struct {
		name    string
		results arrays
		part    string
	}{
		{"dy's rows", results(mlxc.Ones(mlxc.Float32, 3, 4), ids, 3), "and one more axis"},
		{"dy's rank", results(mlxc.Ones(mlxc.Float32, 2), ids, 3), "and one more axis"},
		{"dy without axes", results(mlxc.Scalar[float32](1), mlxc.Scalar[int32](1), 3), "and one more axis"},
		{"dy's dtype", results(dy.AsType(mlxc.Float64), ids, 3), "float64"},
		{"ids' dtype", results(dy, ids.AsType(mlxc.Int64), 3), "int32 or uint32"},
		{"an id too large", results(dy, ids, 2), "element 1 of ids is 2"},
		{"a negative vocabulary", results(dy, ids, -1), "vocabulary is -1"},
		{"a vocabulary too large", results(dy, ids, 1<<31), "vocabulary is 2147483648"},
		{"nil", results(nil, ids, 3), "nil"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, a := range c.results {
				require.ErrorContains(t, mlxc.Eval(a), c.part)
				require.ErrorContains(t, mlxc.Eval(a), "EmbeddingSparseGradient")
			}
		})
	}
}

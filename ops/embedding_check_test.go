package ops

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Ids out of range that have not been computed give rows of NaN and contribute nothing to the gradient.
func TestEmbeddingOutOfRange(t *testing.T) {
	nan := float32(math.NaN())
	rows, gradient := []float32{nan, nan, 5, 6, nan, nan, 5, 6, nan, nan}, []float32{0, 0, 0, 0, 10, 12}
	for _, dtype := range gradientDTypes {
		weight := mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 3, 2).AsType(dtype)
		dy := mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 5, 2).AsType(dtype)
		for _, ids := range (arrays{
			mlxc.FromSlice([]int32{-1, 2, math.MinInt32, 2, 3}),
			mlxc.FromSlice([]uint32{math.MaxUint32, 2, 3, 2, 1 << 31}),
		}) {
			for _, d := range backends {
				on := target{backend: d}
				sameFloats(t, rows, mlxtest.Floats(t, embeddingForward(on, weight, ids)))
				require.Equal(t, gradient, mlxtest.Floats(t, embeddingBackward(on, dy, ids, 3)))
			}
			y, grads, err := mlxc.VJP(lookup(lazily(ids), Embedding), arrays{weight}, arrays{dy})
			require.NoError(t, err)
			sameFloats(t, rows, mlxtest.Floats(t, y[0]))
			require.Equal(t, gradient, mlxtest.Floats(t, grads[0]))
		}
	}
	// Too many ids are not checked.
	ids := mlxc.Full(mlxc.Int32, mlxc.Scalar[int32](3), maxCheckedElements+1)
	require.NoError(t, mlxc.Eval(ids))
	y := Embedding(mlxc.Ones(mlxc.Float32, 3, 1), ids)
	require.True(t, math.IsNaN(float64(mlxtest.Floats(t, y)[maxCheckedElements])))
}

func TestEmbeddingArgumentErrors(t *testing.T) {
	weight, ids := mlxc.Ones(mlxc.Float32, 3, 4), mlxc.FromSlice([]int32{0, 2})
	freed := mlxc.Ones(mlxc.Float32, 3, 4)
	freed.Free()
	for _, c := range []struct {
		name  string
		y     *mlxc.Array
		parts []string
	}{
		{"weight's rank", Embedding(mlxc.Ones(mlxc.Float32, 3), ids), []string{"float32(3)", "two axes"}},
		{"weight's dtype", Embedding(weight.AsType(mlxc.Int32), ids), []string{"int32(3,4)", "AsType"}},
		{
			"ids' dtype",
			Embedding(weight, ids.AsType(mlxc.Float32)),
			[]string{"float32(3,4), float32(2)", "int32 or uint32"},
		},
		{"wide ids", Embedding(weight, ids.AsType(mlxc.Int64)), []string{"int64(2)", "AsType"}},
		{
			"an id too large",
			Embedding(weight, mlxc.FromSlice([]uint32{0, 1, 3})),
			[]string{"element 2 of ids is 3", "below 3"},
		},
		{
			"a negative id",
			Embedding(weight, mlxc.FromSlice([]int32{0, -1})),
			[]string{"element 1 of ids is -1", "at least 0"},
		},
		{
			"a table without rows",
			Embedding(mlxc.Ones(mlxc.Float32, 0, 4), ids),
			[]string{"element 0 of ids is 0", "below 0"},
		},
		{"nil weight", Embedding(nil, ids), []string{"nil"}},
		{"nil ids", Embedding(weight, nil), []string{"nil"}},
		{"freed weight", Embedding(freed, ids), []string{"freed"}},
		{"an error passes through", Embedding(weight.Add(mlxc.Ones(mlxc.Float32, 7)), ids), []string{"add"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mlxc.Eval(c.y)
			for _, p := range c.parts {
				require.ErrorContains(t, err, p)
			}
			if c.name != "an error passes through" {
				require.ErrorContains(t, err, "ops.Embedding")
			}
			require.NoError(t, mlxc.Eval(Embedding(weight, ids)))
		})
	}
}

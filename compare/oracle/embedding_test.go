package oracle

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEmbeddingByHand(t *testing.T) {
	weight := table(2, 1, 2, 3, 4, 5, 6)
	ids := table(3, 2, 0, 2, 1, 0, 2)
	y := Embedding(weight, ids)
	require.Equal(t, []int{2, 3, 2}, y.Shape)
	require.Equal(t, []float64{5, 6, 1, 2, 5, 6, 3, 4, 1, 2, 5, 6}, y.Data)

	dy := Tensor{Shape: y.Shape, Data: []float64{1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60}}
	require.Equal(t, []float64{7, 70, 4, 40, 10, 100}, EmbeddingVJP(ids, 3, dy).Data)
}

func TestEmbeddingSparseGradientByHand(t *testing.T) {
	dy := table(2, 1, 10, 2, 20, 3, 30, 4, 40)
	rows, gradients, count := EmbeddingSparseGradient(dy, list(7, 2, 7, 7), 9)
	require.Equal(t, []float64{2, 7, 9, 9}, rows.Data)
	require.Equal(t, []float64{2, 20, 8, 80, 0, 0, 0, 0}, gradients.Data)
	require.Equal(t, Tensor{Data: []float64{2}}, count)

	// More ids than rows, one of them out of range.
	rows, gradients, count = EmbeddingSparseGradient(dy, list(1, 0, 2, 1), 2)
	require.Equal(t, []float64{0, 1}, rows.Data)
	require.Equal(t, []float64{2, 20, 5, 50}, gradients.Data)
	require.Equal(t, []float64{2}, count.Data)
}

func TestEmbeddingOfIdsOutOfRange(t *testing.T) {
	ids := list(1, -1, 3)
	y := Embedding(table(1, 5, 6, 7), ids)
	require.Equal(t, 6.0, y.Data[0])
	require.True(t, math.IsNaN(y.Data[1]) && math.IsNaN(y.Data[2]))
	require.Equal(t, []float64{0, 2, 0}, EmbeddingVJP(ids, 3, table(1, 2, 3, 4)).Data)
}

func TestEmbeddingGradientMatchesForward(t *testing.T) {
	requireGradient(t,
		func(in []Tensor) []Tensor { return []Tensor{Embedding(in[0], in[1])} },
		func(in, ct []Tensor) []Tensor { return []Tensor{EmbeddingVJP(in[1], in[0].Shape[0], ct[0])} },
		[][]int{{5, 7}}, table(3, 4, 0, 4, 1, 4, 0))
}

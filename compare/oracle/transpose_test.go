package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTranspose2DByHand(t *testing.T) {
	y := Transpose2D(Tensor{Shape: []int{2, 2, 3}, Data: []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}})
	require.Equal(t, []int{2, 3, 2}, y.Shape)
	require.Equal(t, []float64{1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12}, y.Data)
	require.Equal(t, []int{3, 0}, Transpose2D(New(0, 3)).Shape)
}

func TestTranspose2DGradientMatchesForward(t *testing.T) {
	for _, shape := range [][]int{{1, 5}, {3, 7}, {2, 3, 4, 5}} {
		requireGradient(t,
			func(in []Tensor) []Tensor { return []Tensor{Transpose2D(in[0])} },
			func(_, ct []Tensor) []Tensor { return []Tensor{Transpose2D(ct[0])} },
			[][]int{shape})
	}
}

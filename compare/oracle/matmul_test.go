package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMatMulByHand(t *testing.T) {
	// (1 2)   (5 6)   (19 22)
	// (3 4) · (7 8) = (43 50)
	a, b := table(2, 1, 2, 3, 4), table(2, 5, 6, 7, 8)
	require.Equal(t, []float64{19, 22, 43, 50}, MatMul(a, b).Data)

	// For dy = 1, da has the sums of b's rows, and db those of a's columns.
	da, db := MatMulVJP(a, b, table(2, 1, 1, 1, 1))
	require.Equal(t, []float64{11, 15, 11, 15}, da.Data)
	require.Equal(t, []float64{4, 4, 6, 6}, db.Data)
}

func TestMatMulGradientMatchesForward(t *testing.T) {
	for _, shapes := range [][][]int{{{5}, {5, 3}}, {{3, 7}, {7, 4}}, {{2, 3, 5}, {5, 1}}} {
		requireGradient(t,
			func(in []Tensor) []Tensor { return []Tensor{MatMul(in[0], in[1])} },
			func(in, ct []Tensor) []Tensor {
				da, db := MatMulVJP(in[0], in[1], ct[0])
				return []Tensor{da, db}
			},
			shapes)
	}
}

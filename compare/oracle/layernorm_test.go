package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLayerNormByHand(t *testing.T) {
	// μ = 3, variance 4, eps = 0, so σ⁻¹ = 1/2 and x̂ = (1, −1).
	x, w, b := table(2, 5, 1), list(3, 5), list(10, 20)
	require.Equal(t, []float64{13, 15}, LayerNorm(x, &w, &b, 0).Data)
	require.Equal(t, []float64{11, 19}, LayerNorm(x, nil, &b, 0).Data)
	require.Equal(t, []float64{3, -5}, LayerNorm(x, &w, nil, 0).Data)

	// For two values and eps = 0, y does not depend on x up to its sign, so dx is 0. With eps = 5, σ⁻¹ = 1/3 and
	// x̂ = (2/3, −2/3).
	dx, dw, db := LayerNormVJP(x, &w, 5, table(2, 1, 1))
	// g = (3, 5), mean(g) = 4, mean(g·x̂) = −2/3; dx = ⅓(3 − 4 + ⅔·⅔), ⅓(5 − 4 − ⅔·⅔).
	require.InDeltaSlice(t, []float64{-5.0 / 27, 5.0 / 27}, dx.Data, 1e-15)
	require.InDeltaSlice(t, []float64{2.0 / 3, -2.0 / 3}, dw.Data, 1e-15)
	require.Equal(t, []float64{1, 1}, db.Data)
}

func TestLayerNormGradientMatchesForward(t *testing.T) {
	for _, shape := range [][]int{{33}, {3, 7}, {2, 3, 4, 31}} {
		width := shape[len(shape)-1]
		requireGradient(t,
			func(in []Tensor) []Tensor { return []Tensor{LayerNorm(in[0], &in[1], &in[2], 1e-5)} },
			func(in, ct []Tensor) []Tensor {
				dx, dw, db := LayerNormVJP(in[0], &in[1], 1e-5, ct[0])
				return []Tensor{dx, dw, db}
			},
			[][]int{shape, {width}, {width}})
		requireGradient(t,
			func(in []Tensor) []Tensor { return []Tensor{LayerNorm(in[0], nil, nil, 1e-5)} },
			func(in, ct []Tensor) []Tensor {
				dx, _, _ := LayerNormVJP(in[0], nil, 1e-5, ct[0])
				return []Tensor{dx}
			},
			[][]int{shape})
	}
}

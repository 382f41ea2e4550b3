package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRMSNormResidualByHand(t *testing.T) {
	x, residual, w := table(2, 2, -2), table(2, 100, 200), list(3, 5)
	require.Equal(t, []float64{103, 195}, RMSNormResidual(x, residual, &w, 0).Data)
	require.Equal(t, []float64{101, 199}, RMSNormResidual(x, residual, nil, 0).Data)
	require.Equal(t, []float64{100, 200}, residual.Data)

	dx, dresidual, dw := RMSNormResidualVJP(x, &w, 0, table(2, 1, 1))
	require.Equal(t, []float64{2, 2}, dx.Data) // As in TestRMSNormByHand.
	require.Equal(t, []float64{1, 1}, dresidual.Data)
	require.Equal(t, []float64{1, -1}, dw.Data)
}

func TestRMSNormResidualGradientMatchesForward(t *testing.T) {
	for _, shape := range [][]int{{33}, {3, 7}, {2, 3, 4, 31}} {
		requireGradient(t,
			func(in []Tensor) []Tensor { return []Tensor{RMSNormResidual(in[0], in[1], &in[2], 1e-5)} },
			func(in, ct []Tensor) []Tensor {
				dx, dresidual, dw := RMSNormResidualVJP(in[0], &in[2], 1e-5, ct[0])
				return []Tensor{dx, dresidual, dw}
			},
			[][]int{shape, shape, {shape[len(shape)-1]}})
	}
}

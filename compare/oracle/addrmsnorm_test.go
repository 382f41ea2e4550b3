package oracle

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAddRMSNormByHand(t *testing.T) {
	x, residual, w := table(2, 3, 0), table(2, -1, -2), list(3, 5) // The sum is (2, −2).
	h, y := AddRMSNorm(x, residual, &w, 0)
	require.Equal(t, []float64{2, -2}, h.Data)
	require.Equal(t, []float64{3, -5}, y.Data)

	dx, dresidual, dw := AddRMSNormVJP(x, residual, &w, 0, table(2, 10, 20), table(2, 1, 1))
	require.Equal(t, []float64{12, 22}, dx.Data) // The norm's part as in TestRMSNormByHand.
	require.Equal(t, dx, dresidual)
	require.Equal(t, []float64{1, -1}, dw.Data)
}

func TestAddRMSNormGradientMatchesForward(t *testing.T) {
	for _, shape := range [][]int{{33}, {3, 7}, {2, 3, 4, 31}} {
		requireGradient(t,
			func(in []Tensor) []Tensor {
				h, y := AddRMSNorm(in[0], in[1], &in[2], 1e-5)
				return []Tensor{h, y}
			},
			func(in, ct []Tensor) []Tensor {
				dx, dresidual, dw := AddRMSNormVJP(in[0], in[1], &in[2], 1e-5, ct[0], ct[1])
				return []Tensor{dx, dresidual, dw}
			},
			[][]int{shape, shape, {shape[len(shape)-1]}})
	}
}

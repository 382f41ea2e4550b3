package oracle

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinearCrossEntropyByHand(t *testing.T) {
	// The logits are (0, ln 3), as in TestCrossEntropyByHand, where dlogits is (−¾, ¾) for target 0.
	ln3 := math.Log(3)
	hidden, weight, targets := table(2, 1, 2), table(2, 2, -1, ln3, 0), list(0)
	require.InDelta(t, 2*math.Ln2, LinearCrossEntropy(hidden, weight, targets, CrossEntropyConfig{}).Data[0], 1e-15)
	dhidden, dweight := LinearCrossEntropyVJP(hidden, weight, targets, CrossEntropyConfig{}, Tensor{Data: []float64{4}})
	require.InDeltaSlice(t, []float64{-6 + 3*ln3, 3}, dhidden.Data, 1e-14)
	require.InDeltaSlice(t, []float64{-3, -6, 3, 6}, dweight.Data, 1e-14)
}

func TestLinearCrossEntropyGradientMatchesForward(t *testing.T) {
	for _, cfg := range configs() {
		t.Run(cfg.String(), func(t *testing.T) {
			requireGradient(t,
				func(in []Tensor) []Tensor { return []Tensor{LinearCrossEntropy(in[0], in[1], in[2], cfg)} },
				func(in, ct []Tensor) []Tensor {
					dhidden, dweight := LinearCrossEntropyVJP(in[0], in[1], in[2], cfg, ct[0])
					return []Tensor{dhidden, dweight}
				},
				[][]int{{2, 3, 5}, {7, 5}}, table(3, 0, 3, 6, 6, -1, 2))
		})
	}
}

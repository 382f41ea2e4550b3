package oracle

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSoftmaxByHand(t *testing.T) {
	// exp(x) = 1 and 3, so y = (¼, ¾); adding a constant to a row does not change y.
	x := table(2, 0, math.Log(3), 1e5, 1e5+math.Log(3))
	want := []float64{0.25, 0.75, 0.25, 0.75}
	require.InDeltaSlice(t, want, Softmax(x).Data, 1e-11)

	// Σ y·dy = ¼·4 + ¾·0 = 1; dx = ¼(4 − 1), ¾(0 − 1).
	dx := SoftmaxVJP(x, table(2, 4, 0, 1, 1))
	require.InDeltaSlice(t, []float64{0.75, -0.75, 0, 0}, dx.Data, 1e-11)

	inf := math.Inf(1)
	y := Softmax(table(3, 1, -inf, 1, 1, inf, 1))
	require.Equal(t, []float64{0.5, 0, 0.5}, y.row(0), "−∞ is left out")
	for _, v := range y.row(1) {
		require.True(t, math.IsNaN(v), "∞ over ∞")
	}
}

func TestSoftmaxGradientMatchesForward(t *testing.T) {
	for _, shape := range [][]int{{33}, {3, 7}, {2, 3, 4, 31}} {
		requireGradient(t,
			func(in []Tensor) []Tensor { return []Tensor{Softmax(in[0])} },
			func(in, ct []Tensor) []Tensor { return []Tensor{SoftmaxVJP(in[0], ct[0])} },
			[][]int{shape})
	}
}

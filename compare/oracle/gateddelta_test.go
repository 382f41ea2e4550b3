package oracle

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGatedDeltaByHand(t *testing.T) {
	// With keys of one element, S is a number: S_t = α(1 − β·k²)·S + β·k·v.
	half := math.Log(0.5)
	steps := func(values ...float64) Tensor { return Tensor{Shape: []int{1, 1, len(values)}, Data: values} }
	initial := head(1, 4)
	g := GatedDelta{
		Q: head(1, 3, 1), K: head(1, 1, 2), V: head(1, 6, 5), LogDecay: steps(half, 0), Beta: steps(0.5, 0.25),
		Initial: &initial, Scale: 2,
	}
	// Step 0: H = 2, u = ½(6 − 2) = 2, S = 4, out = 2·4·3. Step 1: H = 4, u = ¼(5 − 8) = −¾, S = 2.5, out = 2·2.5.
	out, final := g.Forward()
	require.InDeltaSlice(t, []float64{24, 5}, out.Data, 1e-14)
	require.InDeltaSlice(t, []float64{2.5}, final.Data, 1e-14)

	// Step 1: dS = 2 + 1 = 3, du = 6, dH = 3 − ¼·2·6 = 0. Step 0: dS = 2·3 = 6, du = 6, dH = 6 − ½·6 = 3.
	grads := g.VJP(head(1, 1, 1), head(1, 1))
	require.InDeltaSlice(t, []float64{2 * 4, 2 * 2.5}, grads.Q.Data, 1e-14)
	require.InDeltaSlice(t, []float64{6*2 - 0.5*2*6, 3*-0.75 - 0.25*4*6}, grads.K.Data, 1e-14)
	require.InDeltaSlice(t, []float64{3, 1.5}, grads.V.Data, 1e-14)
	require.InDeltaSlice(t, []float64{6 * 4, 6 * -3}, grads.Beta.Data, 1e-14)
	require.InDeltaSlice(t, []float64{3 * 2, 0}, grads.LogDecay.Data, 1e-14)
	require.InDeltaSlice(t, []float64{1.5}, grads.Initial.Data, 1e-14)

	// A decay of 0 forgets the state.
	g.LogDecay = steps(math.Inf(-1), 0)
	out, _ = g.Forward()
	require.InDeltaSlice(t, []float64{18, 2 * (3 + 2*0.25*(5-2*3))}, out.Data, 1e-14)
	require.Zero(t, g.VJP(head(1, 1, 1), head(1, 1)).LogDecay.Data[0])
}

// Packed sequences are independent of each other, and an empty sequence keeps its state.
func TestGatedDeltaSequences(t *testing.T) {
	initial := head(1, 1, 2, 3)
	initial.Shape = []int{3, 1, 1, 1}
	steps := func(values ...float64) Tensor { return Tensor{Shape: []int{1, 1, len(values)}, Data: values} }
	g := GatedDelta{
		Q: head(1, 1, 1, 1), K: head(1, 1, 1, 1), V: head(1, 5, 7, 9), LogDecay: steps(0, 0, 0), Beta: steps(1, 1, 0),
		Initial: &initial, Scale: 1, Starts: []int{0, 2, 2, 3},
	}
	out, final := g.Forward()
	require.Equal(t, []float64{5, 7, 3}, out.Data)
	require.Equal(t, []float64{7, 2, 3}, final.Data)
	require.Equal(t, []float64{0, 1, 1}, g.VJP(New(1, 1, 3, 1), Tensor{Shape: initial.Shape, Data: []float64{1, 1, 1}}).Initial.Data)
}

func TestGatedDeltaGradientMatchesForward(t *testing.T) {
	for _, c := range []struct {
		batch, keyHeads, valueHeads, length int
		starts                              []int
	}{
		{batch: 2, keyHeads: 1, valueHeads: 1, length: 1},
		{batch: 1, keyHeads: 2, valueHeads: 4, length: 5},
		{batch: 1, keyHeads: 1, valueHeads: 2, length: 6, starts: []int{0, 1, 1, 6}},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			const width, valueWidth = 3, 2
			sequences := c.batch
			if c.starts != nil {
				sequences = len(c.starts) - 1
			}
			keys := []int{c.batch, c.keyHeads, c.length, width}
			rows := []int{c.batch, c.valueHeads, c.length}
			of := func(in []Tensor) GatedDelta {
				return GatedDelta{
					Q: in[0], K: in[1], V: in[2], LogDecay: in[3], Beta: in[4], Initial: &in[5], Scale: 0.5, Starts: c.starts,
				}
			}
			requireGradient(t,
				func(in []Tensor) []Tensor {
					out, final := of(in).Forward()
					return []Tensor{out, final}
				},
				func(in, ct []Tensor) []Tensor {
					g := of(in).VJP(ct[0], ct[1])
					return []Tensor{g.Q, g.K, g.V, g.LogDecay, g.Beta, g.Initial}
				},
				[][]int{
					keys, keys, append(append([]int(nil), rows...), valueWidth), rows, rows,
					{sequences, c.valueHeads, width, valueWidth},
				})
		})
	}
}

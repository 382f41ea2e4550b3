package oracle

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSSMScanByHand(t *testing.T) {
	// Decays of ½ and ¼: h = ½·8 + 1·2·3 = 10, then ¼·10 + 2·1·5 = 12.5.
	d, state := list(10), Tensor{Shape: []int{1, 1, 1, 1}, Data: []float64{8}}
	steps := func(values ...float64) Tensor { return Tensor{Shape: []int{1, 2, 1, 1}, Data: values} }
	s := SSMScan{
		X: steps(2, 1), DT: Tensor{Shape: []int{1, 2, 1}, Data: []float64{1, 2}}, A: list(-math.Ln2),
		B: steps(3, 5), C: steps(1, 2), D: &d, State: &state,
	}
	y, final := s.Forward()
	require.InDeltaSlice(t, []float64{10 + 20, 25 + 10}, y.Data, 1e-13)
	require.InDeltaSlice(t, []float64{12.5}, final.Data, 1e-13)

	// g = 1·2 + 3 = 5 at the last step, then 1·1 + ¼·5 = 2.25.
	grads := s.VJP(steps(1, 1), Tensor{Shape: []int{1, 1, 1, 1}, Data: []float64{3}})
	require.InDeltaSlice(t, []float64{2.25*3 + 10, 2*5*5 + 10}, grads.X.Data, 1e-13)
	require.InDeltaSlice(t, []float64{2.25 * 2, 2 * 5}, grads.B.Data, 1e-13)
	require.InDeltaSlice(t, []float64{10, 12.5}, grads.C.Data, 1e-13)
	require.InDeltaSlice(t, []float64{3}, grads.D.Data, 1e-13)
	require.InDeltaSlice(t, []float64{2.25 / 2}, grads.State.Data, 1e-13)
	// da = ½·2.25·8 = 9 and ¼·5·10 = 12.5.
	require.InDeltaSlice(t, []float64{2*2.25*3 - math.Ln2*9, 5*5 - math.Ln2*12.5}, grads.DT.Data, 1e-13)
	require.InDeltaSlice(t, []float64{9 + 2*12.5}, grads.A.Data, 1e-13)
}

// A packed sequence has the results that it has alone.
func TestSSMScanOfPackedSequences(t *testing.T) {
	shape := func(first, n int, inner ...int) Tensor {
		x := New(append([]int{1, n}, inner...)...)
		for i := range x.Data {
			x.Data[i] = math.Sin(float64(first*Size(inner) + i + 1))
		}
		return x
	}
	scan := func(first, n int) SSMScan {
		dt := shape(first, n, 2)
		for i := range dt.Data {
			dt.Data[i] += 1
		}
		return SSMScan{
			X: shape(first, n, 2, 3), DT: dt, A: list(-1, -0.5), B: shape(first, n, 1, 2), C: shape(first, n, 1, 2),
		}
	}
	packed := scan(0, 7)
	packed.Starts = []int{0, 3, 3, 7}
	y, final := packed.Forward()
	first, state0 := scan(0, 3).Forward()
	second, state2 := scan(3, 4).Forward()
	require.Equal(t, append(first.Data, second.Data...), y.Data)
	require.Equal(t, append(append(state0.Data, make([]float64, 12)...), state2.Data...), final.Data)
}

func TestSSMScanGradientMatchesForward(t *testing.T) {
	for _, c := range []struct{ batches, length, heads, groups, sequences int }{
		{1, 1, 1, 1, 0}, {2, 5, 4, 2, 0}, {1, 6, 2, 1, 3},
	} {
		states := c.batches
		scan := func(in []Tensor) SSMScan {
			s := SSMScan{X: in[0], DT: in[1], A: in[2], B: in[3], C: in[4], D: &in[5], State: &in[6]}
			if c.sequences > 0 {
				s.Starts = []int{0, 2, 2, c.length}
			}
			return s
		}
		if c.sequences > 0 {
			states = c.sequences
		}
		requireGradient(t,
			func(in []Tensor) []Tensor {
				y, final := scan(in).Forward()
				return []Tensor{y, final}
			},
			func(in, ct []Tensor) []Tensor {
				g := scan(in).VJP(ct[0], ct[1])
				return []Tensor{g.X, g.DT, g.A, g.B, g.C, *g.D, *g.State}
			},
			[][]int{
				{c.batches, c.length, c.heads, 3},
				{c.batches, c.length, c.heads},
				{c.heads},
				{c.batches, c.length, c.groups, 2},
				{c.batches, c.length, c.groups, 2},
				{c.heads},
				{states, c.heads, 3, 2},
			})
	}
}

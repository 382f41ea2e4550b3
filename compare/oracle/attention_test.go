package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// head returns the rows of one head, of shape [1, 1, rows, width].
func head(width int, values ...float64) Tensor {
	return Tensor{Shape: []int{1, 1, len(values) / width, width}, Data: values}
}

func TestAttentionByHand(t *testing.T) {
	// The scores are (0, ln 3), so p = (¼, ¾) and lse = ln 4.
	ln3 := math.Log(3)
	a := Attention{Q: head(1, 2), K: head(1, 0, ln3), V: head(2, 4, 0, 0, 8), Scale: 0.5}
	out, lse := a.Forward()
	require.InDeltaSlice(t, []float64{1, 6}, out.Data, 1e-14)
	require.InDelta(t, math.Log(4), lse.Data[0], 1e-14)

	// ⟨dout, v⟩ = (4, 8), delta = 7, ds = ¼(4 − 7 + 2), ¾(8 − 7 + 2) = (−¼, 9/4).
	grads := a.VJP(head(2, 1, 1), list(2))
	require.InDeltaSlice(t, []float64{0.5 * 9. / 4 * ln3}, grads.Q.Data, 1e-14)
	require.InDeltaSlice(t, []float64{-1. / 4, 9. / 4}, grads.K.Data, 1e-14)
	require.InDeltaSlice(t, []float64{0.25, 0.25, 0.75, 0.75}, grads.V.Data, 1e-14)

	// A sink of ln 4 is half of the sum: p = (⅛, ⅜), delta = 3.5, ds = ⅛(4 − 3.5), ⅜(8 − 3.5).
	sinks, bias := list(math.Log(4)), table(2, 0, 0)
	a.Sinks, a.Bias = &sinks, &bias
	out, lse = a.Forward()
	require.InDeltaSlice(t, []float64{0.5, 3}, out.Data, 1e-14)
	require.InDelta(t, math.Log(8), lse.Data[0], 1e-14)
	grads = a.VJP(head(2, 1, 1), list(0))
	require.InDeltaSlice(t, []float64{0.5 / 8, 4.5 * 3 / 8}, grads.Bias.Data, 1e-14)
	require.InDeltaSlice(t, []float64{-3.5 / 2}, grads.Sinks.Data, 1e-14)

	// tanh(½·ln 3) = ½, so a cap of 2 maps the score ln 3 to 1, with slope ¾.
	a = Attention{Q: head(1, 2), K: head(1, 0, ln3), V: head(1, 0, 1), Scale: 0.5, SoftCap: 2}
	out, lse = a.Forward()
	p := math.E / (1 + math.E)
	require.InDelta(t, p, out.Data[0], 1e-14)
	require.InDelta(t, math.Log(1+math.E), lse.Data[0], 1e-14)
	require.InDelta(t, 0.75*p*(1-p), a.VJP(head(1, 1), list(0)).K.Data[1], 1e-14)
}

// seenBy returns one string per query, with an x for each key that the query sees. It derives them from the
// probabilities of equal scores.
func seenBy(a Attention, queries, keys int) []string {
	a.Q, a.K, a.V, a.Scale = New(1, 1, queries, 1), New(1, 1, keys, 1), New(1, 1, keys, keys), 1
	for j := range keys {
		a.V.Data[j*keys+j] = 1
	}
	out, lse := a.Forward()
	rows := make([]string, queries)
	for i := range rows {
		n := 0
		for _, p := range out.row(i) {
			rows[i] += map[bool]string{false: ".", true: "x"}[p > 0]
			if p > 0 {
				n++
			}
		}
		if math.Abs(lse.Data[i]-math.Log(float64(n))) > 1e-14 {
			rows[i] += fmt.Sprintf(" lse %g", lse.Data[i])
		}
	}
	return rows
}

func TestAttentionMasks(t *testing.T) {
	mask := table(3, 0, 1, 0, 0, 0, 0)
	for _, c := range []struct {
		name          string
		a             Attention
		queries, keys int
		want          []string
	}{
		{"all", Attention{}, 2, 3, []string{"xxx", "xxx"}},
		{"causal", Attention{Causal: true}, 3, 3, []string{"x..", "xx.", "xxx"}},
		{"causal, fewer queries", Attention{Causal: true}, 2, 4, []string{"xxx.", "xxxx"}},
		{"causal, more queries", Attention{Causal: true}, 4, 2, []string{"..", "..", "x.", "xx"}},
		{"window", Attention{Window: &[2]int{1, 2}}, 5, 5, []string{"xxx..", "xxxx.", ".xxxx", "..xxx", "...xx"}},
		{"window to the left", Attention{Window: &[2]int{1, -1}}, 3, 4, []string{"xxxx", ".xxx", "..xx"}},
		{"window to the right", Attention{Window: &[2]int{-1, 0}}, 3, 4, []string{"xx..", "xxx.", "xxxx"}},
		{"window and causal", Attention{Causal: true, Window: &[2]int{1, 1}}, 3, 3, []string{"x..", "xx.", ".xx"}},
		{"mask", Attention{Seen: &mask}, 2, 3, []string{".x.", "..."}},
		{"mask and causal", Attention{Seen: &mask, Causal: true}, 2, 3, []string{".x.", "..."}},
		{
			"sequences",
			Attention{Causal: true, QueryStarts: []int{0, 2, 2, 5}, KeyStarts: []int{0, 3, 4, 6}},
			5, 6,
			[]string{"xx....", "xxx...", "......", "....x.", "....xx"},
		},
		{
			"sequences with a window",
			Attention{Window: &[2]int{0, 1}, QueryStarts: []int{0, 1, 4}, KeyStarts: []int{0, 2, 5}},
			4, 5,
			[]string{".x...", "..xx.", "...xx", "....x"},
		},
		{
			"sequence without keys",
			Attention{QueryStarts: []int{0, 1, 2}, KeyStarts: []int{0, 0, 2}},
			2, 2,
			[]string{"..", "xx"},
		},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, seenBy(c.a, c.queries, c.keys)) })
	}
}

// attentionShapes returns the shapes of the inputs of a case: q, k, v, and optionally a bias and sinks.
func attentionShapes(batch, heads, kvHeads, queries, keys int, bias []int, sinks bool) [][]int {
	shapes := [][]int{{batch, heads, queries, 3}, {batch, kvHeads, keys, 3}, {batch, kvHeads, keys, 2}}
	if bias != nil {
		shapes = append(shapes, bias)
	}
	if sinks {
		shapes = append(shapes, []int{heads})
	}
	return shapes
}

func TestAttentionGradientMatchesForward(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	seen := New(4, 5, 6)
	for i := range seen.Data {
		seen.Data[i] = float64(rng.IntN(2))
	}
	for i := range 6 {
		seen.Data[6+i] = 0 // all keys of the row are masked
	}
	for _, c := range []struct {
		name    string
		a       Attention
		heads   int
		bias    []int
		sinks   bool
		withLSE bool
	}{
		{name: "plain", heads: 4},
		{name: "lse", heads: 4, withLSE: true},
		{name: "grouped", heads: 1, withLSE: true},
		{name: "causal", a: Attention{Causal: true}, heads: 2, withLSE: true},
		{name: "window", a: Attention{Window: &[2]int{2, 1}}, heads: 2, withLSE: true},
		{
			name:  "sequences",
			a:     Attention{Causal: true, QueryStarts: []int{0, 2, 2, 5}, KeyStarts: []int{0, 2, 3, 6}},
			heads: 4, withLSE: true,
		},
		{name: "fully masked rows", a: Attention{Seen: &seen}, heads: 2},
		{name: "soft cap", a: Attention{SoftCap: 0.7}, heads: 2, withLSE: true},
		{name: "sinks", heads: 2, sinks: true, withLSE: true},
		{name: "sinks and fully masked rows", a: Attention{Seen: &seen}, heads: 2, sinks: true, withLSE: true},
		{name: "bias of keys", heads: 2, bias: []int{6}, withLSE: true},
		{name: "bias of a batch's keys", heads: 2, bias: []int{2, 1, 1, 6}},
		{name: "bias of a head's keys", heads: 2, bias: []int{4, 1, 6}},
		{name: "bias of rows", heads: 2, bias: []int{5, 1}, withLSE: true},
		{name: "bias of scores", heads: 2, bias: []int{1, 1, 5, 6}},
		{name: "bias of all", heads: 2, bias: []int{2, 4, 5, 6}, withLSE: true},
		{
			name: "everything", heads: 2, bias: []int{2, 1, 5, 6}, sinks: true, withLSE: true,
			a: Attention{Causal: true, Window: &[2]int{3, -1}, SoftCap: 0.7, Seen: &seen},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			of := func(in []Tensor) Attention {
				a := c.a
				a.Q, a.K, a.V, a.Scale = in[0], in[1], in[2], 0.8
				rest := in[3:]
				if c.bias != nil {
					a.Bias, rest = &rest[0], rest[1:]
				}
				if c.sinks {
					a.Sinks = &rest[0]
				}
				return a
			}
			forward := func(in []Tensor) []Tensor {
				out, lse := of(in).Forward()
				if !c.withLSE {
					return []Tensor{out}
				}
				return []Tensor{out, lse}
			}
			gradient := func(in, ct []Tensor) []Tensor {
				dlse := New(2, 4, 5)
				if c.withLSE {
					dlse = ct[1]
				}
				g := of(in).VJP(ct[0], dlse)
				grads := []Tensor{g.Q, g.K, g.V}
				if c.bias != nil {
					grads = append(grads, *g.Bias)
				}
				if c.sinks {
					grads = append(grads, *g.Sinks)
				}
				return grads
			}
			requireGradient(t, forward, gradient, attentionShapes(2, 4, c.heads, 5, 6, c.bias, c.sinks))
		})
	}
}

// A bias of −∞ has the effect of a mask, forward and backward.
func TestBiasOfMinusInfinityMasks(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	in := like([]Tensor{New(2, 4, 5, 3), New(2, 2, 6, 3), New(2, 2, 6, 2)}, rng)
	seen, bias := New(5, 6), New(5, 6)
	for i := range seen.Data {
		seen.Data[i] = float64(rng.IntN(2))
		if i < 6 || seen.Data[i] == 0 {
			seen.Data[i], bias.Data[i] = 0, math.Inf(-1)
		}
	}
	masked := Attention{Q: in[0], K: in[1], V: in[2], Scale: 1, Seen: &seen}
	biased := Attention{Q: in[0], K: in[1], V: in[2], Scale: 1, Bias: &bias}
	out, lse := masked.Forward()
	sameOut, sameLSE := biased.Forward()
	require.Equal(t, out, sameOut)
	require.Equal(t, lse, sameLSE)
	require.True(t, math.IsInf(lse.Data[0], -1))
	require.Equal(t, []float64{0, 0}, out.row(0))

	ct := like([]Tensor{out, lse}, rng)
	want, got := masked.VJP(ct[0], ct[1]), biased.VJP(ct[0], ct[1])
	require.Equal(t, want.Q, got.Q)
	require.Equal(t, want.K, got.K)
	require.Equal(t, want.V, got.V)
	require.Equal(t, make([]float64, 6), got.Bias.row(0))
	require.Equal(t, []float64{0, 0, 0}, got.Q.row(0))
}

func TestAttentionWithoutKeys(t *testing.T) {
	sinks := list(3)
	a := Attention{Q: New(1, 1, 2, 3), K: New(1, 1, 0, 3), V: New(1, 1, 0, 2), Scale: 1, Sinks: &sinks}
	out, lse := a.Forward()
	require.Equal(t, New(1, 1, 2, 2), out)
	require.Equal(t, []float64{3, 3}, lse.Data)
	g := a.VJP(New(1, 1, 2, 2), Tensor{Shape: []int{1, 1, 2}, Data: []float64{5, 7}})
	require.Equal(t, []float64{12}, g.Sinks.Data)
	require.Empty(t, g.K.Data)
}

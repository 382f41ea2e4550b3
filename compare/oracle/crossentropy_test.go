package oracle

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCrossEntropyByHand(t *testing.T) {
	// exp(logits) = 1 and 3, so lse = ln 4.
	logits := table(2, 0, math.Log(3), 0, math.Log(3), 0, math.Log(3))
	targets := list(0, 1, -7)
	ln2, ln3 := math.Ln2, math.Log(3)
	one := 1
	tests := map[string]struct {
		cfg    CrossEntropyConfig
		losses []float64
	}{
		"plain":            {CrossEntropyConfig{}, []float64{2 * ln2, 2*ln2 - ln3, 0}},
		"ignored":          {CrossEntropyConfig{IgnoreIndex: &one}, []float64{2 * ln2, 0, 0}},
		"label smoothing":  {CrossEntropyConfig{LabelSmoothing: 0.5}, []float64{2*ln2 - ln3/4, 2*ln2 - 3*ln3/4, 0}},
		"z-loss":           {CrossEntropyConfig{ZLoss: 2}, []float64{2*ln2 + 8*ln2*ln2, 2*ln2 - ln3 + 8*ln2*ln2, 0}},
		"soft-cap, no cap": {CrossEntropyConfig{SoftCap: 1e9}, []float64{2 * ln2, 2*ln2 - ln3, 0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := test.cfg
			cfg.Reduction = None
			require.InDeltaSlice(t, test.losses, CrossEntropy(logits, targets, cfg).Data, 1e-14)
			sum, count := 0.0, 0.0
			for i, v := range test.losses {
				sum += v
				if !cfg.ignores(targets.Data[i]) {
					count++
				}
			}
			cfg.Reduction = Sum
			require.InDelta(t, sum, CrossEntropy(logits, targets, cfg).Data[0], 1e-14)
			cfg.Reduction = Mean
			require.InDelta(t, sum/count, CrossEntropy(logits, targets, cfg).Data[0], 1e-14)
		})
	}

	// p = (¼, ¾).
	dlogits := CrossEntropyVJP(logits, targets, CrossEntropyConfig{}, Tensor{Data: []float64{8}})
	require.InDeltaSlice(t, []float64{-3, 3, 1, -1, 0, 0}, dlogits.Data, 1e-14)
}

// tanh(½·ln 3) = ½, so a cap of 2 maps the logit ln 3 to 1.
func TestSoftCapByHand(t *testing.T) {
	cfg := CrossEntropyConfig{SoftCap: 2, Reduction: None}
	logits, targets := table(2, 0, math.Log(3)), list(1)
	lse := math.Log(1 + math.E)
	require.InDelta(t, lse-1, CrossEntropy(logits, targets, cfg).Data[0], 1e-15)
	// The derivative of the capped logit is 1 − ½².
	p := 1 / (1 + math.E)
	dlogits := CrossEntropyVJP(logits, targets, cfg, list(1))
	require.InDeltaSlice(t, []float64{p, -p * 0.75}, dlogits.Data, 1e-15)
}

func TestCrossEntropyWithoutTargets(t *testing.T) {
	logits, targets := table(2, 1, 2, 3, 4), list(-1, 5)
	five := 5
	cfg := CrossEntropyConfig{IgnoreIndex: &five}
	require.Equal(t, Tensor{Data: []float64{0}}, CrossEntropy(logits, targets, cfg))
	require.Equal(t, []float64{0, 0, 0, 0}, CrossEntropyVJP(logits, targets, cfg, Tensor{Data: []float64{1}}).Data)
}

func TestCrossEntropyOfTargetsOutOfRange(t *testing.T) {
	logits, targets := table(2, 1, 1, 3, 4), list(0, 2)
	require.True(t, math.IsNaN(CrossEntropy(logits, targets, CrossEntropyConfig{}).Data[0]))
	dlogits := CrossEntropyVJP(logits, targets, CrossEntropyConfig{}, Tensor{Data: []float64{1}})
	require.InDeltaSlice(t, []float64{-0.25, 0.25}, dlogits.row(0), 1e-15)
	require.True(t, math.IsNaN(dlogits.row(1)[0]) && math.IsNaN(dlogits.row(1)[1]))
}

// configs returns all combinations of the options.
func configs() []CrossEntropyConfig {
	var out []CrossEntropyConfig
	three := 3
	for _, reduction := range []Reduction{Mean, Sum, None} {
		for _, ignore := range []*int{nil, &three} {
			for _, smoothing := range []float64{0, 0.1} {
				for _, z := range []float64{0, 0.01} {
					for _, limit := range []float64{0, 1.5} {
						out = append(out, CrossEntropyConfig{reduction, ignore, smoothing, z, limit})
					}
				}
			}
		}
	}
	return out
}

func (cfg CrossEntropyConfig) String() string {
	return fmt.Sprintf("reduction %d, ignore %t, smoothing %g, z %g, cap %g",
		cfg.Reduction, cfg.IgnoreIndex != nil, cfg.LabelSmoothing, cfg.ZLoss, cfg.SoftCap)
}

func TestCrossEntropyGradientMatchesForward(t *testing.T) {
	for _, cfg := range configs() {
		t.Run(cfg.String(), func(t *testing.T) {
			requireGradient(t,
				func(in []Tensor) []Tensor { return []Tensor{CrossEntropy(in[0], in[1], cfg)} },
				func(in, ct []Tensor) []Tensor { return []Tensor{CrossEntropyVJP(in[0], in[1], cfg, ct[0])} },
				[][]int{{2, 3, 7}}, table(3, 0, 3, 6, 6, -1, 2))
		})
	}
}

package oracle

import "math"

// Reduction selects how the losses of rows are combined.
type Reduction int

// The reductions.
const (
	Mean Reduction = iota // the sum divided by the number of rows that are not ignored, or by 1 if there are none
	Sum                   // the sum
	None                  // one loss per row
)

// CrossEntropyConfig holds the options of [CrossEntropy]. The zero value is the plain mean.
type CrossEntropyConfig struct {
	Reduction      Reduction
	IgnoreIndex    *int    // a target that is ignored; negative targets are always ignored
	LabelSmoothing float64 // ε
	ZLoss          float64 // ζ
	SoftCap        float64 // c, or 0 for no cap
}

// CrossEntropy returns the loss of logits [..., V] and targets [...]: a scalar for Mean and Sum, [...] for None. The
// loss of a row with target t is
//
//	s    = logits, or c·tanh(logits/c) with a soft cap c (Gemma Team, "Gemma 2", 2024, section 2)
//	lse  = ln Σ_j exp(s_j)
//	loss = (1−ε)·(lse − s_t) + ε·(lse − mean_j s_j) + ζ·lse²
//
// with the label smoothing ε (Szegedy et al., "Rethinking the Inception Architecture", 2016, section 7) and the z-loss
// weight ζ (Chowdhery et al., "PaLM", 2022, section 5). The loss of an ignored row is 0. The loss of a row whose target
// is V or more is NaN; Mean counts the row.
func CrossEntropy(logits, targets Tensor, cfg CrossEntropyConfig) Tensor {
	rows, width := logits.matrix()
	losses := New(targets.Shape...)
	for i := range rows {
		t := targets.Data[i]
		switch {
		case cfg.ignores(t):
		case !inRange(t, width):
			losses.Data[i] = math.NaN()
		default:
			losses.Data[i] = cfg.rowLoss(logits.row(i), int(t))
		}
	}
	if cfg.Reduction == None {
		return losses
	}
	sum := 0.0
	for _, v := range losses.Data {
		sum += v
	}
	return Tensor{Data: []float64{sum / cfg.divisor(targets)}}
}

// CrossEntropyVJP returns the gradient of ⟨dloss, CrossEntropy(logits, targets)⟩ with respect to logits.
//
// With p = softmax(s) = ∂lse/∂s and g the cotangent of a row's loss (dloss, divided by the divisor of a Mean),
//
//	ds_j      = g·((1 + 2·ζ·lse)·p_j − (1−ε)·1[j=t] − ε/V)
//	dlogits_j = ds_j, or ds_j·sech²(logits_j/c) with a soft cap, since tanh' = sech²
//
// The gradient of an ignored row is 0. The gradient of a row whose target is V or more is NaN.
func CrossEntropyVJP(logits, targets Tensor, cfg CrossEntropyConfig, dloss Tensor) Tensor {
	rows, width := logits.matrix()
	dlogits := New(logits.Shape...)
	for i := range rows {
		g := dloss.Data[0] / cfg.divisor(targets)
		if cfg.Reduction == None {
			g = dloss.Data[i]
		}
		row, t := dlogits.row(i), targets.Data[i]
		switch {
		case cfg.ignores(t):
		case !inRange(t, width):
			for j := range row {
				row[j] = math.NaN()
			}
		default:
			cfg.rowGradient(row, logits.row(i), int(t), g)
		}
	}
	return dlogits
}

func (cfg CrossEntropyConfig) ignores(target float64) bool {
	return target < 0 || cfg.IgnoreIndex != nil && target == float64(*cfg.IgnoreIndex)
}

// divisor returns the divisor of the sum of the losses.
func (cfg CrossEntropyConfig) divisor(targets Tensor) float64 {
	if cfg.Reduction != Mean {
		return 1
	}
	count := 0
	for _, t := range targets.Data {
		if !cfg.ignores(t) {
			count++
		}
	}
	return float64(max(count, 1))
}

// capped returns the s of a row.
func (cfg CrossEntropyConfig) capped(logits []float64) []float64 {
	if cfg.SoftCap == 0 {
		return logits
	}
	s := make([]float64, len(logits))
	for j, v := range logits {
		s[j] = cfg.SoftCap * math.Tanh(v/cfg.SoftCap)
	}
	return s
}

func (cfg CrossEntropyConfig) rowLoss(logits []float64, target int) float64 {
	s := cfg.capped(logits)
	lse := softmaxRow(make([]float64, len(s)), s)
	loss := (1-cfg.LabelSmoothing)*(lse-s[target]) + cfg.ZLoss*lse*lse
	if cfg.LabelSmoothing > 0 { // for a logit of −∞, 0·(lse − mean) would be NaN
		mean := 0.0
		for _, v := range s {
			mean += v / float64(len(s))
		}
		loss += cfg.LabelSmoothing * (lse - mean)
	}
	return loss
}

func (cfg CrossEntropyConfig) rowGradient(dlogits, logits []float64, target int, g float64) {
	s := cfg.capped(logits)
	p := make([]float64, len(s))
	lse := softmaxRow(p, s)
	for j := range s {
		ds := (1+2*cfg.ZLoss*lse)*p[j] - cfg.LabelSmoothing/float64(len(s))
		if j == target {
			ds -= 1 - cfg.LabelSmoothing
		}
		if c := cfg.SoftCap; c != 0 {
			ds *= tanhSlope(logits[j] / c)
		}
		dlogits[j] = g * ds
	}
}

// tanhSlope returns sech²(u), the derivative of tanh(u). In float64, 1 − tanh²(u) would be 0 from u = 19 on.
func tanhSlope(u float64) float64 {
	c := math.Cosh(u)
	return 1 / c / c
}

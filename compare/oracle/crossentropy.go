package oracle

import "math"

// Reduction is how the losses of rows become the loss.
type Reduction int

// The reductions.
const (
	Mean Reduction = iota // Their sum over the number of rows that are not ignored, or over 1 if none is left.
	Sum                   // Their sum.
	None                  // They stay a loss for each row.
)

// CrossEntropyConfig has the options of [CrossEntropy]; its zero value is the plain mean.
type CrossEntropyConfig struct {
	Reduction      Reduction
	IgnoreIndex    *int    // A target of this value is ignored, as every negative one is.
	LabelSmoothing float64 // ε.
	ZLoss          float64 // ζ.
	SoftCap        float64 // c; 0 for none.
}

// CrossEntropy returns the loss of logits [..., V] against targets [...]. With s the row's logits, or
// c·tanh(logits/c) where there is a soft-cap c (Gemma Team, "Gemma 2", 2024, section 2), lse =
// ln Σ_j exp(s_j) and t the row's target, the loss of a row is
//
//	(1−ε)·(lse − s_t) + ε·(lse − mean_j s_j) + ζ·lse²
//
// with ε the label smoothing (Szegedy et al., "Rethinking the Inception Architecture", 2016, section 7)
// and ζ the weight of the z-loss (Chowdhery et al., "PaLM", 2022, section 5). A row whose target is
// ignored has the loss 0; one whose target is V or more has the loss NaN, and counts.
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
// With p = softmax(s) = ∂lse/∂s, and g the cotangent of a row's loss, dloss over the divisor of a Mean,
//
//	ds_j = g·((1 + 2·ζ·lse)·p_j − (1−ε)·1[j=t] − ε/V)
//	dlogits_j = ds_j·sech²(logits_j/c) with a soft-cap, since tanh' = sech², else ds_j
//
// It is zero for a row that is ignored, and NaN for one whose target is V or more.
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

// divisor is what the sum of the rows' losses is divided by.
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

// capped returns the row's s.
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
	if cfg.LabelSmoothing > 0 { // Zero times the distance from a logit of −∞ would be NaN.
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

// tanhSlope returns sech²(u), the derivative of tanh(u). The form 1 − tanh² is 0 from u = 19 on.
func tanhSlope(u float64) float64 {
	c := math.Cosh(u)
	return 1 / c / c
}

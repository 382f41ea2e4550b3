package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/internal/recipe"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Reduction selects how the losses of rows are combined.
type Reduction int

// The reductions.
const (
	ReductionMean Reduction = iota // the sum divided by the number of rows that are not ignored; 0 if all are ignored
	ReductionSum                   // the sum
	ReductionNone                  // one loss per row
)

// String returns the name of the constant.
func (r Reduction) String() string {
	if r < ReductionMean || r > ReductionNone {
		return fmt.Sprintf("Reduction(%d)", int(r))
	}
	return [...]string{ReductionMean: "ReductionMean", ReductionSum: "ReductionSum", ReductionNone: "ReductionNone"}[r]
}

// CrossEntropyConfig holds the options of [CrossEntropy] and [LinearCrossEntropy]. The zero value is the plain mean.
type CrossEntropyConfig struct {
	// Reduction selects how the losses of rows are combined.
	Reduction Reduction
	// IgnoreIndex, if not nil, points to a target that is ignored. Negative targets are always ignored.
	IgnoreIndex *int
	// LabelSmoothing, in [0, 1), is the weight of the loss against a uniform distribution over the classes.
	LabelSmoothing float32
	// ZLoss, finite and not negative, is the weight of lse², which limits the drift of the logits.
	ZLoss float32
	// SoftCap, if positive, bounds the logits: SoftCap·tanh(logits/SoftCap). Zero means no cap.
	SoftCap float32
}

// CrossEntropy returns the cross-entropy of logits and class targets, with a gradient for logits.
//
// logits has shape (…,V) and dtype float32, float16 or bfloat16. targets has shape (…) and dtype int32 or uint32. The
// result is float32, of shape () for [ReductionMean] and [ReductionSum] and of targets' shape for [ReductionNone].
//
// With c the soft cap, ε the label smoothing and ζ the z-loss weight, the loss of a row with target t is
//
//	s    = logits, or c·tanh(logits/c) with a soft cap
//	lse  = log Σ exp(s)
//	loss = (1−ε)·(lse − s_t) + ε·(lse − mean(s)) + ζ·lse²
//
// and its gradient, with p the softmax of s and g the cotangent of the row's loss, is
//
//	ds      = g·((1+2ζ·lse)·p − (1−ε)·onehot(t) − ε/V)
//	dlogits = ds, or ds·(1−(s/c)²) with a soft cap
//
// Sources: Szegedy et al., "Rethinking the Inception Architecture", 2016, section 7, for ε; Chowdhery et al., "PaLM",
// 2022, section 5, for ζ; Gemma Team, "Gemma 2", 2024, section 2, for c.
//
// A row whose target is negative or equals *IgnoreIndex is ignored: its loss and gradient are 0 for any logits, and
// the mean does not count it. Any other target must be below V. CrossEntropy returns an error for V or more if
// targets has been computed, has at most 65,536 elements and, on an NVIDIA GPU, was made by [mlxc.FromSlice].
// Otherwise the loss and gradient of the row are NaN.
//
// While a gradient is being taken (see [mlxc.Differentiating]) and the losses are reduced, one kernel computes the
// losses and the gradient for a cotangent of 1. The backward pass returns that gradient if the cotangent is 1. For any
// other cotangent it computes the gradient again, from logits and four floats per row that the forward pass keeps.
// Scaling a mean before its gradient is taken therefore costs half as much time again and the memory of a second
// gradient. To scale a loss, use ReductionNone and reduce with MLX's operations.
//
// The results have the same bits at every call. A second derivative is an error.
func CrossEntropy(logits, targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array {
	const op = "ops.CrossEntropy"
	cfg = cfg.clone()
	// While a second derivative is being taken, MLX would treat a prepared gradient as a constant. The backward kernel
	// runs instead and returns an error.
	key := crossEntropyKey{options: cfg.key(), prepare: recipe.GradientDepth() == 1}
	if loss := recorded(key, logits, targets); loss != nil && cfg.checkTargets(targets, logits.Dim(-1)) == nil {
		return loss[0]
	}
	if err := checkCrossEntropy(logits, targets, cfg); err != nil {
		return mlxc.InvalidArray(opError(op, err, logits, targets))
	}
	if targets.Size() == 0 {
		return cfg.emptyLoss(targets)
	}
	if !kernelsAvailable(op) {
		return crossEntropyMLX(logits, targets, cfg)
	}
	return withHidden(1, key, []*mlxc.Array{logits, targets},
		func(args []*mlxc.Array) []*mlxc.Array {
			return crossEntropyForward(currentTarget(), args[0], args[1], cfg, key.prepare)
		},
		func(primals, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			dlogits := crossEntropyBackward(currentTarget(), primals[0], primals[1], cotangents[0], outputs, cfg)
			return append([]*mlxc.Array{dlogits}, zerosLike(primals[1])...)
		})[0]
}

// A crossEntropyKey identifies the graphs of a cross-entropy. See withGradient.
type crossEntropyKey struct {
	options lossOptionsKey
	prepare bool // the forward pass computes the gradient for a cotangent of 1
}

// A lossOptionsKey is a comparable CrossEntropyConfig.
type lossOptionsKey struct {
	cfg     CrossEntropyConfig // without IgnoreIndex
	ignores bool
	ignored int
}

func (cfg CrossEntropyConfig) key() lossOptionsKey {
	k := lossOptionsKey{cfg: cfg, ignores: cfg.IgnoreIndex != nil}
	if k.ignores {
		k.ignored, k.cfg.IgnoreIndex = *cfg.IgnoreIndex, nil
	}
	return k
}

// checkCrossEntropy returns an error if the arguments of CrossEntropy are invalid.
func checkCrossEntropy(logits, targets *mlxc.Array, cfg CrossEntropyConfig) error {
	if err := checkRows("logits", logits); err != nil {
		return err
	}
	if logits.Dim(-1) == 0 {
		return errors.New("the last axis of logits is empty; there must be at least one class")
	}
	return cfg.check(targets, "logits", logits, logits.Dim(-1))
}

// clone returns a copy for a gradient: the caller may change *IgnoreIndex before the gradient is taken.
func (cfg CrossEntropyConfig) clone() CrossEntropyConfig {
	if cfg.IgnoreIndex != nil {
		cfg.IgnoreIndex = new(*cfg.IgnoreIndex)
	}
	return cfg
}

// Check returns an error if an option is invalid.
func (cfg CrossEntropyConfig) Check() error {
	finiteNonNegative := func(v float32) bool { return v >= 0 && !math.IsInf(float64(v), 0) }
	switch {
	case cfg.Reduction < ReductionMean || cfg.Reduction > ReductionNone:
		return fmt.Errorf("Reduction is %v; it must be ReductionMean, ReductionSum or ReductionNone", cfg.Reduction)
	case !(cfg.LabelSmoothing >= 0 && cfg.LabelSmoothing < 1):
		return fmt.Errorf("LabelSmoothing is %v; it must be at least 0 and below 1", cfg.LabelSmoothing)
	case !finiteNonNegative(cfg.ZLoss):
		return fmt.Errorf("ZLoss is %v; it must be finite and not negative", cfg.ZLoss)
	case !finiteNonNegative(cfg.SoftCap):
		return fmt.Errorf("SoftCap is %v; it must be finite and positive, or 0 for no cap", cfg.SoftCap)
	}
	return nil
}

// check returns an error if an option is invalid, or if targets does not have a valid target for each row of rows: a
// class below `classes`, or an ignored target. Messages call the argument rows by its name.
func (cfg CrossEntropyConfig) check(targets *mlxc.Array, name string, rows *mlxc.Array, classes int) error {
	if err := cfg.Check(); err != nil {
		return err
	}
	if err := requireArray("targets", targets); err != nil {
		return err
	}
	if t := targets.DType(); t != mlxc.Int32 && t != mlxc.Uint32 {
		return fmt.Errorf("targets is %v; it must be int32 or uint32: convert it with AsType", t)
	}
	shape := rows.Shape()
	if want := shape[:len(shape)-1]; !slices.Equal(targets.Shape(), want) {
		return fmt.Errorf("targets has shape %v; it must be %v, one target for each row of %s",
			targets.Shape(), want, name)
	}
	return cfg.checkTargets(targets, classes)
}

// checkTargets returns an error for a target out of range, if the targets can be read without synchronization.
func (cfg CrossEntropyConfig) checkTargets(targets *mlxc.Array, classes int) error {
	if targets.Size() > maxCheckedElements {
		return nil
	}
	ignored := -1
	if cfg.IgnoreIndex != nil {
		ignored = *cfg.IgnoreIndex
	}
	if i, t := targets.FindOutside(math.MinInt32, classes-1, ignored); i >= 0 {
		return fmt.Errorf("element %d of targets is %d; it must be below %d, the number of classes, "+
			"or negative or IgnoreIndex to be ignored", i, t, classes)
	}
	return nil
}

// emptyLoss returns the loss of 0 rows.
func (cfg CrossEntropyConfig) emptyLoss(targets *mlxc.Array) *mlxc.Array {
	if cfg.Reduction == ReductionNone {
		return mlxc.Zeros(mlxc.Float32, targets.Shape()...)
	}
	return mlxc.Zeros(mlxc.Float32)
}

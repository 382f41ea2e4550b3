package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Reduction is what becomes of the losses of rows.
type Reduction int

// The reductions.
const (
	Mean Reduction = iota // their sum over the number of rows that are not ignored; 0 if none is left
	Sum                   // their sum
	None                  // a loss for each row
)

func (r Reduction) String() string {
	if r < Mean || r > None {
		return fmt.Sprintf("Reduction(%d)", int(r))
	}
	return [...]string{Mean: "Mean", Sum: "Sum", None: "None"}[r]
}

// CrossEntropyConfig has the options of CrossEntropy and LinearCrossEntropy; its zero
// value is the plain mean.
type CrossEntropyConfig struct {
	Reduction Reduction
	// IgnoreIndex, if it is not nil, is a target that is ignored, as every negative one
	// is.
	IgnoreIndex *int
	// LabelSmoothing is the share of the loss, from [0, 1), that all classes have
	// alike.
	LabelSmoothing float32
	// ZLoss is the weight of lse², which keeps the logits from drifting away.
	ZLoss float32
	// SoftCap, if it is not 0, bounds the logits: SoftCap·tanh(logits/SoftCap).
	SoftCap float32
}

// CrossEntropy is the cross-entropy of logits with targets, with this project's forward
// pass and gradient.
//
// logits has shape (…,V) and is float32, float16 or bfloat16; targets has the shape (…)
// and is int32 or uint32. The result is float32: of shape () for Mean and Sum, else of
// targets' shape.
//
// With s the logits of a row, or c·tanh(logits/c) where there is a soft-cap c,
// lse = log Σ exp(s), t the target, ε the label smoothing and ζ the weight of the
// z-loss, the loss of a row is (1−ε)·(lse − s_t) + ε·(lse − mean(s)) + ζ·lse². With p
// the softmax of s and g the cotangent of the row's loss, the gradient is
// ds = g·((1+2ζ·lse)·p − (1−ε)·onehot(t) − ε/V), times 1−(s/c)² where there is a
// soft-cap (Szegedy et al., "Rethinking the Inception Architecture", 2016, section 7,
// for ε; Chowdhery et al., "PaLM", 2022, section 5, for ζ; Gemma Team, "Gemma 2", 2024,
// section 2, for c). targets have no gradient.
//
// A target that is negative or equals *IgnoreIndex is ignored: its row's loss and
// gradient are 0, whatever the logits are, and it does not count for Mean. Any other
// target must be below V. That is checked at once where the targets are computed
// already, not more than 65536 and, on an NVIDIA GPU, made by mlxc.FromSlice; else a row
// with a target out of range has a loss and a gradient of NaN.
//
// Where a gradient is being taken (see mlxc.Differentiating) and the reduction is Mean
// or Sum, one kernel makes the loss and the gradient: where nothing comes between the
// loss and the gradient's beginning, it is the gradient already. Elsewhere the gradient
// is computed from the logits and four numbers that the forward pass keeps of each row. So
// a mean that is scaled or weighted before its gradient is taken costs half as much
// again, and a second gradient's memory; take the losses with no reduction then,
// and their mean with MLX's operations.
func CrossEntropy(logits, targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array {
	const op = "ops.CrossEntropy"
	if err := checkCrossEntropy(logits, targets, cfg); err != nil {
		return mlxc.InvalidArray(opError(op, err, logits, targets))
	}
	if targets.Size() == 0 {
		return cfg.ofNoRows(targets)
	}
	if !kernelsAvailable(op) {
		return crossEntropyOfMLX(logits, targets, cfg)
	}
	var made []*mlxc.Array
	results := withGradient([]*mlxc.Array{logits, targets},
		func(args []*mlxc.Array) []*mlxc.Array {
			made = crossEntropyForward(currentTarget(), args[0], args[1], cfg, mlxc.Differentiating())
			return made
		},
		func(primals, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			dlogits := crossEntropyBackward(currentTarget(), primals[0], primals[1], cotangents[0], outputs, cfg)
			return append([]*mlxc.Array{dlogits}, zerosLike(primals[1])...)
		})
	// The graph has them; a handle would keep the gradient's memory for longer.
	freeAll(made)
	freeAll(results[1:])
	return results[0]
}

// checkCrossEntropy checks the arguments of CrossEntropy.
func checkCrossEntropy(logits, targets *mlxc.Array, cfg CrossEntropyConfig) error {
	if err := checkRows("logits", logits); err != nil {
		return err
	}
	if logits.Dim(-1) == 0 {
		return errors.New("logits has no classes: its last axis is empty")
	}
	return cfg.check(targets, "logits", logits, logits.Dim(-1))
}

// check checks the options, and targets among classes for what has a row for each.
func (cfg CrossEntropyConfig) check(targets *mlxc.Array, name string, rows *mlxc.Array, classes int) error {
	finite := func(v float32) bool { return v >= 0 && !math.IsInf(float64(v), 0) }
	switch {
	case cfg.Reduction < Mean || cfg.Reduction > None:
		return fmt.Errorf("the reduction is %v: it must be Mean, Sum or None", cfg.Reduction)
	case !(cfg.LabelSmoothing >= 0 && cfg.LabelSmoothing < 1):
		return fmt.Errorf("LabelSmoothing is %v: it must be at least 0 and below 1", cfg.LabelSmoothing)
	case !finite(cfg.ZLoss):
		return fmt.Errorf("ZLoss is %v: it must be finite and not negative", cfg.ZLoss)
	case !finite(cfg.SoftCap):
		return fmt.Errorf("SoftCap is %v: it must be finite and positive, or 0 for none", cfg.SoftCap)
	}
	if err := requireArray("targets", targets); err != nil {
		return err
	}
	if t := targets.DType(); t != mlxc.Int32 && t != mlxc.Uint32 {
		return fmt.Errorf("targets is %v: it must be int32 or uint32; convert with AsType", t)
	}
	shape := rows.Shape()
	if want := shape[:len(shape)-1]; !slices.Equal(targets.Shape(), want) {
		return fmt.Errorf("targets must have a target for each row of %s, the shape %v", name, want)
	}
	return cfg.checkTargets(targets, classes)
}

// checkTargets looks for a target out of range where that costs little.
func (cfg CrossEntropyConfig) checkTargets(targets *mlxc.Array, classes int) error {
	if !readableWithoutSync(targets) {
		return nil
	}
	if targets.DType() == mlxc.Int32 {
		return targetsBelow[int32](targets, classes, cfg.IgnoreIndex)
	}
	return targetsBelow[uint32](targets, classes, cfg.IgnoreIndex)
}

func targetsBelow[T int32 | uint32](targets *mlxc.Array, classes int, ignored *int) error {
	values, err := mlxc.ToSlice[T](targets)
	if err != nil {
		return err
	}
	for i, t := range values {
		if int(t) >= classes && (ignored == nil || int(t) != *ignored) {
			return fmt.Errorf("target %d of %d is %d, but there are %d classes, from 0: name it as IgnoreIndex, or make it negative, to ignore it",
				i+1, len(values), t, classes)
		}
	}
	return nil
}

// ofNoRows is the loss where there are no targets.
func (cfg CrossEntropyConfig) ofNoRows(targets *mlxc.Array) *mlxc.Array {
	if cfg.Reduction == None {
		return mlxc.Zeros(mlxc.Float32, targets.Shape()...)
	}
	return mlxc.Zeros(mlxc.Float32)
}

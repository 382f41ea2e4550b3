package ops

import (
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var crossEntropyKernels = newShaderFile("cross_entropy.metal")

// crossEntropyForward returns the loss and the rows' states; with gradient, where the
// reduction allows it, also the gradient for a cotangent of 1.
func crossEntropyForward(on target, logits, targets *mlxc.Array, cfg CrossEntropyConfig, gradient bool) []*mlxc.Array {
	classes := cfg.classes(targets, logits.Dim(-1))
	defer classes.Free()
	if cfg.Reduction == None {
		results := crossEntropyLosses(on, logits, classes, nil, allOf(logits), cfg)
		defer results[0].Free()
		return []*mlxc.Array{results[0].Reshape(targets.Shape()...), results[1]}
	}
	divisor := cfg.divisor(classes)
	defer divisor.Free()
	var cotangent *mlxc.Array
	if gradient {
		one := mlxc.Scalar[float32](1)
		defer one.Free()
		cotangent = one.Div(divisor)
		defer cotangent.Free()
	}
	results := crossEntropyLosses(on, logits, classes, cotangent, allOf(logits), cfg)
	losses := results[0]
	defer losses.Free()
	sum := losses.Sum()
	defer sum.Free()
	results[0] = sum.Div(divisor)
	return results
}

// crossEntropyBackward returns the gradient of logits, for the cotangent of the loss,
// from outputs of crossEntropyForward.
func crossEntropyBackward(on target, logits, targets, dloss *mlxc.Array, outputs []*mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array {
	if prepared(outputs) && isOne(dloss) {
		return outputs[2]
	}
	classes := cfg.classes(targets, logits.Dim(-1))
	defer classes.Free()
	var cotangents *mlxc.Array
	if cfg.Reduction == None {
		cotangents = dloss.Reshape(classes.Dim(0))
	} else {
		divisor := cfg.divisor(classes)
		defer divisor.Free()
		each := dloss.Div(divisor)
		defer each.Free()
		cotangents = each.BroadcastTo(classes.Dim(0))
	}
	defer cotangents.Free()
	return crossEntropyGradient(on, logits, classes, outputs[1], cotangents, allOf(logits), cfg)
}

// prepared reports whether the forward pass left what the gradient is made with, and it may be used: not
// where a gradient of the gradient is being taken, which would find nothing that the
// prepared one comes from. The kernels refuse it instead.
func prepared(outputs []*mlxc.Array) bool { return len(outputs) == 3 && !mlxc.Differentiating() }

// isOne reports whether a scalar is 1 without computing it.
func isOne(a *mlxc.Array) bool {
	if !a.IsReady() {
		return false
	}
	v, err := mlxc.Item[float32](a)
	return err == nil && v == 1
}

// classes are the targets as the kernels want them, in one axis: negative where they are
// ignored. What is out of range stays so.
func (cfg CrossEntropyConfig) classes(targets *mlxc.Array, classes int) *mlxc.Array {
	targets = targets.Reshape(targets.Size())
	ignored := cfg.IgnoreIndex
	switch {
	case ignored == nil || *ignored < 0:
		return targets
	case targets.DType() == mlxc.Int32 && *ignored <= math.MaxInt32:
		return ignoring(targets, targets, mlxc.Scalar(int32(*ignored)))
	case targets.DType() == mlxc.Uint32 && *ignored <= math.MaxUint32:
		defer targets.Free()
		// Not 2³¹ and more, which would become negative.
		limit := mlxc.Scalar(uint32(classes))
		defer limit.Free()
		bounded := targets.Minimum(limit)
		defer bounded.Free()
		return ignoring(bounded.AsType(mlxc.Int32), targets, mlxc.Scalar(uint32(*ignored)))
	}
	return targets
}

// ignoring makes classes negative where targets are ignored, and frees classes and
// ignored.
func ignoring(classes, targets, ignored *mlxc.Array) *mlxc.Array {
	defer classes.Free()
	defer ignored.Free()
	is := targets.Equal(ignored)
	defer is.Free()
	none := mlxc.Scalar[int32](-1)
	defer none.Free()
	return mlxc.Where(is, none, classes)
}

// divisor is what the sum of the losses is divided by, of shape ().
func (cfg CrossEntropyConfig) divisor(classes *mlxc.Array) *mlxc.Array {
	if cfg.Reduction != Mean {
		return mlxc.Scalar[float32](1)
	}
	zero, one := mlxc.Scalar[int32](0), mlxc.Scalar[float32](1)
	defer zero.Free()
	defer one.Free()
	counted := classes.GreaterEqual(zero)
	defer counted.Free()
	count := counted.Sum() // an integer: float32 would not count beyond 2²⁴
	defer count.Free()
	floating := count.AsType(mlxc.Float32)
	defer floating.Free()
	return floating.Maximum(one)
}

// classSlice says which classes the columns of logits are: those from first on, of so many in all.
type classSlice struct{ first, of int }

// allOf is the slice where each class has a column.
func allOf(logits *mlxc.Array) classSlice { return classSlice{of: logits.Dim(-1)} }

// stateSize is how many floats a kernel leaves of a row of logits, for others.
const stateSize = 4

// lossTemplate holds the template parameters of the cross-entropy kernels that process rows of logits.
type lossTemplate struct {
	logits, targets, held                       mlxc.DType
	vec, vecsPerThread, vecsPerStep, interleave int
	capped                                      bool
}

func lossTemplateFor(g rowGeometry, logits, targets *mlxc.Array, cfg CrossEntropyConfig) lossTemplate {
	return lossTemplate{
		logits: logits.DType(), targets: targets.DType(), held: g.heldAs,
		vec: g.chunk, vecsPerThread: g.packs, vecsPerStep: g.step, interleave: g.beside,
		capped: cfg.SoftCap > 0,
	}
}

func (t lossTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{
		{Name: "T", Value: t.logits},
		{Name: "INDEX_T", Value: t.targets},
		{Name: "HELD_T", Value: t.held},
		{Name: "VEC", Value: t.vec},
		{Name: "VECS_PER_THREAD", Value: t.vecsPerThread},
		{Name: "VECS_PER_STEP", Value: t.vecsPerStep},
		{Name: "INTERLEAVE", Value: t.interleave},
		{Name: "CAPPED", Value: t.capped},
	}
}

// mergeTemplate holds the template parameters of cross_entropy_merge.
type mergeTemplate struct{ targets mlxc.DType }

func (t mergeTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{{Name: "INDEX_T", Value: t.targets}}
}

// lossOutputs are the losses of rows and their states.
func lossOutputs(rows int) []mlxc.Output {
	return []mlxc.Output{{Shape: []int{rows}, DType: mlxc.Float32}, {Shape: []int{rows, stateSize}, DType: mlxc.Float32}}
}

// options are the kernels' last inputs.
func (cfg CrossEntropyConfig) options() []*mlxc.Array {
	return []*mlxc.Array{customkernels.Constant(cfg.LabelSmoothing), customkernels.Constant(cfg.ZLoss), customkernels.Constant(cfg.SoftCap)}
}

// crossEntropyLosses returns the losses of rows and their states. Of a slice of the classes only
// the states are worth something. With a cotangent, for which there must be all classes, there is
// also the gradient of logits, if all rows' losses have it.
func crossEntropyLosses(on target, logits, classes, cotangent *mlxc.Array, slice classSlice, cfg CrossEntropyConfig) []*mlxc.Array {
	rows, width := classes.Dim(0), logits.Dim(-1)
	table := logitTable[on.backend].forward
	if cotangent != nil {
		table = logitTable[on.backend].both
	}
	g := logitsOf(on.backend, table, logits.DType(), rows, width)
	launch := customkernels.Launch{
		Grid:             [3]int{g.groups * g.threads},
		Threadgroup:      [3]int{g.threads},
		MinGroupsPerCore: g.resident,
		Template:         lossTemplateFor(g, logits, classes, cfg).args(),
		Outputs:          lossOutputs(rows),
	}
	if cotangent == nil {
		args := slices.Concat([]*mlxc.Array{logits, classes}, uint32Args(rows, width, slice.first, slice.of), cfg.options())
		return on.launch(crossEntropyKernels.kernel("cross_entropy_forward"), launch, args...)
	}
	launch.Outputs = append(launch.Outputs, mlxc.Output{Shape: logits.Shape(), DType: logits.DType()})
	args := slices.Concat([]*mlxc.Array{logits, classes, cotangent}, uint32Args(rows, width), cfg.options())
	return on.launch(crossEntropyKernels.kernel("cross_entropy_fwd_bwd"), launch, args...)
}

// crossEntropyMerge returns the losses of rows and their states, from the states of each of
// the slices of so many classes, [slices, rows, stateSize].
func crossEntropyMerge(on target, states, classes *mlxc.Array, of int, cfg CrossEntropyConfig) []*mlxc.Array {
	rows := classes.Dim(0)
	grid, threads := elementGrid(on.backend, rows)
	args := slices.Concat([]*mlxc.Array{states, classes}, uint32Args(rows, states.Dim(0), of), cfg.options()[:2])
	return on.launch(crossEntropyKernels.kernel("cross_entropy_merge"), customkernels.Launch{
		Grid:        [3]int{grid},
		Threadgroup: [3]int{threads},
		Template:    mergeTemplate{classes.DType()}.args(),
		Outputs:     lossOutputs(rows),
	}, args...)
}

// crossEntropyGradient returns the gradient of logits, for the cotangents of the rows' losses and
// the states that the loss left of them.
func crossEntropyGradient(on target, logits, classes, states, cotangents *mlxc.Array, slice classSlice, cfg CrossEntropyConfig) *mlxc.Array {
	rows, width := classes.Dim(0), logits.Dim(-1)
	g := logitsOf(on.backend, logitTable[on.backend].backward, logits.DType(), rows, width)
	args := slices.Concat([]*mlxc.Array{logits, classes, states, cotangents}, uint32Args(rows, width, slice.first, slice.of), cfg.options())
	return on.launch(crossEntropyKernels.kernel("cross_entropy_backward"), customkernels.Launch{
		Grid:             [3]int{g.blocks * g.threads, g.groups},
		Threadgroup:      [3]int{g.threads, 1},
		MinGroupsPerCore: g.resident,
		Template:         lossTemplateFor(g, logits, classes, cfg).args(),
		Outputs:          []mlxc.Output{{Shape: logits.Shape(), DType: logits.DType()}},
	}, args...)[0]
}

package ops

import (
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var (
	crossEntropyKernels     = newShaderFile("cross_entropy.metal")
	crossEntropyIntoKernels = newShaderFile("cross_entropy_into.metal")
)

// crossEntropyForward returns the loss and the states of the rows (see stateSize). If gradient is set and the losses
// are reduced, the third result is the gradient of logits for a cotangent of 1, and the fourth the divisor of the
// losses.
func crossEntropyForward(
	on target, logits, targets *mlxc.Array, cfg CrossEntropyConfig, gradient bool,
) []*mlxc.Array {
	return scoped(func() []*mlxc.Array {
		classes := cfg.classes(targets, logits.Dim(-1))
		if cfg.Reduction == ReductionNone {
			results := crossEntropyLosses(on, logits, classes, nil, allClasses(logits), cfg)
			results[0] = results[0].Reshape(targets.Shape()...)
			return results
		}
		if gradient && cfg.isCounted(on, classes) {
			zero := customkernels.Constant[float32](0)
			results := crossEntropyLosses(on, logits, classes, zero, allClasses(logits), cfg)
			results[0] = reducedLoss(on, results[0], results[3])
			return results
		}
		divisor := cfg.divisor(classes)
		ofGradient := divisor
		if !gradient {
			ofGradient = nil
		}
		results := crossEntropyLosses(on, logits, classes, ofGradient, allClasses(logits), cfg)
		results[0] = reducedLoss(on, results[0], divisor)
		return results
	})
}

// crossEntropyBackward returns the gradient of logits for the cotangent dloss of the loss. outputs are the results of
// crossEntropyForward.
func crossEntropyBackward(
	on target, logits, targets, dloss *mlxc.Array, outputs []*mlxc.Array, cfg CrossEntropyConfig,
) *mlxc.Array {
	prepared := len(outputs) == 4
	if prepared && isOne(dloss) {
		return outputs[2]
	}
	return scoped(func() []*mlxc.Array {
		rows := targets.Size()
		cotangents := dloss
		switch {
		case prepared:
			cotangents = dloss.Div(outputs[3]).BroadcastTo(rows)
		case cfg.Reduction != ReductionNone:
			divisor := cfg.divisor(cfg.classes(targets, logits.Dim(-1)))
			cotangents = dloss.Div(divisor).BroadcastTo(rows)
		}
		cotangents = cotangents.Reshape(rows)
		return []*mlxc.Array{crossEntropyGradient(on, logits, outputs[1], cotangents, allClasses(logits), cfg)}
	})[0]
}

// isOne reports whether a scalar has been computed and is 1.
func isOne(a *mlxc.Array) bool {
	if !a.IsReady() {
		return false
	}
	v, err := mlxc.Item[float32](a)
	return err == nil && v == 1
}

// classes returns targets as an array of one axis for the kernels, with a negative number for each ignored target.
// Targets out of range remain out of range. The parameter classes is the number of classes.
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
		// Without the bound, targets of 2³¹ and more would become negative.
		limit := mlxc.Scalar(uint32(classes))
		defer limit.Free()
		bounded := targets.Minimum(limit)
		defer bounded.Free()
		return ignoring(bounded.AsType(mlxc.Int32), targets, mlxc.Scalar(uint32(*ignored)))
	}
	return targets
}

// ignoring returns classes with −1 where targets equals ignored. It frees classes and ignored.
func ignoring(classes, targets, ignored *mlxc.Array) *mlxc.Array {
	defer classes.Free()
	defer ignored.Free()
	isIgnored := targets.Equal(ignored)
	defer isIgnored.Free()
	none := mlxc.Scalar[int32](-1)
	defer none.Free()
	return mlxc.Where(isIgnored, none, classes)
}

// divisor returns the divisor of the sum of the losses, a float32 scalar: with ReductionMean, the number of classes that
// are not negative, and at least 1.
func (cfg CrossEntropyConfig) divisor(classes *mlxc.Array) *mlxc.Array {
	switch {
	case cfg.Reduction != ReductionMean:
		return customkernels.Constant[float32](1)
	case classes.DType() == mlxc.Uint32: // no class is negative
		return customkernels.Constant(float32(max(classes.Size(), 1)))
	}
	count := classes.GreaterEqual(mlxc.Scalar[int32](0)).Sum() // an integer, since float32 counts up to 2²⁴ only
	return count.AsType(mlxc.Float32).Maximum(mlxc.Scalar[float32](1))
}

// isCounted reports whether cross_entropy_fwd_bwd computes the divisor.
func (cfg CrossEntropyConfig) isCounted(on target, classes *mlxc.Array) bool {
	few := classes.Size() <= lossReductionTuning[on.backend].maxCounted
	return cfg.Reduction == ReductionMean && classes.DType() == mlxc.Int32 && few
}

// reducedLoss returns the sum of the losses of rows divided by divisor, a scalar.
func reducedLoss(on target, losses, divisor *mlxc.Array) *mlxc.Array {
	rows := losses.Size()
	launch := reductionLaunch(on, rows)
	return on.launch(crossEntropyKernels.kernel("cross_entropy_reduce"), launch, losses, uint32Arg(rows), divisor)[0]
}

// reductionLaunch returns the launch of a threadgroup that reduces the losses of rows to a scalar.
func reductionLaunch(on target, rows int) customkernels.Launch {
	t := lossReductionTuning[on.backend]
	threads := min(wholeSimdgroups(rows, t.vec), t.maxThreads)
	return customkernels.Launch{
		Grid:        [3]int{threads},
		Threadgroup: [3]int{threads},
		Template:    []mlxc.TemplateArg{{Name: "VEC", Value: t.vec}},
		Outputs:     []mlxc.Output{{DType: mlxc.Float32}},
	}
}

// reduced returns the sum of the losses divided by cfg.divisor(classes), and this divisor, by one kernel.
func (cfg CrossEntropyConfig) reduced(on target, losses, classes *mlxc.Array) (loss, divisor *mlxc.Array) {
	if cfg.Reduction != ReductionMean || classes.DType() == mlxc.Uint32 {
		divisor = cfg.divisor(classes)
		return reducedLoss(on, losses, divisor), divisor
	}
	rows := losses.Size()
	launch := reductionLaunch(on, rows)
	launch.Outputs = append(launch.Outputs, mlxc.Output{DType: mlxc.Float32})
	results := on.launch(crossEntropyIntoKernels.kernel("cross_entropy_mean"), launch, losses, classes, uint32Arg(rows))
	return results[0], results[1]
}

// A classSlice tells the class of each column of logits. Column i is class first + i, out of `total` classes.
type classSlice struct{ first, total int }

// allClasses returns the slice of logits that have a column for each class.
func allClasses(logits *mlxc.Array) classSlice { return classSlice{total: logits.Dim(-1)} }

// stateSize is the number of floats in the state of a row, STATE_SIZE in the shader: m = max s, l = Σ exp(s − m), Σ s
// and the score of the target, over the columns of a slice. The state of all classes has the target instead of its score.
const stateSize = 4

// lossTemplate holds the template parameters of the cross-entropy kernels that process rows of logits.
type lossTemplate struct {
	logits, held                                mlxc.DType
	vec, vecsPerThread, vecsPerStep, interleave int
	capped                                      bool
}

func newLossTemplate(g lossGeometry, logits *mlxc.Array, cfg CrossEntropyConfig) lossTemplate {
	return lossTemplate{
		logits: logits.DType(), held: g.registerDType,
		vec: g.vec, vecsPerThread: g.vecsPerThread, vecsPerStep: g.vecsPerStep, interleave: g.interleave,
		capped: cfg.SoftCap > 0,
	}
}

func (t lossTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{
		{Name: "T", Value: t.logits},
		{Name: "HELD_T", Value: t.held},
		{Name: "VEC", Value: t.vec},
		{Name: "VECS_PER_THREAD", Value: t.vecsPerThread},
		{Name: "VECS_PER_STEP", Value: t.vecsPerStep},
		{Name: "INTERLEAVE", Value: t.interleave},
		{Name: "CAPPED", Value: t.capped},
	}
}

// targetsArg returns the template argument of kernels that read targets.
func targetsArg(targets *mlxc.Array) mlxc.TemplateArg {
	return mlxc.TemplateArg{Name: "INDEX_T", Value: targets.DType()}
}

// lossOutputs returns the shapes and dtypes of the losses and states of rows.
func lossOutputs(rows int) []mlxc.Output {
	return []mlxc.Output{
		{Shape: []int{rows}, DType: mlxc.Float32},
		{Shape: []int{rows, stateSize}, DType: mlxc.Float32},
	}
}

// options returns label smoothing, z-loss weight and soft cap as arguments, which are the last inputs of the kernels.
func (cfg CrossEntropyConfig) options() []*mlxc.Array {
	return []*mlxc.Array{
		customkernels.Constant(cfg.LabelSmoothing),
		customkernels.Constant(cfg.ZLoss),
		customkernels.Constant(cfg.SoftCap),
	}
}

// crossEntropyLosses returns the losses [rows] and the states [rows, stateSize] of rows × width logits. Unless the
// slice has all classes, the losses are meaningless. If divisor is not nil, the third result is the gradient of logits
// for the cotangent 1/divisor of all losses, and the fourth the divisor. divisor is a scalar; it requires a slice of
// all classes. If it is 0, the number of rows that are not ignored takes its place.
func crossEntropyLosses(
	on target, logits, classes, divisor *mlxc.Array, slice classSlice, cfg CrossEntropyConfig,
) []*mlxc.Array {
	rows, width := classes.Dim(0), logits.Dim(-1)
	if divisor == nil {
		g := lossGeometryFor(on.backend, lossTuning[on.backend].forward, logits.DType(), rows, width, false)
		launch := lossLaunch(g, logits, classes, cfg)
		sizes := uint32Args(rows, width, slice.first, slice.total)
		args := slices.Concat([]*mlxc.Array{logits, classes}, sizes, cfg.options())
		return on.launch(crossEntropyKernels.kernel("cross_entropy_forward"), launch, args...)
	}
	launch := gradientLossLaunch(on, logits, classes, false, cfg)
	launch.Outputs = append(launch.Outputs,
		mlxc.Output{Shape: logits.Shape(), DType: logits.DType()}, mlxc.Output{DType: mlxc.Float32})
	args := slices.Concat([]*mlxc.Array{logits, classes, divisor}, uint32Args(rows, width), cfg.options())
	return on.launch(crossEntropyKernels.kernel("cross_entropy_fwd_bwd"), launch, args...)
}

// lossLaunch returns the launch of a kernel that computes losses and states. It processes whole rows.
func lossLaunch(g lossGeometry, logits, classes *mlxc.Array, cfg CrossEntropyConfig) customkernels.Launch {
	smoothed := mlxc.TemplateArg{Name: "SMOOTHED", Value: cfg.LabelSmoothing > 0}
	return customkernels.Launch{
		Grid:              [3]int{g.groups * g.threads},
		Threadgroup:       [3]int{g.threads},
		MinGroupsPerCore:  g.groupsPerCore,
		ThreadgroupMemory: g.memory,
		Template:          append(newLossTemplate(g, logits, cfg).args(), targetsArg(classes), smoothed),
		Outputs:           lossOutputs(classes.Dim(0)),
	}
}

// gradientLossLaunch returns the launch of a kernel that computes losses, states and the gradient. `split` says that
// logits are the first of two parts.
func gradientLossLaunch(
	on target, logits, classes *mlxc.Array, split bool, cfg CrossEntropyConfig,
) customkernels.Launch {
	tuning := lossTuning[on.backend].fwdBwd
	if !on.warpgroups {
		tuning.stagedBlocks = 0 // other GPUs have less threadgroup memory
	}
	g := lossGeometryFor(on.backend, tuning, logits.DType(), classes.Dim(0), logits.Dim(-1), split)
	launch := lossLaunch(g, logits, classes, cfg)
	launch.Template = append(launch.Template,
		mlxc.TemplateArg{Name: "THREADS", Value: g.threads},
		mlxc.TemplateArg{Name: "STAGED_BLOCKS", Value: g.stagedBlocks})
	return launch
}

// crossEntropyLossesInPlace returns the losses and states of rows of logits and replaces the logits by their gradient
// for a cotangent of 1. Nodes that read the gradient must run after the results. `parts` are the logits, or the logits
// of the first classes and of the others.
func crossEntropyLossesInPlace(
	on target, parts []*mlxc.Array, classes *mlxc.Array, cfg CrossEntropyConfig,
) []*mlxc.Array {
	first, rest, restWidth := parts[0], parts[0], 0
	if len(parts) > 1 {
		rest, restWidth = parts[1], parts[1].Dim(-1)
	}
	split := restWidth > 0
	launch := gradientLossLaunch(on, first, classes, split, cfg)
	launch.Template = append(launch.Template, mlxc.TemplateArg{Name: "SPLIT", Value: split})
	sizes := uint32Args(classes.Dim(0), first.Dim(-1), restWidth)
	args := slices.Concat([]*mlxc.Array{first, rest, classes}, sizes, cfg.options())
	return on.launch(crossEntropyIntoKernels.kernel("cross_entropy_fwd_bwd_into"), launch, args...)
}

// crossEntropyMerge returns the losses and states of rows from the states of all slices of the classes, of shape
// [slices, rows, stateSize]. total is the number of classes.
func crossEntropyMerge(on target, states, classes *mlxc.Array, total int, cfg CrossEntropyConfig) []*mlxc.Array {
	rows := classes.Dim(0)
	grid, threads := elementGrid(on.backend, rows)
	sizes := uint32Args(rows, states.Dim(0), total)
	args := slices.Concat([]*mlxc.Array{states, classes}, sizes, cfg.options()[:2])
	return on.launch(crossEntropyKernels.kernel("cross_entropy_merge"), customkernels.Launch{
		Grid:        [3]int{grid},
		Threadgroup: [3]int{threads},
		Template:    []mlxc.TemplateArg{targetsArg(classes)},
		Outputs:     lossOutputs(rows),
	}, args...)
}

// crossEntropyGradient returns the gradient of logits from the states [rows, stateSize] of all classes and the
// cotangents [rows] of the losses.
func crossEntropyGradient(
	on target, logits, states, cotangents *mlxc.Array, slice classSlice, cfg CrossEntropyConfig,
) *mlxc.Array {
	launch, args := gradientLaunch(on, logits, states, cotangents, slice, cfg)
	launch.Outputs = []mlxc.Output{{Shape: logits.Shape(), DType: logits.DType()}}
	return on.launch(crossEntropyKernels.kernel("cross_entropy_backward"), launch, args...)[0]
}

// crossEntropyGradientInto computes the gradient of logits in the memory of destination. Nodes that read it must run
// after the result.
func crossEntropyGradientInto(
	on target, destination, logits, states, cotangents *mlxc.Array, slice classSlice, cfg CrossEntropyConfig,
) *mlxc.Array {
	launch, args := gradientLaunch(on, logits, states, cotangents, slice, cfg)
	launch.Outputs = []mlxc.Output{{Shape: []int{1}, DType: mlxc.Uint32}}
	launch.Undefined = []string{"written"}
	args = append(args, destination)
	return on.launch(crossEntropyIntoKernels.kernel("cross_entropy_backward_into"), launch, args...)[0]
}

// gradientLaunch returns what both backward kernels share: the launch without outputs, and the first inputs.
func gradientLaunch(
	on target, logits, states, cotangents *mlxc.Array, slice classSlice, cfg CrossEntropyConfig,
) (customkernels.Launch, []*mlxc.Array) {
	rows, width := states.Dim(0), logits.Dim(-1)
	g := lossGeometryFor(on.backend, lossTuning[on.backend].backward, logits.DType(), rows, width, false)
	sizes := uint32Args(rows, width, slice.first, slice.total)
	launch := customkernels.Launch{
		Grid:             [3]int{g.blocks * g.threads, g.groups},
		Threadgroup:      [3]int{g.threads, 1},
		MinGroupsPerCore: g.groupsPerCore,
		Template:         newLossTemplate(g, logits, cfg).args(),
	}
	return launch, slices.Concat([]*mlxc.Array{logits, states, cotangents}, sizes, cfg.options())
}

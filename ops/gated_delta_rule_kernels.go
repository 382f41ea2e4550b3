package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var (
	gatedDeltaForwardFile  = newShaderFile("gated_delta_forward.metal")
	gatedDeltaBackwardFile = newShaderFile("gated_delta_backward.metal")
	gatedDeltaStepFile     = newShaderFile("gated_delta_step.metal")
)

// gatedDeltaInputs holds the arrays of a gated delta rule. initial and starts may be nil.
type gatedDeltaInputs struct {
	q, k, v, logDecay, beta *mlxc.Array
	initial, starts         *mlxc.Array
}

func (in gatedDeltaInputs) list() []*mlxc.Array {
	return []*mlxc.Array{in.q, in.k, in.v, in.logDecay, in.beta, in.initial, in.starts}
}

func gatedDeltaInputsFrom(list []*mlxc.Array) gatedDeltaInputs {
	return gatedDeltaInputs{list[0], list[1], list[2], list[3], list[4], list[5], list[6]}
}

// gatedDeltaArgs holds the inputs as arguments of the kernels, in float32, and the results of kernels that other kernels
// read. gated_delta.h explains the arrays.
type gatedDeltaArgs struct {
	gatedDeltaInputs
	on             target
	geometry       chunkGeometry
	packed         bool
	sequences      int // without packed sequences the batches
	slots          int
	sizes, scalars *mlxc.Array // struct ChunkSizes of the shaders; the scale

	steps, scores, inverse, keys, keyScores *mlxc.Array // of every chunk
	updates, states, final                  *mlxc.Array
}

// bind returns the inputs as arguments of the kernels. The caller's scope owns the arrays that it makes.
func (in gatedDeltaInputs) bind(on target, scale float32) *gatedDeltaArgs {
	a := &gatedDeltaArgs{
		gatedDeltaInputs: gatedDeltaInputs{
			q: in.q.AsType(mlxc.Float32), k: in.k.AsType(mlxc.Float32), v: in.v.AsType(mlxc.Float32),
			logDecay: in.logDecay.AsType(mlxc.Float32), beta: in.beta.AsType(mlxc.Float32),
		},
		on: on, geometry: chunkTuning[on.backend], packed: in.starts != nil, sequences: in.q.Dim(0),
	}
	packed := 0 // sequences
	if a.packed {
		packed = in.starts.Dim(0) - 1
		a.starts, a.sequences = in.starts, packed
	} else {
		a.starts = mlxc.Zeros(mlxc.Int32, 8) // a placeholder, see attentionInputs.bind
	}
	a.slots = a.geometry.slots(in.q.Dim(2), packed)
	if in.initial == nil {
		a.initial = mlxc.Zeros(mlxc.Float32, a.stateShape()...)
	} else {
		a.initial = in.initial.AsType(mlxc.Float32)
	}
	a.sizes = customkernels.Constants(int32(in.q.Dim(0)), int32(in.q.Dim(1)), int32(in.v.Dim(1)), int32(in.q.Dim(2)),
		int32(packed), int32(a.slots), 0, 0)
	a.scalars = customkernels.Constants(scale, 0, 0, 0, 0, 0, 0, 0)
	return a
}

func (a *gatedDeltaArgs) stateShape() []int {
	return []int{a.sequences, a.v.Dim(1), a.q.Dim(3), a.v.Dim(3)}
}

// perSlot returns an output with this shape for every slot of every value head.
func (a *gatedDeltaArgs) perSlot(shape ...int) mlxc.Output {
	return floats(append([]int{a.v.Dim(0), a.v.Dim(1), a.slots}, shape...)...)
}

// ofValueHeads returns an output with rows of this width for every step of every value head.
func (a *gatedDeltaArgs) ofValueHeads(width int) mlxc.Output {
	return floats(append(a.v.Shape()[:3:3], width)...)
}

// gatedDeltaTemplate holds the template arguments of the kernels for chunks.
type gatedDeltaTemplate struct {
	geometry          chunkGeometry
	headDim, valueDim int
}

// headArgs returns the arguments of the kernel that does not read v.
func (t gatedDeltaTemplate) headArgs() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{
		{Name: "LANES", Value: t.geometry.lanes},
		{Name: "SIMDGROUPS", Value: t.geometry.simdgroups},
		{Name: "CHUNK", Value: t.geometry.chunk},
		{Name: "HEAD_DIM", Value: t.headDim},
		{Name: "HEAD_BLOCK", Value: t.geometry.block(t.headDim)},
	}
}

func (t gatedDeltaTemplate) args() []mlxc.TemplateArg {
	return append(t.headArgs(),
		mlxc.TemplateArg{Name: "VALUE_DIM", Value: t.valueDim},
		mlxc.TemplateArg{Name: "VALUE_BLOCK", Value: t.geometry.block(t.valueDim)})
}

// launch describes a launch with `groups` threadgroups for each value head of each batch.
func (a *gatedDeltaArgs) launch(groups, batches int, outputs ...mlxc.Output) customkernels.Launch {
	return customkernels.Launch{
		Grid:        [3]int{groups * a.geometry.threads(), a.v.Dim(1), batches},
		Threadgroup: [3]int{a.geometry.threads(), 1, 1},

		// TF32 would make larger errors than float16.
		Products: customkernels.FMAProducts,
		Template: gatedDeltaTemplate{a.geometry, a.q.Dim(3), a.v.Dim(3)}.args(),
		Outputs:  outputs,
	}
}

// undefined returns the names of outputs for every slot. Packed sequences may leave slots empty.
func (a *gatedDeltaArgs) undefined(names ...string) []string {
	if !a.packed {
		return nil
	}
	return names
}

// blocks returns the number of blocks of columns of a state.
func (a *gatedDeltaArgs) blocks() int { return a.v.Dim(3) / a.geometry.block(a.v.Dim(3)) }

// walk describes a launch with a threadgroup for each sequence and block of columns.
func (a *gatedDeltaArgs) walk(outputs ...mlxc.Output) customkernels.Launch {
	return a.launch(a.sequences/a.v.Dim(0)*a.blocks(), a.v.Dim(0), outputs...)
}

// computeStates computes everything of the forward pass but the output.
func (a *gatedDeltaArgs) computeStates() {
	chunk, headDim, valueDim := a.geometry.chunk, a.q.Dim(3), a.v.Dim(3)
	l := a.launch(a.slots, a.v.Dim(0),
		a.perSlot(stepFields, chunk), a.perSlot(chunk, chunk), a.perSlot(chunk, chunk), a.perSlot(chunk, headDim),
		a.perSlot(chunk, chunk))
	l.Template = gatedDeltaTemplate{geometry: a.geometry, headDim: headDim}.headArgs()
	l.Undefined = a.undefined("steps", "scores", "inverse", "keys", "key_scores")
	of := a.on.launch(gatedDeltaForwardFile.kernel("gated_delta_chunks"), l,
		a.q, a.k, a.logDecay, a.beta, a.starts, a.sizes, a.scalars)
	a.steps, a.scores, a.inverse, a.keys, a.keyScores = of[0], of[1], of[2], of[3], of[4]
	l = a.walk(a.perSlot(chunk, valueDim), a.perSlot(headDim, valueDim), floats(a.stateShape()...))
	l.Undefined = a.undefined("updates", "states")
	of = a.on.launch(gatedDeltaForwardFile.kernel("gated_delta_states"), l,
		a.k, a.v, a.steps, a.inverse, a.keys, a.initial, a.starts, a.sizes)
	a.updates, a.states, a.final = of[0], of[1], of[2]
}

// stepFields is STEP_FIELDS of the shaders.
const stepFields = 7

// gatedDeltaForward returns out and the state after the last step of each sequence.
func gatedDeltaForward(on target, in gatedDeltaInputs, scale float32) []*mlxc.Array {
	return scoped(func() []*mlxc.Array {
		a := in.bind(on, scale)
		a.computeStates()
		l := a.launch(a.slots*a.blocks(), a.v.Dim(0), a.ofValueHeads(a.v.Dim(3)))
		out := on.launch(gatedDeltaForwardFile.kernel("gated_delta_output"), l,
			a.q, a.steps, a.scores, a.updates, a.states, a.starts, a.sizes)[0]
		return []*mlxc.Array{out.AsType(in.v.DType()), a.final}
	})
}

// gatedDeltaBackward returns the gradients of in.list(), with nil for an input that is nil. It computes the states again,
// because they take more memory than the inputs.
func gatedDeltaBackward(on target, in gatedDeltaInputs, dOut, dFinal *mlxc.Array, scale float32) []*mlxc.Array {
	grads := make([]*mlxc.Array, len(in.list()))
	mlxc.WithScope(func() {
		a := in.bind(on, scale)
		a.computeStates()
		dOut := dOut.AsType(mlxc.Float32)
		chunk, headDim, valueDim := a.geometry.chunk, a.q.Dim(3), a.v.Dim(3)
		l := a.walk(a.perSlot(chunk, valueDim), a.perSlot(headDim, valueDim), floats(a.stateShape()...))
		l.Undefined = a.undefined("d_updates", "d_states")
		of := on.launch(gatedDeltaBackwardFile.kernel("gated_delta_state_gradients"), l,
			a.q, a.k, a.steps, a.scores, a.keys, dOut, dFinal.AsType(mlxc.Float32), a.starts, a.sizes)
		dUpdates, dStates, dInitial := of[0], of[1], of[2]
		rows := floats(a.v.Shape()[:3]...)
		l = a.launch(a.slots, a.v.Dim(0),
			a.ofValueHeads(headDim), a.ofValueHeads(headDim), a.ofValueHeads(valueDim), rows, rows,
			a.perSlot(chunk, valueDim), a.perSlot(2, chunk, chunk))
		l.Products = customkernels.FullSplitProducts // twice as fast as fma here
		l.Undefined = a.undefined("d_r", "d_scores")
		copy(grads, on.launch(gatedDeltaBackwardFile.kernel("gated_delta_gradients"), l,
			a.q, a.k, a.v, a.logDecay, a.steps, a.inverse, a.updates, dUpdates, a.states, dStates, dOut,
			a.starts, a.sizes, a.scalars, a.scores, a.keyScores)[:5])
		for i := range 2 {
			grads[i] = sumOfGroups(grads[i], in.q.Dim(1))
		}
		if in.initial != nil {
			grads[5] = dInitial
		}
		for i, x := range in.list()[:6] {
			if x != nil {
				grads[i] = grads[i].AsType(x.DType()).Keep()
			}
		}
	})
	grads[6] = zerosLike(in.starts)[0]
	return grads
}

// sumOfGroups adds the gradients of neighboring heads that share one of `heads` heads.
func sumOfGroups(x *mlxc.Array, heads int) *mlxc.Array {
	shape := x.Shape()
	if x.Err() != nil || shape[1] == heads {
		return x
	}
	return x.Reshape(shape[0], heads, shape[1]/heads, shape[2], shape[3]).Sum(2)
}

// gatedDeltaStepColumns is the number of columns of a state that a thread of gated_delta_step computes, by backend. On a
// CPU they are a vector. Neighboring threads of a GPU read neighboring columns.
var gatedDeltaStepColumns = map[mlxc.Backend]int{mlxc.BackendCPU: 16, mlxc.BackendMetal: 1, mlxc.BackendCUDA: 1}

// gatedDeltaStepTemplate holds the template arguments of gated_delta_step.
type gatedDeltaStepTemplate struct {
	dtype                      mlxc.DType
	columns, headDim, valueDim int
}

func (t gatedDeltaStepTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{
		{Name: "T", Value: t.dtype},
		{Name: "COLUMNS", Value: t.columns},
		{Name: "HEAD_DIM", Value: t.headDim},
		{Name: "VALUE_DIM", Value: t.valueDim},
	}
}

// gatedDeltaStep returns out and the next state.
func gatedDeltaStep(on target, q, k, v, logDecay, beta, state *mlxc.Array, scale float32) []*mlxc.Array {
	return scoped(func() []*mlxc.Array {
		columns := gatedDeltaStepColumns[on.backend]
		threads := v.Dim(2) / columns
		group := min(threads, 32)
		return on.launch(gatedDeltaStepFile.kernel("gated_delta_step"), customkernels.Launch{
			Grid:        [3]int{ceilDiv(threads, group) * group, v.Dim(1), v.Dim(0)},
			Threadgroup: [3]int{group, 1, 1},
			Template: gatedDeltaStepTemplate{
				dtype: v.DType(), columns: columns, headDim: q.Dim(2), valueDim: v.Dim(2),
			}.args(),
			Outputs: []mlxc.Output{outputLike(v), floats(state.Shape()...)},
		}, q, k, v, logDecay.AsType(mlxc.Float32), beta.AsType(mlxc.Float32), state.AsType(mlxc.Float32),
			uint32Arg(q.Dim(1)), customkernels.Constant(scale))
	})
}

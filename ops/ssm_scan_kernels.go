package ops

import (
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var (
	ssmDecayFile    = newShaderFile("ssm_decay.metal")
	ssmStatesFile   = newShaderFile("ssm_states.metal")
	ssmOutputFile   = newShaderFile("ssm_output.metal")
	ssmBackwardFile = newShaderFile("ssm_backward.metal")
)

// ssmInputs holds the arrays of an SSMScan. dt, a, d and state are float32. d, state and starts may be nil.
type ssmInputs struct {
	x, dt, a, b, c   *mlxc.Array
	d, state, starts *mlxc.Array
}

func (in ssmInputs) list() []*mlxc.Array {
	return []*mlxc.Array{in.x, in.dt, in.a, in.b, in.c, in.d, in.state, in.starts}
}

func ssmInputsFrom(list []*mlxc.Array) ssmInputs {
	return ssmInputs{list[0], list[1], list[2], list[3], list[4], list[5], list[6], list[7]}
}

// sequences returns the number of sequences, each of which has a state.
func (in ssmInputs) sequences() int {
	if in.starts == nil {
		return in.x.Dim(0)
	}
	return in.starts.Dim(0) - 1
}

// stateShape returns the shape of n states.
func (in ssmInputs) stateShape(n int) []int { return []int{n, in.x.Dim(2), in.x.Dim(3), in.b.Dim(3)} }

// ssmTemplate holds the template arguments of the kernels. ssm.h explains them.
type ssmTemplate struct {
	ssmGeometry
	dtype                            mlxc.DType
	heads, groups, headDim, stateDim int
}

func (t ssmTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{
		{Name: "T", Value: t.dtype},
		{Name: "LANES", Value: t.lanes},
		{Name: "SIMDGROUPS", Value: t.simdgroups},
		{Name: "BLOCK_M", Value: t.blockM},
		{Name: "BLOCK_N", Value: t.blockN},
		{Name: "CHUNK", Value: t.chunk},
		{Name: "HEADS", Value: t.heads},
		{Name: "GROUPS", Value: t.groups},
		{Name: "HEAD_DIM", Value: t.headDim},
		{Name: "STATE_DIM", Value: t.stateDim},
	}
}

// decayArgs returns the template arguments of ssm_step_decays, and with ofGradient of ssm_decay_backward.
func (t ssmTemplate) decayArgs(ofGradient bool) []mlxc.TemplateArg {
	args := []mlxc.TemplateArg{{Name: "CHUNK", Value: t.chunk}, {Name: "HEADS", Value: t.heads}}
	if ofGradient {
		args = append(args, mlxc.TemplateArg{Name: "BLOCK_M", Value: t.blockM}, mlxc.TemplateArg{Name: "STATE_DIM", Value: t.stateDim})
	}
	return args
}

// ssmLaunches launches the kernels of one SSMScan.
type ssmLaunches struct {
	ssmInputs
	ssmTemplate
	on    target
	rows  int         // steps of all batches
	slots int         // of all batches
	sizes *mlxc.Array // struct ChunkSizes of the shaders
}

// bind replaces inputs that are nil by zeros. The caller's scope owns the arrays that bind makes.
func (in ssmInputs) bind(on target) ssmLaunches {
	batches, length, heads, headDim := in.x.Dim(0), in.x.Dim(1), in.x.Dim(2), in.x.Dim(3)
	l := ssmLaunches{ssmInputs: in, on: on, rows: batches * length}
	l.ssmTemplate = ssmTemplate{
		ssmGeometry: ssmGeometryFor(on, in.x.DType(), headDim, in.b.Dim(3)),
		dtype:       in.x.DType(), heads: heads, groups: in.b.Dim(2), headDim: headDim, stateDim: in.b.Dim(3),
	}
	packed := 0
	if in.starts != nil {
		packed = in.sequences()
	} else {
		l.starts = mlxc.Zeros(mlxc.Int32, 8)
	}
	perBatch := l.ssmGeometry.slots(length, packed)
	l.slots = batches * perBatch
	// MLX passes arrays of fewer than eight elements in the constant address space.
	l.sizes = customkernels.Constants(
		int32(batches), int32(l.groups), int32(heads), int32(length), int32(packed), int32(perBatch), 0, 0)
	if in.d == nil {
		l.d = mlxc.Zeros(mlxc.Float32, heads)
	}
	if in.state == nil {
		l.state = mlxc.Zeros(mlxc.Float32, in.stateShape(in.sequences())...)
	}
	return l
}

// ssmUndefined names outputs, by kernel, that stay undefined for slots without steps and for steps after a block.
var ssmUndefined = map[string][]string{"ssm_decay_terms": {"decay_parts"}, "ssm_state_gradients": {"dots"}}

// launch runs a kernel of matrix products on groups[0]×groups[1]×groups[2] threadgroups.
func (l ssmLaunches) launch(
	file *shaderFile, kernel string, groups [3]int, outputs []mlxc.Output, inputs ...*mlxc.Array,
) []*mlxc.Array {
	groups[0] *= l.threads()
	// The states carry the errors of TF32 from chunk to chunk. Other operands of 16 bits lose as much.
	products := customkernels.DefaultProducts
	if l.dtype == mlxc.Float32 {
		products = customkernels.SplitProducts
	}
	return l.on.launch(file.kernel(kernel), customkernels.Launch{
		Undefined:         ssmUndefined[kernel],
		Grid:              groups,
		Threadgroup:       [3]int{l.threads(), 1, 1},
		ThreadgroupMemory: l.memory,
		Products:          products,
		Template:          l.args(),
		Outputs:           outputs,
	}, append(inputs, l.starts, l.sizes)...)
}

// launchDecays runs a kernel with a thread for each slot and head.
func (l ssmLaunches) launchDecays(
	kernel string, template []mlxc.TemplateArg, outputs []mlxc.Output, inputs ...*mlxc.Array,
) []*mlxc.Array {
	threads := ssmTuning[l.on.backend].decayThreads
	return l.on.launch(ssmDecayFile.kernel(kernel), customkernels.Launch{
		Grid:        [3]int{ceilDiv(l.slots*l.heads, threads) * threads},
		Threadgroup: [3]int{threads},
		Template:    template,
		Outputs:     outputs,
	}, append(inputs, l.starts, l.sizes)...)
}

// transposedStates returns the output of n transposed states.
func (l ssmLaunches) transposedStates(n int) mlxc.Output {
	return floats(n, l.heads, l.stateDim, l.headDim)
}

// stateGroups returns the threadgroups of the kernels that iterate over chunks.
func (l ssmLaunches) stateGroups() [3]int {
	return [3]int{ceilDiv(l.stateDim, l.blockM*l.simdgroups), l.heads, l.sequences()}
}

// sequences returns the number of sequences. l.starts may be a placeholder.
func (l ssmLaunches) sequences() int { return l.state.Dim(0) }

func transposed(states *mlxc.Array) *mlxc.Array { return states.SwapAxes(-1, -2) }

// ssmForward returns y, the final states, the transposed states at the starts of the chunks, and the decays.
func ssmForward(on target, in ssmInputs) []*mlxc.Array {
	return scoped(func() []*mlxc.Array {
		l := in.bind(on)
		decays := l.launchDecays(
			"ssm_step_decays", l.decayArgs(false), []mlxc.Output{floats(l.heads, l.rows, stepDecaySize)}, l.dt, l.a)[0]
		states := l.launch(ssmStatesFile, "ssm_states", l.stateGroups(),
			[]mlxc.Output{l.transposedStates(l.slots), l.transposedStates(l.sequences())},
			l.x, l.b, transposed(l.state), decays)
		y := l.launch(ssmOutputFile, "ssm_output", [3]int{l.slots * l.blocks(), l.heads, 1},
			[]mlxc.Output{outputLike(l.x)}, l.x, l.b, l.c, l.d, states[0], decays)[0]
		return []*mlxc.Array{y, transposed(states[1]), states[0], decays}
	})
}

// The kernels' struct StepDecay has stepDecaySize floats, and their terms of a step have stepTermsSize.
const (
	stepDecaySize = 4
	stepTermsSize = 4
)

// ssmBackward returns the gradients of in.list(), with nil for an input that is nil and zeros for starts. outputs are
// the results of ssmForward.
func ssmBackward(on target, in ssmInputs, outputs []*mlxc.Array, dy, dFinal *mlxc.Array) []*mlxc.Array {
	grads := make([]*mlxc.Array, len(in.list()))
	mlxc.WithScope(func() {
		l := in.bind(on)
		states, decays := outputs[2], outputs[3]
		dy, dFinal := dy.AsType(l.dtype), dFinal.AsType(mlxc.Float32)
		ofStates := l.launch(ssmStatesFile, "ssm_state_gradients", l.stateGroups(), []mlxc.Output{
			l.transposedStates(l.slots), l.transposedStates(l.sequences()), floats(l.slots, l.heads, l.stateDim),
		}, dy, l.c, states, transposed(dFinal), decays)
		dStates, dInitial, dots := ofStates[0], ofStates[1], ofStates[2]
		groups := [3]int{l.slots * l.blocks(), l.heads, 1}
		ofX := l.launch(ssmBackwardFile, "ssm_dx", groups,
			[]mlxc.Output{outputLike(l.x), floats(l.heads, l.rows, stepTermsSize)},
			l.x, l.b, l.c, l.d, dy, dStates, decays)

		ofPairs := l.launch(ssmBackwardFile, "ssm_decay_terms", groups,
			[]mlxc.Output{floats(l.chunk/l.blockM, l.heads, l.rows)}, l.x, l.b, l.c, dy, decays)[0]
		parts := ssmParts(on, l.heads/l.groups, l.slots*l.blocks()*l.groups)
		groups[1] = l.groups * parts
		ofParts := floats(append([]int{parts}, l.b.Shape()...)...)
		dB := l.launch(ssmBackwardFile, "ssm_db", groups, []mlxc.Output{ofParts},
			l.x, l.c, dy, transposed(dStates), decays)[0]
		ofC := l.launch(ssmBackwardFile, "ssm_dc", groups, []mlxc.Output{ofParts, floats(l.heads, l.rows)},
			l.x, l.b, l.c, dy, transposed(states), decays)
		ofDecays := l.launchDecays("ssm_decay_backward", l.decayArgs(true), []mlxc.Output{
			floats(l.dt.Shape()...), floats(l.slots, l.heads), floats(l.slots, l.heads),
		}, l.a, decays, ofX[1], ofC[1], ofPairs, dots)

		copy(grads, []*mlxc.Array{ofX[0], ofDecays[0], ofDecays[1].Sum(0), l.sumParts(dB), l.sumParts(ofC[0])})
		if in.d != nil {
			grads[5] = ofDecays[2].Sum(0)
		}
		if in.state != nil {
			grads[6] = transposed(dInitial)
		}
		if in.starts != nil {
			grads[7] = zerosLike(in.starts)[0]
		}
		for _, g := range grads {
			if g != nil {
				g.Keep()
			}
		}
	})
	return grads
}

// sumParts returns the sum of the parts of a gradient of b or c.
func (l ssmLaunches) sumParts(parts *mlxc.Array) *mlxc.Array {
	if parts.Err() != nil {
		return parts
	}
	n := parts.Dim(0)
	if n > 1 || l.dtype != mlxc.Float32 {
		parts = columnSum(l.on, parts.Reshape(n, parts.Size()/n), l.dtype)[0]
	}
	return parts.Reshape(l.b.Shape()...)
}

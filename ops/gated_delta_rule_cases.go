package ops

import (
	"fmt"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A gatedDeltaLaunch holds the sizes of a case in which the kernels are checked.
type gatedDeltaLaunch struct {
	name    string
	shape   [6]int  // batch, keyHeads, valueHeads, length, head_dim, valueDim
	starts  []int32 // of packed sequences; nil for none
	forgets bool    // some decays are 0
}

// gatedDeltaShapes returns the cases in which the kernels are checked.
//
// The ragged cases have:
//   - one step, a full chunk, and a short last chunk
//   - value heads that share a key head
//   - widths that consist of one block of columns, and of several
//   - packed sequences: empty ones, and ones that end within a chunk, at its end and after it
//   - decays of 0
//
// Widths are template parameters, so most cases share theirs.
func gatedDeltaShapes(set CaseSet) []gatedDeltaLaunch {
	switch set {
	case WarpgroupCases:
		return nil
	case TypicalCases:
		return []gatedDeltaLaunch{{name: "long", shape: [6]int{1, 1, 2, 256, 64, 64}}}
	}
	return []gatedDeltaLaunch{
		{name: "one step", shape: [6]int{1, 1, 1, 1, 16, 48}},
		{name: "one chunk", shape: [6]int{2, 1, 1, 64, 16, 48}},
		{name: "grouped, ragged", shape: [6]int{1, 2, 4, 75, 16, 48}, forgets: true},
		{name: "wide", shape: [6]int{1, 1, 2, 35, 80, 16}},
		{name: "packed", shape: [6]int{1, 1, 2, 102, 16, 48}, starts: []int32{0, 5, 5, 69, 102, 102}},
	}
}

func gatedDeltaCases(set CaseSet) []launchCase {
	var cases []launchCase
	for _, c := range gatedDeltaShapes(set) {
		cases = append(cases, launchCase{name: fmt.Sprintf("%s, %v", c.name, c.shape), run: c.run})
	}
	return cases
}

func (c gatedDeltaLaunch) run(on target, dtype mlxc.DType) {
	in := c.inputs(dtype)
	scale := float32(1 / math.Sqrt(float64(c.shape[4])))
	results := gatedDeltaForward(on, in, scale)
	dOut, dFinal := normalOf(6, dtype, results[0].Shape()...), normalOf(7, mlxc.Float32, results[1].Shape()...)
	gatedDeltaBackward(on, in, dOut, dFinal, scale)
	first := func(x *mlxc.Array) *mlxc.Array { // the first step of every head
		from, to := make([]int, x.NDim()), x.Shape()
		to[2] = 1
		return x.Slice(from, to, nil).Squeeze(2)
	}
	state := in.initial.Slice([]int{0, 0, 0, 0}, append([]int{c.shape[0]}, in.initial.Shape()[1:]...), nil)
	gatedDeltaStep(on, first(in.q), first(in.k), first(in.v), first(in.logDecay), first(in.beta), state, scale)
}

// inputs returns random inputs, the same in every call. Keys have the length 1 on average, and β is between 0 and 1.
func (c gatedDeltaLaunch) inputs(dtype mlxc.DType) gatedDeltaInputs {
	batches, keyHeads, heads, length, width, valueWidth := c.shape[0], c.shape[1], c.shape[2], c.shape[3], c.shape[4], c.shape[5]
	states := batches
	if c.starts != nil {
		states = len(c.starts) - 1
	}
	in := gatedDeltaInputs{
		q:        normalOf(1, dtype, batches, keyHeads, length, width),
		k:        normalOf(2, dtype, batches, keyHeads, length, width).MulScalar(1 / math.Sqrt(float64(width))),
		v:        normalOf(3, dtype, batches, heads, length, valueWidth),
		logDecay: normalOf(4, dtype, batches, heads, length).Square().Neg(),
		beta:     normalOf(5, dtype, batches, heads, length).Sigmoid(),
		initial:  normalOf(8, mlxc.Float32, states, heads, width, valueWidth),
	}
	if c.forgets {
		in.logDecay = mlxc.Where(in.logDecay.Less(mlxc.Scalar[float32](-2)),
			mlxc.Scalar(float32(math.Inf(-1))), in.logDecay).AsType(dtype)
	}
	if c.starts != nil {
		in.starts = mlxc.FromSlice(c.starts, len(c.starts))
	}
	return in
}

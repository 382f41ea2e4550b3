package ops

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// An ssmLaunch holds the sizes and options of a case in which the kernels are checked.
type ssmLaunch struct {
	name   string
	shape  [6]int // batch, length, heads, groups, P, N
	d      bool
	state  bool
	strong bool // some decays are 0
	starts []int32
}

// ssmShapes returns the cases in which the kernels are checked. The ragged cases have one step, lengths that do not
// fill their last block, panel or chunk, several chunks, heads that share a group, states that do not fill a block, and
// packed sequences, some of them empty. Widths and numbers of heads are template parameters, so most cases share theirs.
func ssmShapes(set CaseSet) []ssmLaunch {
	switch set {
	case WarpgroupCases:
		return []ssmLaunch{{name: "widest", shape: [6]int{1, 19, 2, 1, 256, 256}}} // panels exceed 48 KiB of shared memory
	case TypicalCases:
		return []ssmLaunch{{name: "typical", shape: [6]int{1, 256, 4, 1, 64, 128}, d: true, state: true}}
	}
	return []ssmLaunch{
		{name: "one step", shape: [6]int{2, 1, 4, 2, 24, 8}},
		{name: "several chunks", shape: [6]int{1, 135, 2, 1, 8, 24}, d: true, state: true},
		{name: "groups", shape: [6]int{1, 37, 4, 2, 24, 8}, state: true},
		{name: "strong decay", shape: [6]int{1, 40, 2, 1, 8, 24}, strong: true, d: true, state: true},
		{name: "packed", shape: [6]int{1, 73, 2, 1, 8, 24}, d: true, state: true, starts: []int32{0, 5, 5, 72, 73, 73}},
		{name: "wide", shape: [6]int{1, 19, 1, 1, 16, 128}},
	}
}

func ssmScanCases(set CaseSet) []launchCase {
	var cases []launchCase
	for _, c := range ssmShapes(set) {
		cases = append(cases, launchCase{name: fmt.Sprintf("%s, %v", c.name, c.shape), run: c.run})
	}
	return cases
}

func (c ssmLaunch) run(on target, dtype mlxc.DType) {
	in := c.inputs(dtype)
	outputs := ssmForward(on, in)
	ssmBackward(on, in, outputs, normalOf(8, dtype, in.x.Shape()...), normalOf(9, mlxc.Float32, outputs[1].Shape()...))
}

// inputs returns random inputs, the same in every call.
func (c ssmLaunch) inputs(dtype mlxc.DType) ssmInputs {
	batches, length, heads, groups, headDim, stateDim := c.shape[0], c.shape[1], c.shape[2], c.shape[3], c.shape[4], c.shape[5]
	uniform := func(seed uint64, low, high float32, shape ...int) *mlxc.Array {
		return mlxc.RandomUniform(mlxc.RandomKey(seed), low, high, mlxc.Float32, shape...)
	}
	in := ssmInputs{
		x:  normalOf(1, dtype, batches, length, heads, headDim),
		dt: uniform(2, 0.01, 0.5, batches, length, heads),
		a:  uniform(3, -2, -0.1, heads),
		b:  normalOf(4, dtype, batches, length, groups, stateDim),
		c:  normalOf(5, dtype, batches, length, groups, stateDim),
	}
	if c.strong {
		isStrong := normalOf(10, mlxc.Float32, in.dt.Shape()...).Greater(mlxc.Scalar[float32](0.5))
		in.dt = mlxc.Where(isStrong, mlxc.Scalar[float32](200), in.dt)
	}
	if c.d {
		in.d = normalOf(6, mlxc.Float32, heads)
	}
	if c.starts != nil {
		in.starts = mlxc.FromSlice(c.starts, len(c.starts))
	}
	if c.state {
		in.state = normalOf(7, mlxc.Float32, in.stateShape(in.sequences())...)
	}
	return in
}

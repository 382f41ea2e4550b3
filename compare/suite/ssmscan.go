package suite

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

func ssmScan() compare.Op {
	op := compare.Op{Name: "ssm-scan"}
	for _, c := range ssmCases() {
		op.Cases = append(op.Cases, c.build())
	}
	return op
}

// ssmCase is a configuration of the scan. The zero value of groups is 1.
type ssmCase struct {
	batch, length, heads, groups int
	p, n                         int
	d, state                     bool  // has D, has an initial state
	starts                       []int // of sequences; the last one is the length

	layouts             layouts
	values              compare.Values // of x
	dtValues, logValues compare.Values // of dt and A
	label               string         // the name of values
}

// ssmCases covers lengths below, at and above the sizes of a tile and a chunk on every device, numbers of heads, widths
// of the state, then single properties. Numbers of heads and widths are template parameters of the kernels, so most
// cases share them.
func ssmCases() []ssmCase {
	var cases []ssmCase
	add := func(c ssmCase) { cases = append(cases, c) }
	for _, length := range []int{1, 2, 7, 31, 33, 63, 64, 65, 127, 128, 129, 257, 300} {
		add(ssmCase{batch: 1 + 200/(length+20), length: length, heads: 4, groups: 2, p: 8, n: 16, d: true, state: true})
	}
	for _, heads := range [][2]int{{3, 1}, {8, 1}, {4, 4}} {
		add(ssmCase{batch: 2, length: 37, heads: heads[0], groups: heads[1], p: 16, n: 8, d: true, state: true})
	}
	for _, dims := range [][2]int{{8, 8}, {16, 24}, {40, 72}, {64, 64}, {64, 128}, {256, 8}, {8, 256}} {
		add(ssmCase{batch: 1, length: 70, heads: 2, p: dims[0], n: dims[1], d: true, state: true})
	}
	for bits := range 4 {
		add(ssmCase{batch: 2, length: 67, heads: 4, groups: 2, p: 8, n: 16, d: bits&1 != 0, state: bits&2 != 0})
	}
	for _, starts := range [][]int{{0, 70}, {0, 33, 70}, {0, 1, 3, 10, 41, 70}, {0, 64, 64, 190, 200}, {0, 0, 65, 129, 129}} {
		c := ssmCase{batch: 1, heads: 4, groups: 2, p: 8, n: 16, starts: starts}
		add(c)
		c.d, c.state = true, true
		add(c)
	}
	for _, layout := range append(everyLayout(), compare.Interleaved) {
		for _, operand := range []string{"x", "dt", "B", "h0", "dy"} {
			c := ssmCase{batch: 2, length: 33, heads: 4, groups: 2, p: 8, n: 16, state: true}
			c.layouts = layouts{operand: layout}
			if operand == "B" {
				c.layouts["C"] = layout
			}
			add(c)
		}
	}
	return append(cases, ssmValues()...)
}

func ssmValues() []ssmCase {
	cases := []ssmCase{
		{dtValues: compare.Zeros, label: "dt 0"},
		{logValues: compare.Zeros, label: "no decay"},
		{dtValues: compare.Uniform(1e-4, 1e-3), label: "slow"},
		{dtValues: compare.Uniform(2, 8), label: "fast"},
		// exp(dt·A) is 0, or subnormal, at about every fourth step.
		{
			dtValues:  sometimes(compare.Uniform(0.01, 0.2), []float64{30}),
			logValues: compare.Uniform(-8, -3), label: "forgets",
		},
		{dtValues: compare.Uniform(0.001, 0.1), logValues: compare.Uniform(0.1, 0.5), label: "grows"},
		{values: compare.Spike, label: "spike"},
		{values: compare.Normal(1e-3), label: "tiny"},
	}
	for i := range cases {
		c := &cases[i]
		c.batch, c.length, c.heads, c.groups, c.p, c.n, c.d, c.state = 1, 140, 4, 2, 8, 16, true, true
	}
	return append(cases,
		ssmCase{batch: 0, length: 3, heads: 2, p: 8, n: 8, state: true},
		ssmCase{batch: 2, length: 0, heads: 2, p: 8, n: 8, state: true})
}

func (c ssmCase) withDefaults() ssmCase {
	c.groups = max(c.groups, 1)
	if c.starts != nil {
		c.length = c.starts[len(c.starts)-1]
	}
	if c.dtValues == nil {
		c.dtValues = compare.Uniform(0.01, 0.5)
	}
	if c.logValues == nil {
		c.logValues = compare.Uniform(-2, -0.1)
	}
	return c
}

func (c ssmCase) name() string {
	packed := ""
	if c.starts != nil {
		packed = fmt.Sprintf("%d seqs", len(c.starts)-1)
	}
	return caseName(
		fmt.Sprintf("%dx%dx%sx%dx%d", c.batch, c.length, pair("/", c.heads, c.groups), c.p, c.n),
		noteIf(c.d, "D"), noteIf(c.state, "h0"), packed, c.layouts.String(), c.label)
}

func (c ssmCase) stateShape() []int {
	states := c.batch
	if c.starts != nil {
		states = len(c.starts) - 1
	}
	return []int{states, c.heads, c.p, c.n}
}

func (c ssmCase) build() compare.Case {
	c = c.withDefaults()
	out := compare.Case{
		Name:   c.name(),
		Inputs: c.inputs(),
		Outputs: []compare.Output{
			{Name: "y", Shape: []int{c.batch, c.length, c.heads, c.p}, Layout: c.layouts["dy"]},
			{Name: "h", Shape: c.stateShape(), DType: mlxc.Float32},
		},
		Reference: compare.Reference{
			Forward: func(in []oracle.Tensor) []oracle.Tensor {
				y, final := c.exact(in).Forward()
				return []oracle.Tensor{y, final}
			},
			Gradient: c.exactGradient,
		},
		Ours: func(in []*mlxc.Array) []*mlxc.Array {
			y, final := ops.SSMScan(in[0], in[1], in[2], in[3], in[4], c.config(in))
			return []*mlxc.Array{y, final}
		},
		MLX: c.composed,
	}
	return out
}

func (c ssmCase) inputs() []compare.Input {
	steps := func(inner ...int) []int { return append([]int{c.batch, c.length}, inner...) }
	in := []compare.Input{
		{Name: "x", Shape: steps(c.heads, c.p), Values: c.values},
		{Name: "dt", Shape: steps(c.heads), Values: c.dtValues},
		{Name: "A", Shape: []int{c.heads}, Values: c.logValues},
		{Name: "B", Shape: steps(c.groups, c.n)},
		{Name: "C", Shape: steps(c.groups, c.n)},
	}
	if c.d {
		in = append(in, compare.Input{Name: "D", Shape: []int{c.heads}})
	}
	if c.state {
		in = append(in, compare.Input{Name: "h0", Shape: c.stateShape()})
	}
	if c.starts != nil {
		in = append(in, compare.Input{
			Name: "starts", Shape: []int{len(c.starts)}, Kind: compare.SignedIndex, Values: fixed(c.starts),
		})
	}
	for i := range in {
		in[i].Layout = c.layouts[in[i].Name]
	}
	return in
}

// config assigns the inputs after x, dt, A, B and C to their fields.
func (c ssmCase) config(in []*mlxc.Array) ops.SSMScanConfig {
	var cfg ops.SSMScanConfig
	rest := in[5:]
	for _, o := range []struct {
		given bool
		to    **mlxc.Array
	}{{c.d, &cfg.D}, {c.state, &cfg.InitialState}, {c.starts != nil, &cfg.Starts}} {
		if o.given {
			*o.to, rest = rest[0], rest[1:]
		}
	}
	return cfg
}

func (c ssmCase) exact(in []oracle.Tensor) oracle.SSMScan {
	s := oracle.SSMScan{X: in[0], DT: in[1], A: in[2], B: in[3], C: in[4], Starts: c.starts}
	rest := in[5:]
	if c.d {
		s.D, rest = &rest[0], rest[1:]
	}
	if c.state {
		s.State = &rest[0]
	}
	return s
}

func (c ssmCase) exactGradient(in, cotangents []oracle.Tensor) []oracle.Tensor {
	g := c.exact(in).VJP(cotangents[0], cotangents[1])
	grads := []oracle.Tensor{g.X, g.DT, g.A, g.B, g.C}
	for _, optional := range []*oracle.Tensor{g.D, g.State} {
		if optional != nil {
			grads = append(grads, *optional)
		}
	}
	return grads
}

// composed computes the case with basic MLX operations, step after step, in the dtype.
func (c ssmCase) composed(in []*mlxc.Array) []*mlxc.Array {
	cfg := c.config(in)
	starts, states := c.starts, []*mlxc.Array{}
	if starts == nil {
		starts = []int{0, c.length}
	}
	initial := cfg.InitialState
	if initial == nil {
		initial = mlxc.Zeros(in[0].DType(), c.stateShape()...)
	}
	if c.batch*c.length == 0 {
		return []*mlxc.Array{mlxc.Zeros(in[0].DType(), in[0].Shape()...), initial.AsType(mlxc.Float32)}
	}
	steps := make([][]*mlxc.Array, 4)
	for i, operand := range []*mlxc.Array{in[0], in[1], in[3], in[4]} {
		steps[i] = operand.Unstack(1)
	}
	var ys []*mlxc.Array
	for s := range len(starts) - 1 {
		state := initial
		if c.starts != nil {
			state = initial.Slice([]int{s, 0, 0, 0}, append([]int{s + 1}, c.stateShape()[1:]...), nil)
		}
		for t := starts[s]; t < starts[s+1]; t++ {
			var y *mlxc.Array
			y, state = c.composedStep(steps[0][t], steps[1][t], in[2], steps[2][t], steps[3][t], cfg.D, state)
			ys = append(ys, y)
		}
		states = append(states, state)
	}
	return []*mlxc.Array{mlxc.Stack(1, ys...), mlxc.Concatenate(0, states...).AsType(mlxc.Float32)}
}

// composedStep is one step. The heads of a group have an axis of their own, along which b and c are broadcast.
func (c ssmCase) composedStep(x, dt, a, b, cs, d, state *mlxc.Array) (y, next *mlxc.Array) {
	shared := c.heads / c.groups
	grouped := func(v *mlxc.Array, heads int, inner ...int) *mlxc.Array {
		return v.Reshape(append([]int{c.batch, c.groups, heads}, inner...)...)
	}
	decay := grouped(dt.Mul(a).Exp(), shared, 1, 1)
	input := grouped(x.Mul(dt.ExpandDims(-1)), shared, c.p, 1).Mul(grouped(b, 1, 1, c.n))
	h := decay.Mul(grouped(state, shared, c.p, c.n)).Add(input)
	y = h.MatMul(grouped(cs, 1, c.n, 1)).Reshape(c.batch, c.heads, c.p)
	if d != nil {
		y = y.Add(x.Mul(d.ExpandDims(-1)))
	}
	return y, h.Reshape(c.batch, c.heads, c.p, c.n)
}

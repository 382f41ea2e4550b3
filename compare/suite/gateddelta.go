package suite

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

func gatedDeltaRule() compare.Op {
	op := compare.Op{Name: "gated-delta-rule"}
	for _, c := range gatedDeltaCases() {
		op.Cases = append(op.Cases, c.build())
	}
	return op
}

// gatedDeltaCase is a configuration of the gated delta rule. Except for batch, heads, length and dim, the zero value of a
// field is the default.
type gatedDeltaCase struct {
	batch, heads, length, dim int
	keyHeads, valueDim        int // heads and dim if 0

	scale   float32
	initial bool  // there are initial states
	starts  []int // of sequences; the end sets length

	layouts                       layouts
	queries, keys, decays, writes compare.Values // of q, k, logDecay and beta
	label                         string         // the name of values or layouts
}

// gatedDeltaCases covers lengths below, at and above the length of a chunk, then head sizes and numbers of heads, then
// single properties.
func gatedDeltaCases() []gatedDeltaCase {
	var cases []gatedDeltaCase
	// Larger batches for short lengths, because the largest error of few elements depends on chance.
	for _, length := range []int{1, 2, 31, 32, 33, 63, 65, 129} {
		cases = append(cases, gatedDeltaCase{batch: 1 + 200/(length+30), heads: 2, length: length, dim: 16})
	}
	for _, heads := range [][2]int{{1, 1}, {2, 1}, {6, 2}, {8, 1}} {
		cases = append(cases, gatedDeltaCase{batch: 2, heads: heads[0], keyHeads: heads[1], length: 40, dim: 32, initial: true})
	}
	for _, dims := range [][2]int{{64, 64}, {128, 128}, {16, 64}, {96, 48}, {80, 16}, {256, 32}, {32, 256}} {
		cases = append(cases, gatedDeltaCase{
			batch: 1, heads: 2, length: 70, dim: dims[0], valueDim: dims[1], keyHeads: 1, initial: true,
		})
	}
	for _, starts := range [][]int{{0, 37}, {0, 5, 5, 70}, {0, 0, 64, 96, 131}, {0, 1, 2, 3, 40}} {
		cases = append(cases, gatedDeltaCase{batch: 1, heads: 2, dim: 32, starts: starts, initial: true},
			gatedDeltaCase{batch: 1, heads: 4, keyHeads: 2, dim: 16, starts: starts})
	}
	cases = append(cases, gatedDeltaCase{batch: 0, heads: 2, length: 3, dim: 16, initial: true},
		gatedDeltaCase{batch: 2, heads: 2, length: 0, dim: 16, initial: true})
	usual := gatedDeltaCase{batch: 2, heads: 2, length: 70, dim: 32, initial: true}
	with := func(label string, change func(c *gatedDeltaCase)) {
		c := usual
		c.label = label
		change(&c)
		cases = append(cases, c)
	}
	with("queries / √32", func(c *gatedDeltaCase) { c.scale, c.queries = 1, compare.Normal(1/math.Sqrt(32)) })
	with("no decay", func(c *gatedDeltaCase) { c.decays = compare.Zeros })
	with("slow decay", func(c *gatedDeltaCase) { c.decays = compare.Uniform(-0.01, 0) })
	with("fast decay", func(c *gatedDeltaCase) { c.decays = compare.Uniform(-20, -2) })
	with("decays of 0", func(c *gatedDeltaCase) {
		c.decays = sometimes(compare.Uniform(-0.5, 0), []float64{math.Inf(-1)})
	})
	with("beta 0 and 1", func(c *gatedDeltaCase) { c.writes = sometimes(compare.Zeros, []float64{1}) })
	with("beta up to 2", func(c *gatedDeltaCase) { c.writes = compare.Uniform(0, 2) })
	with("equal keys", func(c *gatedDeltaCase) { c.keys = alike })
	for _, layout := range everyLayout() {
		c := usual
		c.batch = 3 // sums of fewer elements may miss the rule by chance
		c.layouts = layouts{"q": layout, "v": layout, "decay": layout, "dout": layout}
		c.label = "q and others " + string(layout)
		cases = append(cases, c)
		c.layouts = layouts{"k": layout, "beta": layout, "h": layout, "dstate": layout}
		c.label = "k and others " + string(layout)
		cases = append(cases, c)
	}
	return cases
}

func (c gatedDeltaCase) withDefaults() gatedDeltaCase {
	if c.starts != nil {
		c.length = c.starts[len(c.starts)-1]
	}
	if c.keyHeads == 0 {
		c.keyHeads = c.heads
	}
	if c.valueDim == 0 {
		c.valueDim = c.dim
	}
	if c.keys == nil {
		c.keys = compare.Normal(1 / math.Sqrt(float64(c.dim))) // longer keys would let the state grow without limit
	} else {
		c.keys = times(c.keys, 1/math.Sqrt(float64(c.dim)))
	}
	if c.decays == nil {
		c.decays = compare.Uniform(-0.5, 0)
	}
	if c.writes == nil {
		c.writes = compare.Uniform(0, 1)
	}
	return c
}

func (c gatedDeltaCase) sequences() int {
	if c.starts != nil {
		return len(c.starts) - 1
	}
	return c.batch
}

func (c gatedDeltaCase) build() compare.Case {
	name := c.name()
	c = c.withDefaults()
	return compare.Case{
		Name:   name,
		Inputs: c.inputs(),
		Outputs: []compare.Output{
			{Name: "out", Shape: []int{c.batch, c.heads, c.length, c.valueDim}, Layout: c.layouts["dout"]},
			{
				Name: "state", Shape: []int{c.sequences(), c.heads, c.dim, c.valueDim}, DType: mlxc.Float32,
				Layout: c.layouts["dstate"],
			},
		},
		Reference: compare.Reference{
			Forward: func(in []oracle.Tensor) []oracle.Tensor {
				out, state := c.exact(in).Forward()
				return []oracle.Tensor{out, state}
			},
			Gradient: func(in, ct []oracle.Tensor) []oracle.Tensor {
				g := c.exact(in).VJP(ct[0], ct[1])
				grads := []oracle.Tensor{g.Q, g.K, g.V, g.LogDecay, g.Beta}
				if c.initial {
					grads = append(grads, g.Initial)
				}
				return grads
			},
		},
		Ours: func(in []*mlxc.Array) []*mlxc.Array {
			out, state := ops.GatedDeltaRule(in[0], in[1], in[2], in[3], in[4], c.config(in))
			return []*mlxc.Array{out, state}
		},
		MLX: c.composed,
	}
}

func (c gatedDeltaCase) inputs() []compare.Input {
	keys, rows := []int{c.batch, c.keyHeads, c.length, c.dim}, []int{c.batch, c.heads, c.length}
	in := []compare.Input{
		{Name: "q", Shape: keys, Values: c.queries},
		{Name: "k", Shape: keys, Values: c.keys},
		{Name: "v", Shape: append(slices.Clone(rows), c.valueDim)},
		{Name: "decay", Shape: rows, Values: c.decays},
		{Name: "beta", Shape: rows, Values: c.writes},
	}
	if c.initial {
		in = append(in, compare.Input{Name: "h", Shape: []int{c.sequences(), c.heads, c.dim, c.valueDim}})
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

// config returns the configuration for ops.
func (c gatedDeltaCase) config(in []*mlxc.Array) ops.GatedDeltaRuleConfig {
	cfg := ops.GatedDeltaRuleConfig{Scale: c.scale}
	if c.initial {
		cfg.InitialState = in[5]
	}
	if c.starts != nil {
		cfg.Starts = in[len(in)-1]
	}
	return cfg
}

func (c gatedDeltaCase) exact(in []oracle.Tensor) oracle.GatedDelta {
	g := oracle.GatedDelta{
		Q: in[0], K: in[1], V: in[2], LogDecay: in[3], Beta: in[4], Scale: float64(c.usedScale()), Starts: c.starts,
	}
	if c.initial {
		g.Initial = &in[5]
	}
	return g
}

func (c gatedDeltaCase) usedScale() float32 {
	if c.scale == 0 {
		return float32(1 / math.Sqrt(float64(c.dim)))
	}
	return c.scale
}

// composed computes the case with basic MLX operations in float32, one step after the other, as mlx-lm does without its
// kernel.
func (c gatedDeltaCase) composed(in []*mlxc.Array) []*mlxc.Array {
	starts := c.starts
	if starts == nil {
		starts = []int{0, c.length}
	}
	wide := make([]*mlxc.Array, 5)
	for i := range wide {
		wide[i] = in[i].AsType(mlxc.Float32)
	}
	ofHeads := func(x *mlxc.Array) *mlxc.Array {
		shared := c.heads / c.keyHeads
		return x.ExpandDims(2).BroadcastTo(c.batch, c.keyHeads, shared, c.length, c.dim).
			Reshape(c.batch, c.heads, c.length, c.dim, 1)
	}
	q, k := ofHeads(wide[0].MulScalar(float64(c.usedScale()))), ofHeads(wide[1])
	v := wide[2].Reshape(c.batch, c.heads, c.length, 1, c.valueDim)
	decay := wide[3].Exp().Reshape(c.batch, c.heads, c.length, 1, 1)
	beta := wide[4].Reshape(c.batch, c.heads, c.length, 1, 1)
	qs, ks, vs, decays, betas := q.Split(c.length, 2), k.Split(c.length, 2), v.Split(c.length, 2),
		decay.Split(c.length, 2), beta.Split(c.length, 2)

	var outs, finals []*mlxc.Array
	for n := range len(starts) - 1 {
		batches := c.batch
		state := mlxc.Zeros(mlxc.Float32, batches, c.heads, 1, c.dim, c.valueDim)
		if c.initial {
			state = in[5].AsType(mlxc.Float32)
			if c.starts != nil {
				state = state.Slice([]int{n, 0, 0, 0}, []int{n + 1, c.heads, c.dim, c.valueDim}, nil)
			}
			state = state.ExpandDims(2)
		}
		for t := starts[n]; t < starts[n+1]; t++ {
			state = state.Mul(decays[t])
			held := state.Mul(ks[t]).Sum(3).ExpandDims(3)
			state = state.Add(ks[t].Mul(vs[t].Sub(held).Mul(betas[t])))
			outs = append(outs, state.Mul(qs[t]).Sum(3))
		}
		finals = append(finals, state.Squeeze(2))
	}
	return []*mlxc.Array{mlxc.Concatenate(2, outs...).AsType(in[2].DType()), mlxc.Concatenate(0, finals...)}
}

func (c gatedDeltaCase) name() string {
	d := c.withDefaults()
	packed, scale := "", ""
	if c.starts != nil {
		packed = fmt.Sprintf("%d seqs of %d", len(c.starts)-1, d.length)
	}
	if c.scale != 0 {
		scale = fmt.Sprintf("scale %g", c.scale)
	}
	return caseName(
		fmt.Sprintf("%dx%sx%dx%s", c.batch, pair("/", c.heads, d.keyHeads), d.length, pair(":", c.dim, d.valueDim)),
		noteIf(c.initial, "h"), scale, packed, c.label,
	)
}

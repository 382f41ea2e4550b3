package suite

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// attentionCase is a configuration of attention. Except for batch, heads, queries and dim, the zero value of a field is
// the default.
type attentionCase struct {
	batch, heads, queries, dim int
	kvHeads, keys, valueDim    int // heads, queries and dim if 0
	noKeys                     bool

	scale                       float32
	causal, sinks, softCap, lse bool
	window                      *ops.Window
	mask                        maskKind
	maskAxes                    string // a letter for each mask axis longer than 1: "b11j"
	queryStarts, keyStarts      []int  // of sequences; their ends set queries and keys; keyStarts is queryStarts if nil

	layouts                       layouts
	values, keyValues, maskValues compare.Values // of q, k and the mask

	// caps, if not 0, is the absolute value of all scores in units of the soft cap. The cotangents compensate the small
	// slope of the cap at these scores, as far as the range of float16 allows.
	caps float64

	frozen bool   // q and k are not differentiated
	label  string // the name of values
}

// maskKind is the kind of mask elements.
type maskKind int

const (
	noMask maskKind = iota
	booleans
	added
)

// attentionSoftCap is small enough to change the first digit of normal scores.
const attentionSoftCap = 2

// withDefaults sets the default values.
func (c attentionCase) withDefaults() attentionCase {
	if c.queryStarts != nil {
		if c.keyStarts == nil {
			c.keyStarts = c.queryStarts
		}
		c.queries, c.keys = c.queryStarts[len(c.queryStarts)-1], c.keyStarts[len(c.keyStarts)-1]
	}
	for _, d := range []struct {
		of    *int
		usual int
	}{{&c.kvHeads, c.heads}, {&c.keys, c.queries}, {&c.valueDim, c.dim}} {
		if *d.of == 0 {
			*d.of = d.usual
		}
	}
	if c.noKeys {
		c.keys = 0
	}
	if c.scale == 0 {
		c.scale = float32(1 / math.Sqrt(float64(c.dim)))
	}
	if c.caps > 0 {
		c.softCap = true
		c.values, c.keyValues = sided(1), sided(c.caps*attentionSoftCap/(float64(c.scale)*float64(c.dim)))
	}
	return c
}

func (c attentionCase) build() compare.Case {
	name := c.name()
	c = c.withDefaults()
	out := compare.Case{
		UsesTF32: true,
		Name:     name,
		Inputs:   c.inputs(),
		Outputs: []compare.Output{{
			Name: "out", Shape: []int{c.batch, c.heads, c.queries, c.valueDim}, Layout: c.layouts["dout"],
			Values: c.cotangents(),
		}},
		Reference: compare.Reference{
			Forward: func(in []oracle.Tensor) []oracle.Tensor {
				out, lse := c.exact(in).Forward()
				return []oracle.Tensor{out, lse}[:c.outputs()]
			},
			Gradient: c.exactGradient,
		},
		Ours: func(in []*mlxc.Array) []*mlxc.Array {
			if c.lse {
				out, lse := ops.AttentionLogSumExp(in[0], in[1], in[2], c.config(in))
				return []*mlxc.Array{out, lse}
			}
			return []*mlxc.Array{ops.Attention(in[0], in[1], in[2], c.config(in))}
		},
		MLX: c.composed,
	}
	if c.lse {
		lse := compare.Output{
			Name: "lse", Shape: []int{c.batch, c.heads, c.queries}, DType: mlxc.Float32, Layout: c.layouts["dlse"],
			Values: c.cotangents(),
		}
		out.Outputs = append(out.Outputs, lse)
	}
	if !c.lse && !c.softCap {
		out.MLX, out.Composed = c.builtIn, c.composed
	}
	return out
}

// cotangents returns the values of both cotangents, or nil for the default. Products of the default cotangents with
// large v would overflow float16.
func (c attentionCase) cotangents() compare.Values {
	if c.caps == 0 {
		return nil
	}
	return times(compare.EitherSign, min(1/capSlope(c.caps), 1<<10))
}

// outputs returns the number of outputs.
func (c attentionCase) outputs() int {
	if c.lse {
		return 2
	}
	return 1
}

func (c attentionCase) inputs() []compare.Input {
	kind := compare.Real
	if c.frozen {
		kind = compare.Constant
	}
	in := []compare.Input{
		{Name: "q", Shape: []int{c.batch, c.heads, c.queries, c.dim}, Kind: kind, Values: c.values},
		{Name: "k", Shape: []int{c.batch, c.kvHeads, c.keys, c.dim}, Kind: kind, Values: c.keyValues},
		{Name: "v", Shape: []int{c.batch, c.kvHeads, c.keys, c.valueDim}},
	}
	switch c.mask {
	case booleans:
		mask := compare.Input{Name: "mask", Shape: c.maskShape(), Kind: compare.Mask, Values: c.maskValues}
		if mask.Values == nil {
			mask.Values = mostly
		}
		in = append(in, mask)
	case added:
		in = append(in, compare.Input{Name: "mask", Shape: c.maskShape(), Values: c.maskValues})
	}
	if c.sinks {
		in = append(in, compare.Input{Name: "sink", Shape: []int{c.heads}})
	}
	if c.queryStarts != nil {
		in = append(in,
			compare.Input{Name: "qstarts", Shape: []int{len(c.queryStarts)}, Kind: compare.SignedIndex, Values: fixed(c.queryStarts)},
			compare.Input{Name: "kstarts", Shape: []int{len(c.keyStarts)}, Kind: compare.SignedIndex, Values: fixed(c.keyStarts)})
	}
	for i := range in {
		in[i].Layout = c.layouts[in[i].Name]
	}
	return in
}

func (c attentionCase) maskShape() []int {
	sizes := map[rune]int{'b': c.batch, 'h': c.heads, 'i': c.queries, 'j': c.keys, '1': 1}
	var shape []int
	for _, axis := range c.maskAxes {
		shape = append(shape, sizes[axis])
	}
	return shape
}

// attentionOptional are the optional inputs after q, k and v.
type attentionOptional[T any] struct{ mask, sinks, queryStarts, keyStarts T }

// optional assigns the inputs after q, k and v to their parameters.
func optional[T any](c attentionCase, in []T) attentionOptional[T] {
	var out attentionOptional[T]
	next := func() T {
		in = in[1:]
		return in[2]
	}
	if c.mask != noMask {
		out.mask = next()
	}
	if c.sinks {
		out.sinks = next()
	}
	if c.queryStarts != nil {
		out.queryStarts, out.keyStarts = next(), next()
	}
	return out
}

// config returns the configuration for ops.
func (c attentionCase) config(in []*mlxc.Array) ops.AttentionConfig {
	o := optional(c, in)
	cfg := ops.AttentionConfig{
		Scale: c.scale, Causal: c.causal, Window: c.window,
		Mask: o.mask, Sinks: o.sinks, QueryStarts: o.queryStarts, KeyStarts: o.keyStarts,
	}
	if c.softCap {
		cfg.SoftCap = attentionSoftCap
	}
	return cfg
}

// positions returns an oracle.Attention that has only the masks by position.
func (c attentionCase) positions() oracle.Attention {
	a := oracle.Attention{Causal: c.causal, QueryStarts: c.queryStarts, KeyStarts: c.keyStarts}
	if w := c.window; w != nil {
		a.Window = &[2]int{w.Left, w.Right}
	}
	return a
}

func (c attentionCase) exact(in []oracle.Tensor) oracle.Attention {
	o := optional(c, pointers(in))
	a := c.positions()
	a.Q, a.K, a.V, a.Scale, a.Sinks = in[0], in[1], in[2], float64(c.scale), o.sinks
	if c.softCap {
		a.SoftCap = attentionSoftCap
	}
	if c.mask == booleans {
		a.Seen = o.mask
	} else {
		a.Bias = o.mask
	}
	return a
}

func (c attentionCase) exactGradient(in, ct []oracle.Tensor) []oracle.Tensor {
	dlse := oracle.New(c.batch, c.heads, c.queries)
	if c.lse {
		dlse = ct[1]
	}
	g := c.exact(in).VJP(ct[0], dlse)
	grads := []oracle.Tensor{g.V}
	if !c.frozen {
		grads = []oracle.Tensor{g.Q, g.K, g.V}
	}
	if c.mask == added {
		grads = append(grads, *g.Bias)
	}
	if c.sinks {
		grads = append(grads, *g.Sinks)
	}
	return grads
}

func (c attentionCase) name() string {
	window, mask, scale, packed := "", "", "", ""
	if w := c.window; w != nil {
		window = strings.ReplaceAll(fmt.Sprintf("win %d:%d", w.Left, w.Right), fmt.Sprint(ops.Unbounded), "")
	}
	if c.mask != noMask {
		mask = map[maskKind]string{booleans: "bool ", added: "add "}[c.mask] + c.maskAxes
	}
	if c.scale != 0 {
		scale = fmt.Sprintf("scale %g", c.scale)
	}
	if c.queryStarts != nil {
		packed = fmt.Sprintf("%d seqs", len(c.queryStarts)-1)
	}
	return caseName(
		fmt.Sprintf("%dx%s", c.batch, c.withDefaults().sizes()),
		noteIf(c.causal, "causal"),
		window,
		mask,
		noteIf(
			c.sinks,
			"sinks",
		),
		noteIf(c.softCap, "cap"),
		noteIf(c.lse, "lse"),
		scale,
		packed,
		capsNote(c.caps),
		c.layouts.String(),
		c.label,
	)
}

// sizes returns "HEADS/KEYHEADSxQUERIES:KEYSxDIM:VALUEDIM", with one number for two equal ones.
func (c attentionCase) sizes() string {
	return fmt.Sprintf("%sx%sx%s", pair("/", c.heads, c.kvHeads), pair(":", c.queries, c.keys), pair(":", c.dim, c.valueDim))
}

// pair joins two numbers, or returns one if they are equal.
func pair(between string, a, b int) string {
	if a == b {
		return fmt.Sprint(a)
	}
	return fmt.Sprintf("%d%s%d", a, between, b)
}

// mostly draws booleans that are true with probability 3/4.
func mostly(rng *rand.Rand, shape []int) []float64 {
	out := make([]float64, oracle.Size(shape))
	for i := range out {
		out[i] = float64(min(rng.IntN(4), 1))
	}
	return out
}

// hiddenRows hides every third row of a mask and shows the others.
func hiddenRows(shown, hidden float64) compare.Values {
	return func(_ *rand.Rand, shape []int) []float64 {
		row := 0
		return compare.EachRow(shape, func(values []float64) {
			for i := range values {
				values[i] = shown
				if row%3 == 0 {
					values[i] = hidden
				}
			}
			row++
		})
	}
}

// alike gives all rows the same normal values.
func alike(rng *rand.Rand, shape []int) []float64 {
	first := compare.Normal(1)(rng, shape[len(shape)-1:])
	return compare.EachRow(shape, func(row []float64) { copy(row, first) })
}

// fixed returns the given integers.
func fixed(values []int) compare.Values {
	return eachID(func(_ *rand.Rand, i int) int { return values[i] })
}

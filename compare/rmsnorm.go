package compare

import (
	"fmt"
	"math"
	"strings"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// usualEps is the eps of models that MLX is used for.
const usualEps = 1e-5

// rmsNormCase is an RMSNorm of x with the given shape. The zero value of a field but the shape and eps
// is what is usual: a weight, dense arrays, normal values.
type rmsNormCase struct {
	shape    []int
	eps      float32
	noWeight bool
	x, w, dy Layout
	values   Values // Of x.
	label    string // Names values.
}

// rmsNorm covers every size class of a row (one element, below, at and above a simdgroup and a
// threadgroup, not a multiple of either) against few and many rows, and then one property at a time.
func rmsNorm() Op {
	op := Op{Name: "rmsnorm"}
	addWithEps := func(eps float32, c rmsNormCase) {
		c.eps = eps
		op.Cases = append(op.Cases, c.build())
	}
	add := func(c rmsNormCase) { addWithEps(usualEps, c) }

	widths := []int{1, 7, 31, 32, 33, 127, 128, 129, 1024, 4096, 4099}
	for _, rows := range []int{1, 3, 37, 199} {
		for _, width := range widths {
			add(rmsNormCase{shape: []int{rows, width}})
		}
	}
	for _, width := range widths {
		add(rmsNormCase{shape: []int{37, width}, noWeight: true})
	}
	for _, shape := range [][]int{{1}, {33}, {4099}, {2, 3, 33}, {5, 1, 129}, {2, 3, 4, 31}, {1, 7, 2, 128}} {
		add(rmsNormCase{shape: shape})
		add(rmsNormCase{shape: shape, noWeight: true})
	}

	for _, layout := range []Layout{Transposed, Strided, Sliced, Offset, Reversed, Broadcast} {
		add(rmsNormCase{shape: []int{37, 33}, x: layout})
		add(rmsNormCase{shape: []int{37, 33}, dy: layout})
		add(rmsNormCase{shape: []int{3, 5, 128}, x: layout, noWeight: true})
		add(rmsNormCase{shape: []int{2, 3, 5, 129}, x: layout, dy: layout})
		if layout != Transposed { // A weight has one axis.
			add(rmsNormCase{shape: []int{37, 33}, w: layout})
		}
	}

	for _, shape := range [][]int{{37, 129}, {3, 4099}} {
		add(rmsNormCase{shape: shape, values: Equal, label: "equal rows"})
		add(rmsNormCase{shape: shape, values: Normal(1e4), label: "huge"})
		add(rmsNormCase{shape: shape, values: Normal(1e-4), label: "tiny"})
		add(rmsNormCase{shape: shape, values: Spread, label: "spread"})
		add(rmsNormCase{shape: shape, values: Spike, label: "spike"})
		add(rmsNormCase{shape: shape, values: Zero, label: "zero"})
		add(rmsNormCase{shape: shape, values: With(math.NaN()), label: "one NaN"})
		add(rmsNormCase{shape: shape, values: With(math.Inf(1)), label: "one infinity"})
	}
	for _, eps := range []float32{0, 1e-8, 1e-3} {
		addWithEps(eps, rmsNormCase{shape: []int{37, 127}})
	}
	return op
}

func (c rmsNormCase) build() Case {
	eps, width := c.eps, c.shape[len(c.shape)-1]
	out := Case{
		Name:    c.name(),
		Inputs:  []Input{{Name: "x", Shape: c.shape, Layout: c.x, Values: c.values}},
		Outputs: []Output{{Name: "y", Shape: c.shape, Layout: c.dy}},
		Forward: func(in []oracle.Tensor) []oracle.Tensor {
			return []oracle.Tensor{oracle.RMSNorm(in[0], weight(in), float64(eps))}
		},
		Gradient: func(in, ct []oracle.Tensor) []oracle.Tensor {
			dx, dw := oracle.RMSNormVJP(in[0], weight(in), float64(eps), ct[0])
			return []oracle.Tensor{dx, dw}[:len(in)]
		},
		Ours: rmsNormFunc(ops.RMSNorm, eps),
		MLX:  rmsNormFunc(mlxc.RMSNorm, eps),
	}
	if !c.noWeight {
		out.Inputs = append(out.Inputs, Input{Name: "w", Shape: []int{width}, Layout: c.w})
	}
	return out
}

// name says what is not usual about the case, so that a pattern can select by it.
func (c rmsNormCase) name() string {
	parts := []string{strings.Trim(strings.ReplaceAll(fmt.Sprint(c.shape), " ", "x"), "[]")}
	if c.noWeight {
		parts = append(parts, "no weight")
	}
	for _, p := range []struct {
		name   string
		layout Layout
	}{{"x", c.x}, {"w", c.w}, {"dy", c.dy}} {
		if p.layout != "" {
			parts = append(parts, p.name+" "+string(p.layout))
		}
	}
	if c.label != "" {
		parts = append(parts, c.label)
	}
	if c.eps != usualEps {
		parts = append(parts, fmt.Sprintf("eps %g", c.eps))
	}
	return strings.Join(parts, ", ")
}

// rmsNormFunc adapts one of the two functions: inputs x and, if there are two, the weight.
func rmsNormFunc(f func(x, w *mlxc.Array, eps float32) *mlxc.Array, eps float32) mlxc.Func {
	return func(in []*mlxc.Array) []*mlxc.Array {
		var w *mlxc.Array
		if len(in) > 1 {
			w = in[1]
		}
		return []*mlxc.Array{f(in[0], w, eps)}
	}
}

// weight is the second input, nil if there is none.
func weight(in []oracle.Tensor) *oracle.Tensor {
	if len(in) < 2 {
		return nil
	}
	return &in[1]
}

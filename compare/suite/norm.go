package suite

import (
	"fmt"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// norm declares an operation that normalizes the rows of x.
type norm struct {
	// params are the parameters with the shape of x, vectors the parameters with the length of a row. Vectors may be
	// left out; a function gets nil for them.
	params, vectors []string
	outputs         []string
	own             bool // our kernel computes the outputs, otherwise MLX
	// summed is set if the sum of the params is normalized. All params then have the values of the case.
	summed bool

	forward func(in []*oracle.Tensor, eps float64) []oracle.Tensor
	// gradient returns one gradient for each parameter, left out or not.
	gradient  func(in []*oracle.Tensor, eps float64, ct []oracle.Tensor) []oracle.Tensor
	ours, mlx func(in []*mlxc.Array, eps float32) []*mlxc.Array

	// unsafeOnCUDA says why MLX's CUDA backend must not run a width, or returns "". It is nil if all widths are safe.
	unsafeOnCUDA func(width int) string
}

// usualEps is the eps of common models.
const usualEps = 1e-5

// normCase is a configuration of a norm.
type normCase struct {
	rowCase
	eps     float32
	without []string // the vectors left out
}

// cases returns the cases of all row operations with all vectors, then the cases that only norms have.
func (n norm) cases() []compare.Case {
	var out []compare.Case
	addWithEps := func(eps float32, c normCase) {
		c.eps = eps
		out = append(out, n.build(c))
	}
	add := func(c normCase) { addWithEps(epsFor(c.shape), c) }

	for _, c := range rowCases() {
		add(normCase{rowCase: c})
	}
	for _, without := range n.subsets() {
		for _, width := range rowWidths() {
			add(normCase{rowCase: rowCase{shape: []int{37, width}}, without: without})
		}
		for _, shape := range append(moreAxes(), []int{0, 33}) {
			add(normCase{rowCase: rowCase{shape: shape}, without: without})
		}
		for _, layout := range everyLayout() {
			add(normCase{rowCase: rowCase{shape: []int{3, 5, 33}, layouts: layouts{"x": layout}}, without: without})
		}
	}
	for _, layout := range everyLayout() {
		for _, param := range n.params[1:] {
			add(normCase{rowCase: rowCase{shape: []int{37, 33}, layouts: layouts{param: layout}}})
		}
		for _, vector := range n.vectors {
			if layout != compare.Transposed { // a vector has one axis
				add(normCase{rowCase: rowCase{shape: []int{37, 33}, layouts: layouts{vector: layout}}})
			}
		}
		for _, output := range n.outputs {
			if output != "y" { // all row operations have y
				add(normCase{rowCase: rowCase{shape: []int{37, 33}, layouts: layouts{"d" + output: layout}}})
			}
		}
	}
	for _, eps := range []float32{0, 1e-8, 1e-3} {
		addWithEps(eps, normCase{rowCase: rowCase{shape: []int{37, 127}}})
	}
	addWithEps(usualEps, normCase{rowCase: rowCase{shape: []int{4099, 1}}})
	return out
}

// fewCases returns fewer cases, for a second implementation of a norm.
func (n norm) fewCases() []compare.Case {
	var out []compare.Case
	add := func(c rowCase, without ...string) {
		out = append(out, n.build(normCase{rowCase: c, eps: epsFor(c.shape), without: without}))
	}
	for _, c := range fewRowCases() {
		add(c)
	}
	for _, without := range n.subsets() {
		for _, width := range []int{1, 33, 129, 4099} {
			add(rowCase{shape: []int{37, width}}, without...)
		}
	}
	return out
}

// epsFor returns the eps of cases that do not test eps. In a row of one element and with a small eps, dx is almost 0,
// and its rounding would decide the verdict.
func epsFor(shape []int) float32 {
	if shape[len(shape)-1] == 1 {
		return 1
	}
	return usualEps
}

// subsets lists every nonempty set of vectors to leave out.
func (n norm) subsets() [][]string {
	sets := [][]string{nil}
	for _, v := range n.vectors {
		for _, s := range slices.Clone(sets) {
			sets = append(sets, append(slices.Clone(s), v))
		}
	}
	return sets[1:]
}

// has reports whether the case has the parameter.
func (c normCase) has(param string) bool { return !slices.Contains(c.without, param) }

func (n norm) build(c normCase) compare.Case {
	params := slices.Concat(n.params, n.vectors)
	out := compare.Case{
		Name: c.name(),
		Reference: compare.Reference{
			Forward: func(in []oracle.Tensor) []oracle.Tensor {
				return n.forward(spread(c, params, pointers(in)), float64(c.eps))
			},
			Gradient: func(in, ct []oracle.Tensor) []oracle.Tensor {
				var grads []oracle.Tensor
				for i, g := range n.gradient(spread(c, params, pointers(in)), float64(c.eps), ct) {
					if c.has(params[i]) {
						grads = append(grads, g)
					}
				}
				return grads
			},
		},
		Ours: func(in []*mlxc.Array) []*mlxc.Array { return n.ours(spread(c, params, in), c.eps) },
		MLX:  func(in []*mlxc.Array) []*mlxc.Array { return n.mlx(spread(c, params, in), c.eps) },
	}
	if n.unsafeOnCUDA != nil {
		out.UnsafeOnCUDA = n.unsafeOnCUDA(c.shape[len(c.shape)-1])
	}
	for _, p := range n.params {
		in := c.input(p, c.shape)
		if n.summed {
			in.Values = c.values
		}
		out.Inputs = append(out.Inputs, in)
	}
	for _, v := range n.vectors {
		if c.has(v) {
			out.Inputs = append(out.Inputs, c.input(v, c.shape[len(c.shape)-1:]))
		}
	}
	for _, o := range n.outputs {
		out.Outputs = append(out.Outputs, c.output(o, c.shape, n.own))
	}
	return out
}

func (c normCase) name() string {
	var notes []string
	for _, v := range c.without {
		notes = append(notes, "no "+v)
	}
	if c.eps != epsFor(c.shape) {
		notes = append(notes, fmt.Sprintf("eps %g", c.eps))
	}
	return c.rowCase.name(notes...)
}

// spread assigns the inputs of a case to the parameters, and nil to the parameters left out.
func spread[T any](c normCase, params []string, in []*T) []*T {
	out := make([]*T, len(params))
	for i, p := range params {
		if c.has(p) {
			out[i], in = in[0], in[1:]
		}
	}
	return out
}

func pointers(ts []oracle.Tensor) []*oracle.Tensor {
	out := make([]*oracle.Tensor, len(ts))
	for i := range ts {
		out[i] = &ts[i]
	}
	return out
}

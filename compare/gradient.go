package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// target is a result that is judged: an output that a kernel of ours computes, or a gradient.
type target struct {
	name  string
	shape []int
	dtype mlxc.DType
	at    int  // Its position among the outputs or the inputs.
	grad  bool // Whether it is the gradient of an input.
}

// targets lists what of a case is judged in a test of the dtype tested: own outputs, then gradients,
// named "d" and their input.
func (c Case) targets(tested mlxc.DType) []target {
	var ts []target
	for i, out := range c.Outputs {
		if out.Own {
			ts = append(ts, target{name: out.Name, shape: out.Shape, dtype: out.dtype(tested), at: i})
		}
	}
	for _, i := range c.differentiated() {
		in := c.Inputs[i]
		ts = append(ts, target{name: "d" + in.Name, shape: in.Shape, dtype: tested, at: i, grad: true})
	}
	return ts
}

// differentiated lists the positions of the inputs that have a gradient.
func (c Case) differentiated() []int {
	var at []int
	for i, in := range c.Inputs {
		if in.Kind == Real {
			at = append(at, i)
		}
	}
	return at
}

func (in Input) layout() Layout {
	if in.Layout == "" {
		return Contiguous
	}
	return in.Layout
}

// truth returns the oracle's value of each target, over all draws.
func (c Case) truth(draws []operands) ([][]float64, error) { return overDraws(draws, c.exact) }

// exact returns the oracle's value of each target for one draw. It is an error if the oracle's results do
// not have the shapes that the case declares.
func (c Case) exact(data operands) ([][]float64, error) {
	in, wrt := tensors(data.inputs), c.differentiated()
	outputs := c.Forward(in)
	if len(outputs) != len(c.Outputs) {
		return nil, fmt.Errorf("the case's Forward returns %d outputs; the case has %d", len(outputs), len(c.Outputs))
	}
	for i, o := range c.Outputs {
		if len(outputs[i].Data) != oracle.Size(o.Shape) {
			return nil, fmt.Errorf("the case's Forward returns %d elements of %s; its shape is %v", len(outputs[i].Data), o.Name, o.Shape)
		}
	}
	var out [][]float64
	for i, o := range c.Outputs {
		if o.Own {
			out = append(out, outputs[i].Data)
		}
	}
	if len(wrt) == 0 {
		return out, nil
	}
	gradient := c.Gradient
	if gradient == nil {
		gradient = func(in, cotangents []oracle.Tensor) []oracle.Tensor {
			return oracle.Differences(c.Forward, in, cotangents, wrt)
		}
	}
	grads := gradient(in, tensors(data.cotangents))
	if len(grads) != len(wrt) {
		return nil, fmt.Errorf("the case's Gradient returns %d gradients; the case has %d differentiable inputs", len(grads), len(wrt))
	}
	for k, g := range grads {
		if x := c.Inputs[wrt[k]]; len(g.Data) != oracle.Size(x.Shape) {
			return nil, fmt.Errorf("the case's Gradient returns %d elements of d%s; the shape of %s is %v", len(g.Data), x.Name, x.Name, x.Shape)
		}
		out = append(out, g.Data)
	}
	return out, nil
}

// gradients computes the targets of a case from every draw with f, through the vjp that f brings.
func gradients(f mlxc.Func, c Case, draws []operands, dtype mlxc.DType) ([][]float64, error) {
	return overDraws(draws, func(data operands) (results [][]float64, err error) {
		// Draws and repetitions are many; each frees its arrays.
		mlxc.WithScope(func() { results, err = differentiate(f, c, data, dtype) })
		return results, err
	})
}

// differentiate computes the targets of a case from one draw. It is an error if any result has
// another shape or dtype than the oracle's.
func differentiate(f mlxc.Func, c Case, data operands, dtype mlxc.DType) ([][]float64, error) {
	wrt := c.differentiated()
	outputs, vjps, err := vjp(f, arrays(data.inputs), wrt, arrays(data.cotangents))
	if err != nil {
		return nil, err
	}
	if len(outputs) != len(c.Outputs) || len(vjps) != len(wrt) {
		return nil, fmt.Errorf("%d outputs and %d gradients, want %d and %d", len(outputs), len(vjps), len(c.Outputs), len(wrt))
	}

	var results [][]float64
	for _, t := range c.targets(dtype) {
		var result *mlxc.Array
		if t.grad {
			result = vjps[slices.Index(wrt, t.at)]
		} else {
			result = outputs[t.at]
		}
		if err := result.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		if !slices.Equal(result.Shape(), t.shape) || result.DType() != t.dtype {
			return nil, fmt.Errorf("%s is %v%v, want %v%v", t.name, result.DType(), result.Shape(), t.dtype, t.shape)
		}
		values, err := toFloat64(result)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		results = append(results, values)
	}
	return results, nil
}

// vjp evaluates f at the arguments in, and the gradients with respect to those at the positions wrt.
func vjp(f mlxc.Func, in []*mlxc.Array, wrt []int, cotangents []*mlxc.Array) (outputs, vjps []*mlxc.Array, err error) {
	if len(wrt) == 0 { // MLX refuses to differentiate with respect to nothing.
		return f(in), nil, nil
	}
	primals := make([]*mlxc.Array, len(wrt))
	for k, i := range wrt {
		primals[k] = in[i]
	}
	return mlxc.VJP(func(primals []*mlxc.Array) []*mlxc.Array {
		args := slices.Clone(in)
		for k, i := range wrt {
			args[i] = primals[k]
		}
		return f(args)
	}, primals, cotangents)
}

// poison frees arrays of NaN of the size of each target, so that the allocator is likely to hand that
// memory out for the results. It cannot be sure to; the checker's poisoned buffers are.
func poison(targets []target) {
	for _, t := range targets {
		values := make([]float64, oracle.Size(t.shape))
		for i := range values {
			values[i] = math.NaN()
		}
		a := toArray(values, t.dtype, t.shape)
		_ = mlxc.Eval(a) // An error will come again, where it is reported.
		a.Free()
	}
}

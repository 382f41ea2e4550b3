package compare

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Reference computes the true outputs and gradients of a function. It needs Forward, or Composed alone.
type Reference struct {
	// Forward is the function in float64.
	Forward oracle.Func
	// Gradient is the gradient of Forward in float64, one for each Real input, in order. If it is nil, finite
	// differences of Forward replace it (see [oracle.Differences]): four calls of Forward for each element of a Real
	// input, and about ten correct digits. An element at a kink or jump of Forward has no gradient and is not judged.
	Gradient oracle.Gradient
	// Composed is the function composed of MLX operations with MLX's own gradients.
	//
	// Beside Forward, it is an implementation to compare with: it replaces [Case.MLX] if that function is nil, fails, or
	// has different semantics.
	//
	// Without Forward, it is the truth. It runs in float64 on the CPU. MLX computes exp, erf, sin and softmax in single
	// precision even there, as does every part that Composed itself converts to float32, so the truth may have only
	// seven correct digits. Such a truth shows wrong formulas in every dtype, and lost precision in float16 and
	// bfloat16. It cannot show a float32 error of a few roundings, nor an error in MLX's own gradients.
	Composed mlxc.Func
}

// given reports whether a function is set.
func (r Reference) given() bool { return r.Forward != nil || r.Gradient != nil || r.Composed != nil }

// byDifferences reports whether finite differences compute the gradient.
func (r Reference) byDifferences() bool { return r.Forward != nil && r.Gradient == nil }

// truth returns the reference's values of each target, for all draws.
func (c Case) truth(draws []operands) ([][]float64, error) {
	return concatDraws(draws, func(data operands) ([][]float64, error) {
		return c.exact(tensors(data.inputs), tensors(data.cotangents))
	})
}

// exact returns the reference's values of each target. It fails if they do not have the shapes that the case declares.
func (c Case) exact(in, cotangents []oracle.Tensor) ([][]float64, error) {
	outputs, grads, err := c.evaluate(in, cotangents)
	if err != nil {
		return nil, err
	}
	if len(outputs) != len(c.Outputs) {
		return nil, fmt.Errorf("the reference returns %d outputs; the case has %d", len(outputs), len(c.Outputs))
	}
	var out [][]float64
	for i, o := range c.Outputs {
		if len(outputs[i].Data) != oracle.Size(o.Shape) {
			return nil, fmt.Errorf("the reference returns %d elements of %s; its shape is %v", len(outputs[i].Data), o.Name, o.Shape)
		}
		if !o.FromMLX {
			out = append(out, outputs[i].Data)
		}
	}
	wrt := c.Differentiated()
	if len(grads) != len(wrt) {
		return nil, fmt.Errorf("the reference returns %d gradients; the case has %d differentiable inputs", len(grads), len(wrt))
	}
	for k, g := range grads {
		if x := c.Inputs[wrt[k]]; len(g.Data) != oracle.Size(x.Shape) {
			return nil, fmt.Errorf(
				"the reference returns %d elements of d%s; the shape of %s is %v",
				len(g.Data),
				x.Name,
				x.Name,
				x.Shape,
			)
		}
		out = append(out, g.Data)
	}
	return out, nil
}

// evaluate returns the reference's outputs and gradients.
func (c Case) evaluate(in, cotangents []oracle.Tensor) (outputs, grads []oracle.Tensor, err error) {
	wrt := c.Differentiated()
	switch {
	case c.Forward == nil:
		return c.evaluateComposed(in, cotangents)
	case len(wrt) == 0:
		return c.Forward(in), nil, nil
	case c.Gradient == nil:
		return c.Forward(in), oracle.Differences(c.Forward, in, cotangents, wrt), nil
	}
	return c.Forward(in), c.Gradient(in, cotangents), nil
}

// evaluateComposed evaluates Composed in float64 on the CPU, the only device with float64.
func (c Case) evaluateComposed(in, cotangents []oracle.Tensor) (outputs, grads []oracle.Tensor, err error) {
	f := func(args []*mlxc.Array) []*mlxc.Array {
		outs := c.Composed(args)
		for i := range outs {
			outs[i] = outs[i].AsType(mlxc.Float64)
		}
		return outs
	}
	var args, cots []*mlxc.Array
	onCPU := mlxc.WithDevice(mlxc.CPU, func() {
		mlxc.WithScope(func() {
			for i, x := range in {
				args = append(args, arrays.New(x.Data, c.Inputs[i].Kind.StoredDType(mlxc.Float64), x.Shape))
			}
			for _, u := range cotangents {
				cots = append(cots, arrays.New(u.Data, mlxc.Float64, u.Shape))
			}
			var outs, vjps []*mlxc.Array
			if outs, vjps, err = arrays.VJP(f, args, c.Differentiated(), cots); err != nil {
				return
			}
			if outputs, err = read(outs); err == nil {
				grads, err = read(vjps)
			}
		})
	})
	if onCPU != nil {
		err = onCPU
	}
	return outputs, grads, err
}

// read evaluates arrays and returns their elements.
func read(list []*mlxc.Array) ([]oracle.Tensor, error) {
	out := make([]oracle.Tensor, len(list))
	for i, a := range list {
		data, err := arrays.Float64s(a)
		if err != nil {
			return nil, err
		}
		out[i] = oracle.Tensor{Shape: a.Shape(), Data: data}
	}
	return out, nil
}

// ignoreUndefined sets the elements of gradients in results to NaN where finite differences found no gradient (NaN in
// truth), so that both sides are equal there. It leaves infinite elements unchanged, so that they fail.
func (c Case) ignoreUndefined(results, truth [][]float64) {
	if !c.byDifferences() {
		return
	}
	for k := range c.Differentiated() {
		i := len(truth) - 1 - k // gradients follow the outputs
		for j, v := range truth[i] {
			if math.IsNaN(v) && !math.IsInf(results[i][j], 0) {
				results[i][j] = math.NaN()
			}
		}
	}
}

// Every input, cotangent and result changes by a number of roundings, to model the errors of float32 arithmetic: about
// √n for a sum of n terms. The minimum covers the few dozen operations of a short computation. The maximum covers sums
// of millions of terms, which are computed in blocks.
const (
	fewestRoundings = 8
	mostRoundings   = 64
)

// rounded returns the reference's values with rounding errors of float32 arithmetic in inputs, cotangents and results.
// Each result is rounded to the dtype of its target.
func (c Case) rounded(draws []operands, targets []target) ([][]float64, error) {
	largest := 0
	for _, in := range c.Inputs {
		largest = max(largest, oracle.Size(in.Shape))
	}
	factor := arrays.Spacing(mlxc.Float32) * min(max(math.Sqrt(float64(largest)), fewestRoundings), mostRoundings)
	rng := rand.New(rand.NewPCG(1, 2)) // fixed seed: equal inputs get equal errors
	off := func(values []float64) []float64 {
		out := make([]float64, len(values))
		for j, v := range values {
			out[j] = v + math.Copysign(v*factor, rng.Float64()-0.5)
		}
		return out
	}
	perturb := func(os []operand) []oracle.Tensor {
		out := tensors(os)
		for i := range out {
			if os[i].array.DType().IsFloating() {
				out[i].Data = off(out[i].Data)
			}
		}
		return out
	}
	results, err := concatDraws(draws, func(data operands) ([][]float64, error) {
		return c.exact(perturb(data.inputs), perturb(data.cotangents))
	})
	for i, t := range targets {
		if err == nil && t.dtype.IsFloating() {
			results[i], err = arrays.Float64s(arrays.New(off(results[i]), t.dtype, []int{len(results[i])}))
		}
	}
	return results, err
}

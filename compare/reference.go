package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Reference computes the true outputs and gradients of a function. It needs Forward, or Composed alone.
type Reference struct {
	// Forward is the function in float64.
	Forward oracle.Func
	// Gradient is the gradient of Forward in float64, one for each Real input, in order. If it is nil, finite
	// differences of Forward replace it (see [oracle.Differences]): at least four calls of Forward for each element of
	// a Real input, and about ten correct digits. In an input of more than 256 elements, a random part of the elements
	// is judged. An element at a kink or jump of Forward has no gradient; ours may be any finite number there.
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
	if err := c.checkOutputs(outputs); err != nil {
		return nil, err
	}
	var out [][]float64
	for i, o := range c.Outputs {
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

// checkOutputs returns an error if outputs of the reference do not have the sizes that the case declares.
func (c Case) checkOutputs(outputs []oracle.Tensor) error {
	if len(outputs) != len(c.Outputs) {
		return fmt.Errorf("the reference returns %d outputs; the case has %d", len(outputs), len(c.Outputs))
	}
	for i, o := range c.Outputs {
		if len(outputs[i].Data) != oracle.Size(o.Shape) {
			return fmt.Errorf("the reference returns %d elements of %s; its shape is %v", len(outputs[i].Data), o.Name, o.Shape)
		}
	}
	return nil
}

// evaluate returns the reference's outputs and gradients. A panic of the reference is an error.
func (c Case) evaluate(in, cotangents []oracle.Tensor) (outputs, grads []oracle.Tensor, err error) {
	defer recoverTo(&err)
	if c.Forward == nil {
		return c.evaluateComposed(in, cotangents)
	}
	outputs = c.Forward(in)
	wrt := c.Differentiated()
	if len(wrt) == 0 {
		return outputs, nil, nil
	}
	if err := c.checkOutputs(outputs); err != nil {
		return nil, nil, err // Gradient may rely on the shapes
	}
	if c.Gradient == nil {
		return outputs, oracle.SampledDifferences(c.Forward, in, cotangents, wrt, c.sampled()), nil
	}
	return outputs, c.Gradient(in, cotangents), nil
}

// recoverTo, deferred, stores the panic of a function of the user in err, with the line that panicked.
func recoverTo(err *error) {
	p := recover()
	if p == nil {
		return
	}
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") || !more {
			*err = fmt.Errorf("panic: %v, at %s:%d", p, filepath.Base(frame.File), frame.Line)
			return
		}
	}
}

// sampled returns the number of elements of an input at which finite differences are computed. It falls with the size
// of the largest input, on which the time of each difference depends. [Run] computes all.
func (c Case) sampled() int {
	if !c.sampling {
		return math.MaxInt
	}
	const fewest, most, budget = 16, 256, 1 << 18
	return max(fewest, min(most, budget/max(1, c.largestSize())))
}

// largestSize returns the number of elements of the largest input.
func (c Case) largestSize() int {
	n := 0
	for _, in := range c.Inputs {
		n = max(n, oracle.Size(in.Shape))
	}
	return n
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

// ignoreUndefined returns results with NaN in the elements of gradients where finite differences found no gradient (NaN
// in truth), so that both sides are equal there. Infinite elements are unchanged, so that they fail. [Gradients] also
// rejects NaN there (see notFinite).
func (c Case) ignoreUndefined(results, truth [][]float64) [][]float64 {
	if !c.byDifferences() {
		return results
	}
	results = slices.Clone(results)
	for k := range c.Differentiated() {
		i := len(truth) - 1 - k // gradients follow the outputs
		results[i] = slices.Clone(results[i])
		for j, v := range truth[i] {
			if math.IsNaN(v) && !math.IsInf(results[i][j], 0) {
				results[i][j] = math.NaN()
			}
		}
	}
	return results
}

// Every input, cotangent and result changes by a number of roundings, to model the errors of float32 arithmetic: about
// √n for a sum of n terms. The minimum covers the few dozen operations of a short computation. The maximum covers sums
// of millions of terms, which are computed in blocks.
const (
	fewestRoundings = 8
	mostRoundings   = 64
)

// roundings returns the relative size of these errors.
func (c Case) roundings() float64 {
	return arrays.Spacing(mlxc.Float32) * min(max(math.Sqrt(float64(c.largestSize())), fewestRoundings), mostRoundings)
}

// roundingErrors changes values by a relative error of size factor and random sign.
type roundingErrors struct {
	factor    float64
	rng       *rand.Rand
	alternate bool // every other value gets the opposite sign
}

// newRoundingErrors returns the errors of a pattern of signs. The seed is fixed, so that equal inputs get equal errors.
// Patterns 2·n and 2·n+1 share random numbers and differ in every other sign. In one of them, neighbors have opposite
// signs: two errors cannot cancel in both.
func newRoundingErrors(factor float64, pattern int) roundingErrors {
	return roundingErrors{factor, rand.New(rand.NewPCG(1, 2+uint64(pattern/2))), pattern%2 == 1}
}

func (e roundingErrors) apply(values []float64) []float64 {
	out := make([]float64, len(values))
	for j, v := range values {
		change := math.Copysign(v*e.factor, e.rng.Float64()-0.5)
		if e.alternate && j%2 == 1 {
			change = -change
		}
		out[j] = v + change
	}
	return out
}

// perturbed returns the reference's values at inputs and cotangents with errors.
func (c Case) perturbed(draws []operands, e roundingErrors) ([][]float64, error) {
	perturb := func(os []operand) []oracle.Tensor {
		out := tensors(os)
		for i := range out {
			if os[i].array.DType().IsFloating() {
				out[i].Data = e.apply(out[i].Data)
			}
		}
		return out
	}
	return concatDraws(draws, func(data operands) ([][]float64, error) {
		return c.exact(perturb(data.inputs), perturb(data.cotangents))
	})
}

// roundResults applies errors to results and rounds each result to the dtype of its target.
func roundResults(results [][]float64, targets []target, e roundingErrors) (err error) {
	for i, t := range targets {
		if err == nil && t.dtype.IsFloating() {
			results[i], err = arrays.Float64s(arrays.New(e.apply(results[i]), t.dtype, []int{len(results[i])}))
		}
	}
	return err
}

// rounded returns the reference's values with rounding errors of float32 arithmetic in inputs, cotangents and results.
// Each result is rounded to the dtype of its target.
func (c Case) rounded(draws []operands, targets []target) ([][]float64, error) {
	e := newRoundingErrors(c.roundings(), 0)
	results, err := c.perturbed(draws, e)
	if err != nil {
		return nil, err
	}
	return results, roundResults(results, targets, e)
}

// roundedAwayFromJumps is rounded with a pattern of signs and without jumps of the reference at the inputs. It moves the
// truth by the difference of two perturbed references, one with smaller errors of the same signs, instead of the
// difference from the truth. At a kink or a tie both lie on the same side, so a jump of the gradient cancels.
func (c Case) roundedAwayFromJumps(draws []operands, targets []target, truth [][]float64, pattern int) ([][]float64, error) {
	const share = 0.25
	far, err := c.perturbed(draws, newRoundingErrors(c.roundings(), pattern))
	if err != nil {
		return nil, err
	}
	near, err := c.perturbed(draws, newRoundingErrors(share*c.roundings(), pattern))
	if err != nil {
		return nil, err
	}
	results := make([][]float64, len(truth))
	for i := range truth {
		results[i] = slices.Clone(truth[i])
		for j := range results[i] {
			if moved := (far[i][j] - near[i][j]) / (1 - share); finite(moved) {
				results[i][j] += moved
			}
		}
	}
	return results, roundResults(results, targets, newRoundingErrors(c.roundings(), pattern))
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

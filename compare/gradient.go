package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare/internal/accuracy"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// target is a result that is judged: an output that a kernel of ours computes, or a gradient.
type target struct {
	name  string
	shape []int
	at    int  // Its position among the outputs or the inputs.
	grad  bool // Whether it is the gradient of an input.
}

// targets lists what of a case is judged: own outputs, then gradients, named "d" and their input.
func (c Case) targets() []target {
	var ts []target
	for i, out := range c.Outputs {
		if out.Own {
			ts = append(ts, target{name: out.Name, shape: out.Shape, at: i})
		}
	}
	for i, in := range c.Inputs {
		if in.Kind == Real {
			ts = append(ts, target{name: "d" + in.Name, shape: in.Shape, at: i, grad: true})
		}
	}
	return ts
}

func (in Input) layout() Layout {
	if in.Layout == "" {
		return Contiguous
	}
	return in.Layout
}

// truth returns the oracle's value of each target, over all draws.
func (c Case) truth(draws []operands) [][]float64 {
	out, _ := overDraws(draws, func(data operands) ([][]float64, error) { return c.exact(data), nil })
	return out
}

// exact returns the oracle's value of each target for one draw.
func (c Case) exact(data operands) [][]float64 {
	in := tensors(data.inputs)
	grads := c.Gradient(in, tensors(data.cotangents))
	var out [][]float64
	for _, t := range c.targets() {
		if t.grad {
			out = append(out, grads[0].Data)
			grads = grads[1:]
		} else {
			out = append(out, c.Forward(in)[t.at].Data)
		}
	}
	return out
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
	in := arrays(data.inputs)
	var wrt []int // Positions of the inputs that are differentiated.
	for i := range c.Inputs {
		if c.Inputs[i].Kind == Real {
			wrt = append(wrt, i)
		}
	}
	primals := make([]*mlxc.Array, len(wrt))
	for k, i := range wrt {
		primals[k] = in[i]
	}
	outputs, vjps, err := mlxc.VJP(func(primals []*mlxc.Array) []*mlxc.Array {
		args := slices.Clone(in)
		for k, i := range wrt {
			args[i] = primals[k]
		}
		return f(args)
	}, primals, arrays(data.cotangents))
	if err != nil {
		return nil, err
	}
	if len(outputs) != len(c.Outputs) || len(vjps) != len(wrt) {
		return nil, fmt.Errorf("%d outputs and %d gradients, want %d and %d", len(outputs), len(vjps), len(c.Outputs), len(wrt))
	}

	var results [][]float64
	for _, t := range c.targets() {
		var result *mlxc.Array
		if t.grad {
			result = vjps[slices.Index(wrt, t.at)]
		} else {
			result = outputs[t.at]
		}
		if err := result.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		if !slices.Equal(result.Shape(), t.shape) || result.DType() != dtype {
			return nil, fmt.Errorf("%s is %v%v, want %v%v", t.name, result.DType(), result.Shape(), dtype, t.shape)
		}
		values, err := toFloat64(result)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		results = append(results, values)
	}
	return results, nil
}

// poison frees arrays of NaN of the size of each target, so that the allocator is likely to hand that
// memory out for the results. It cannot be sure to; the checker's poisoned buffers are.
func poison(targets []target, dtype mlxc.DType) {
	for _, t := range targets {
		values := make([]float64, oracle.Size(t.shape))
		for i := range values {
			values[i] = math.NaN()
		}
		a := toArray(values, dtype, t.shape)
		_ = mlxc.Eval(a) // An error will come again, where it is reported.
		a.Free()
	}
}

// peer is what MLX's own gradient gives for one target.
type peer struct {
	errors accuracy.Errors // In the dtype under test; NaN if there is no result.
	// yardstick is what ours is judged by: errors, unless they mean that MLX's gradient fails.
	yardstick accuracy.Errors
	message   string // What is wrong with MLX's gradient, or "".
}

// peersOf measures MLX's gradient of a case, a peer for each target.
//
// In f16 and bf16 MLX's own gradient may overflow or cancel to nothing where arithmetic in f32 does
// not. Its errors are no measure then: infinite ones would allow ours everything. So where it fails,
// MLX's gradient in float32 of the same, already rounded, inputs takes its place.
func peersOf(c Case, draws []operands, dtype mlxc.DType, truth [][]float64) []peer {
	peers := measurePeers(c, draws, dtype, truth)
	failing := func(p peer) bool { return p.message != "" }
	if dtype == mlxc.Float32 || !slices.ContainsFunc(peers, failing) {
		return peers
	}
	wide := measurePeers(c, widened(draws), mlxc.Float32, truth)
	for i := range peers {
		if failing(peers[i]) && !failing(wide[i]) {
			peers[i].yardstick = wide[i].errors
			peers[i].message += "; ours is judged by MLX's gradient in float32"
		}
	}
	return peers
}

func measurePeers(c Case, draws []operands, dtype mlxc.DType, truth [][]float64) []peer {
	peers := make([]peer, len(truth))
	results, err := gradients(c.MLX, c, draws, dtype)
	for i := range peers {
		p := &peers[i]
		if err != nil {
			p.errors = accuracy.Errors{Max: math.NaN(), Mean: math.NaN()}
			p.message = err.Error()
			continue
		}
		p.errors = accuracy.Measure(results[i], truth[i])
		p.yardstick = p.errors
		switch {
		case p.errors.Misplaced > 0:
			p.message = fmt.Sprintf("NaN or infinity out of place in %d of %d elements", p.errors.Misplaced, len(truth[i]))
		case dtype != mlxc.Float32 && accuracy.NoBetterThanZero(p.errors, truth[i]):
			p.message = "no better than zeros"
		}
	}
	return peers
}

// widened returns the draws with every floating-point array in float32, which changes no value.
func widened(draws []operands) []operands {
	widen := func(os []operand) []operand {
		out := slices.Clone(os)
		for i := range out {
			if out[i].array.DType().IsFloating() {
				out[i].array = out[i].array.AsType(mlxc.Float32)
			}
		}
		return out
	}
	out := make([]operands, len(draws))
	for i, data := range draws {
		out[i] = operands{inputs: widen(data.inputs), cotangents: widen(data.cotangents)}
	}
	return out
}

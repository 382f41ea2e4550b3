package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// target is a judged result: an output without FromMLX, or a gradient.
type target struct {
	name  string
	shape []int
	dtype mlxc.DType
	at    int  // position among the outputs or the inputs
	grad  bool // it is the gradient of an input
}

// targets lists the judged results of a case tested in a dtype: outputs, then gradients. The name of a gradient is "d"
// and the name of its input.
func (c Case) targets(tested mlxc.DType) []target {
	var ts []target
	for i, out := range c.Outputs {
		if !out.FromMLX {
			ts = append(ts, target{name: out.Name, shape: out.Shape, dtype: out.StoredDType(tested), at: i})
		}
	}
	for _, i := range c.Differentiated() {
		in := c.Inputs[i]
		ts = append(ts, target{name: "d" + in.Name, shape: in.Shape, dtype: tested, at: i, grad: true})
	}
	return ts
}

// Differentiated returns the positions of the inputs that have a gradient.
func (c Case) Differentiated() []int {
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

// gradients computes the targets of a case from every draw, by differentiating f.
func gradients(f mlxc.Func, c Case, draws []operands, dtype mlxc.DType) ([][]float64, error) {
	return concatDraws(draws, func(data operands) (results [][]float64, err error) {
		defer recoverTo(&err) // without a differentiated input, f is called directly
		// A case may have many draws and repetitions. Each frees its arrays.
		mlxc.WithScope(func() { results, err = differentiate(f, c, data, dtype) })
		return results, err
	})
}

// differentiate computes the targets of a case from one draw. It fails if a result has another shape or dtype than the
// case declares.
func differentiate(f mlxc.Func, c Case, data operands, dtype mlxc.DType) ([][]float64, error) {
	wrt := c.Differentiated()
	outputs, vjps, err := arrays.VJP(f, arraysOf(data.inputs), wrt, arraysOf(data.cotangents))
	if err != nil {
		return nil, err
	}
	if len(outputs) != len(c.Outputs) || len(vjps) != len(wrt) {
		return nil, fmt.Errorf("the function returns %d outputs and %d gradients; the case has %d and %d",
			len(outputs), len(vjps), len(c.Outputs), len(wrt))
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
		values, err := arrays.Float64s(result)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		results = append(results, values)
	}
	return results, nil
}

// poison allocates and frees arrays of NaN with the size of each target. The allocator probably reuses that memory for
// the results, so that an unwritten element is NaN. This is not certain; mlxgrad sanitize detects unwritten elements
// reliably.
func poison(targets []target) {
	for _, t := range targets {
		values := make([]float64, oracle.Size(t.shape))
		for i := range values {
			values[i] = math.NaN()
		}
		a := arrays.New(values, t.dtype, t.shape)
		_ = mlxc.Eval(a) // the same error comes again in the run and is reported there
		a.Free()
	}
}

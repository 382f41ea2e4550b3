package compare

import (
	"hash/fnv"
	"math/rand/v2"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// operand is one input or cotangent, as MLX and as the oracle see it.
type operand struct {
	array *mlxc.Array
	exact oracle.Tensor // The elements of array.
}

// operands are all that a case is computed from in one dtype.
type operands struct {
	inputs, cotangents []operand
}

// rngFor returns the random numbers of a case. They depend on its name alone, so that filters, the
// order and the number of cases, and the dtype do not change what a case computes.
func rngFor(op, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(op + "/" + name)) // Never fails.
	return rand.New(rand.NewPCG(h.Sum64(), 0))
}

// A verdict rests on enough elements of each floating-point target and on enough rows of the first
// input, whose elements may share the rounding of one sum. The rule compares the errors of two
// implementations; over a few, rounding alone makes either of them exact, and the other fail, by luck.
const (
	enough     = 64
	enoughRows = 8
)

// drawsFor makes the operands of a case: one draw of random numbers, or as many as it takes to have
// enough of them.
func drawsFor(op string, c Case, dtype mlxc.DType) ([]operands, error) {
	n := 1
	if shape := c.Inputs[0].Shape; oracle.Size(shape) > 0 {
		width := shape[max(0, len(shape)-1):]
		n = max(n, enoughRows*oracle.Size(width)/oracle.Size(shape))
	}
	for _, t := range c.targets(dtype) {
		if size := oracle.Size(t.shape); size > 0 && t.dtype.IsFloating() {
			n = max(n, (enough+size-1)/size)
		}
	}
	rng := rngFor(op, c.Name)
	draws := make([]operands, n)
	for i := range draws {
		var err error
		if draws[i], err = drawOperands(rng, c, dtype); err != nil {
			return nil, err
		}
	}
	return draws, nil
}

// overDraws computes the targets from each draw, and joins what it gets for each target.
func overDraws(draws []operands, compute func(operands) ([][]float64, error)) ([][]float64, error) {
	var joined [][]float64
	for _, data := range draws {
		results, err := compute(data)
		if err != nil {
			return nil, err
		}
		if joined == nil {
			joined = make([][]float64, len(results))
		}
		for i, values := range results {
			joined[i] = append(joined[i], values...)
		}
	}
	return joined, nil
}

// drawOperands makes the inputs and cotangents of a case.
func drawOperands(rng *rand.Rand, c Case, dtype mlxc.DType) (operands, error) {
	var all operands
	for _, in := range c.Inputs {
		values := in.Values
		if values == nil {
			values = Normal(1)
		}
		o, err := newOperand(values(rng, in.Shape), in.Kind.dtype(dtype), in.Shape, in.Layout)
		if err != nil {
			return operands{}, err
		}
		all.inputs = append(all.inputs, o)
	}
	if len(c.differentiated()) == 0 {
		return all, nil // And without cotangents.
	}
	for _, out := range c.Outputs {
		values := out.Values
		if values == nil {
			values = EitherSign
		}
		o, err := newOperand(values(rng, out.Shape), out.dtype(dtype), out.Shape, out.Layout)
		if err != nil {
			return operands{}, err
		}
		all.cotangents = append(all.cotangents, o)
	}
	return all, nil
}

// newOperand lays values out in memory. What the oracle gets is read back from the stored buffer.
func newOperand(values []float64, dtype mlxc.DType, shape []int, layout Layout) (operand, error) {
	p := place(layout, shape)
	buffer := toArray(p.fill(values, shape), dtype, p.bufferShape())
	stored, err := toFloat64(buffer)
	if err != nil {
		return operand{}, err
	}
	array := p.view(buffer, shape)
	// Evaluated here, so that what is differentiated starts from a view in memory.
	if err := mlxc.Eval(array); err != nil {
		return operand{}, err
	}
	return operand{array: array, exact: oracle.Tensor{Shape: shape, Data: p.read(stored, shape)}}, nil
}

// view takes the array out of the buffer.
func (p placement) view(buffer *mlxc.Array, shape []int) *mlxc.Array {
	start, stop, step := make([]int, len(shape)), make([]int, len(shape)), make([]int, len(shape))
	for i, a := range p.axes {
		start[i], step[i] = a.start, a.step
		switch {
		case a.step < 0:
			// One before the first element; counted from the end, −1 would be the last.
			stop[i] = -a.size - 1
		case a.step == 0:
			stop[i], step[i] = 1, 1
		default:
			stop[i] = max(a.start, a.start+(shape[i]-1)*a.step+1)
		}
	}
	p.swap(start)
	p.swap(stop)
	p.swap(step)
	out := buffer.Slice(start, stop, step)
	if p.swapped != nil {
		order := make([]int, len(shape))
		for i := range order {
			order[i] = i
		}
		p.swap(order)
		out = out.Transpose(order...)
	}
	return out.BroadcastTo(shape...)
}

// dtype is how elements of this kind are stored in a test of the dtype tested.
func (k Kind) dtype(tested mlxc.DType) mlxc.DType {
	switch k {
	case Index:
		return mlxc.Uint32
	case SignedIndex:
		return mlxc.Int32
	case Mask:
		return mlxc.Bool
	default:
		return tested
	}
}

// dtype is that of the output in a test of the dtype tested.
func (out Output) dtype(tested mlxc.DType) mlxc.DType {
	if out.DType == mlxc.Invalid {
		return tested
	}
	return out.DType
}

// arrays are the operands as MLX sees them.
func arrays(os []operand) []*mlxc.Array {
	out := make([]*mlxc.Array, len(os))
	for i, o := range os {
		out[i] = o.array
	}
	return out
}

// tensors are the operands as the oracle sees them.
func tensors(os []operand) []oracle.Tensor {
	out := make([]oracle.Tensor, len(os))
	for i, o := range os {
		out[i] = o.exact
	}
	return out
}

package compare

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// operand is one input or cotangent, for MLX and for the oracle.
type operand struct {
	array *mlxc.Array
	exact oracle.Tensor // the elements of array
}

// operands are the inputs and cotangents of a case in one dtype.
type operands struct {
	inputs, cotangents []operand
}

// RNG returns the random number generator of a case. It depends on the names alone: neither filters, nor the order and
// number of cases, nor the dtype change the values of a case.
func RNG(op, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(op + "/" + name)) // never fails
	return rand.New(rand.NewPCG(h.Sum64(), 0))
}

// A verdict rests on at least minElements elements of each floating-point target and minRows rows of the first input
// (elements of a row may share the rounding of one sum). Over few elements MLX's gradient may be exact by chance, and a
// correct gradient of ours could fail.
const (
	minElements = 64
	minRows     = 8
)

// makeDraws makes the operands of a case: one draw of random numbers, or as many as minElements and minRows require.
func makeDraws(op string, c Case, dtype mlxc.DType) ([]operands, error) {
	n := 1
	if shape := c.Inputs[0].Shape; oracle.Size(shape) > 0 {
		width := shape[max(0, len(shape)-1):]
		n = max(n, minRows*oracle.Size(width)/oracle.Size(shape))
	}
	for _, t := range c.targets(dtype) {
		if size := oracle.Size(t.shape); size > 0 && t.dtype.IsFloating() {
			n = max(n, (minElements+size-1)/size)
		}
	}
	rng := RNG(op, c.Name)
	draws := make([]operands, n)
	for i := range draws {
		var err error
		if draws[i], err = drawOperands(rng, c, dtype); err != nil {
			return nil, err
		}
	}
	return draws, nil
}

// concatDraws computes the targets of each draw and concatenates them by target.
func concatDraws(draws []operands, compute func(operands) ([][]float64, error)) ([][]float64, error) {
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

// drawOperands makes the inputs and cotangents of a case. A panic of Values is an error.
func drawOperands(rng *rand.Rand, c Case, dtype mlxc.DType) (all operands, err error) {
	defer recoverTo(&err)
	for _, in := range c.Inputs {
		values := in.Values
		if values == nil {
			values = Normal(1)
		}
		o, err := newOperand(values(rng, in.Shape), in.Kind.StoredDType(dtype), in.Shape, in.Layout)
		if err != nil {
			return operands{}, err
		}
		all.inputs = append(all.inputs, o)
	}
	if len(c.Differentiated()) == 0 {
		return all, nil // without cotangents
	}
	for _, out := range c.Outputs {
		values := out.Values
		if values == nil {
			values = EitherSign
		}
		o, err := newOperand(values(rng, out.Shape), out.StoredDType(dtype), out.Shape, out.Layout)
		if err != nil {
			return operands{}, err
		}
		all.cotangents = append(all.cotangents, o)
	}
	return all, nil
}

// newOperand stores values with a layout. It reads the oracle's values back from the stored buffer, so both sides start
// from the same rounded numbers.
func newOperand(values []float64, dtype mlxc.DType, shape []int, layout Layout) (operand, error) {
	if err := layout.check(len(shape)); err != nil {
		return operand{}, err
	}
	if len(values) != oracle.Size(shape) {
		return operand{}, fmt.Errorf("Values returns %d elements for the shape %v", len(values), shape)
	}
	p := place(layout, shape)
	buffer := arrays.New(p.fill(values, shape), dtype, p.bufferShape())
	stored, err := arrays.Float64s(buffer)
	if err != nil {
		return operand{}, err
	}
	array := p.view(buffer, shape)
	// The evaluated view, not the operations that made it, is the input of the differentiated function.
	if err := mlxc.Eval(array); err != nil {
		return operand{}, err
	}
	return operand{array: array, exact: oracle.Tensor{Shape: shape, Data: p.read(stored, shape)}}, nil
}

// view returns the array as a view of the buffer.
func (p placement) view(buffer *mlxc.Array, shape []int) *mlxc.Array {
	start, stop, step := make([]int, len(shape)), make([]int, len(shape)), make([]int, len(shape))
	for i, a := range p.axes {
		start[i], step[i] = a.start, a.step
		switch {
		case a.step < 0:
			// The stop is one before element 0. A stop of −1 would mean the last element.
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

// StoredDType returns the dtype of inputs of this kind: uint32 for Index, int32 for SignedIndex, bool for Mask, and
// tested, the dtype under test, for Real and Constant.
func (k Kind) StoredDType(tested mlxc.DType) mlxc.DType {
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

// StoredDType returns the dtype of the output: its DType if that is set, otherwise tested, the dtype under test.
func (out Output) StoredDType(tested mlxc.DType) mlxc.DType {
	if out.DType == mlxc.Invalid {
		return tested
	}
	return out.DType
}

// arraysOf returns the MLX arrays of operands.
func arraysOf(os []operand) []*mlxc.Array {
	out := make([]*mlxc.Array, len(os))
	for i, o := range os {
		out[i] = o.array
	}
	return out
}

// tensors returns the oracle's tensors of operands.
func tensors(os []operand) []oracle.Tensor {
	out := make([]oracle.Tensor, len(os))
	for i, o := range os {
		out[i] = o.exact
	}
	return out
}

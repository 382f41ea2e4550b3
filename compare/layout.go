package compare

import (
	"math"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
)

// Layout is how the elements of an array lie in memory.
type Layout string

// The layouts that an array can get from views of another. All but Contiguous leave parts of that
// other array out, or read it in another order; what is left out is NaN, so that a kernel that
// ignores strides or offsets cannot pass by luck.
const (
	Contiguous  Layout = "contiguous"
	Transposed  Layout = "transposed"  // The last two axes are swapped. Needs two axes.
	Interleaved Layout = "interleaved" // The two axes before the last are swapped: heads side by side in rows. Needs three axes.
	Strided     Layout = "strided"     // Every second element of the last axis of a wider array.
	Sliced      Layout = "sliced"      // Columns from the middle of wider rows.
	Offset      Layout = "offset"      // Dense, but not from the start of its buffer.
	Reversed    Layout = "reversed"    // The last axis runs backwards.
	Broadcast   Layout = "broadcast"   // One slab of the first axis stands for all.
)

// axis is how one axis of an array walks through the buffer's: index i lies at start + i·step. A step
// of 0 repeats one element of an axis that is 1 long.
type axis struct{ start, step, size int }

// placement is how an array lies in the dense buffer that it is a view of.
type placement struct {
	axes    []axis  // For each axis of the array.
	swapped *[2]int // The axes that the buffer has in each other's place, if there are any.
}

func place(l Layout, shape []int) placement {
	p := placement{axes: make([]axis, len(shape))}
	for i, n := range shape {
		p.axes[i] = axis{start: 0, step: 1, size: n}
	}
	if len(shape) == 0 {
		return p
	}
	first, last := &p.axes[0], &p.axes[len(shape)-1]
	switch l {
	case Contiguous, "":
	case Transposed:
		p.swapped = &[2]int{len(shape) - 2, len(shape) - 1}
	case Interleaved:
		p.swapped = &[2]int{len(shape) - 3, len(shape) - 2}
	case Strided:
		last.step, last.size = 2, 2*last.size
	case Sliced:
		last.start, last.size = 3, last.size+5
	case Offset:
		first.start, first.size = 1, first.size+1
	case Reversed:
		last.start, last.step = last.size-1, -1
	case Broadcast:
		first.step, first.size = 0, 1
	default:
		panic("compare: unknown layout " + string(l))
	}
	return p
}

// bufferShape is the shape of the dense buffer.
func (p placement) bufferShape() []int {
	shape := make([]int, len(p.axes))
	for i, a := range p.axes {
		shape[i] = a.size
	}
	p.swap(shape)
	return shape
}

// swap exchanges the entries of a list with one for each axis, as the buffer's axes are.
func (p placement) swap(list []int) {
	if s := p.swapped; s != nil {
		list[s[0]], list[s[1]] = list[s[1]], list[s[0]]
	}
}

// fill returns the buffer with the array's elements in place and NaN elsewhere.
func (p placement) fill(values []float64, shape []int) []float64 {
	buffer := make([]float64, oracle.Size(p.bufferShape()))
	for i := range buffer {
		buffer[i] = math.NaN()
	}
	for i, at := range p.positions(shape) {
		buffer[at] = values[i]
	}
	return buffer
}

// read returns the array's elements from a buffer. After fill with a repeated axis they are not the
// values that it was given.
func (p placement) read(buffer []float64, shape []int) []float64 {
	out := make([]float64, oracle.Size(shape))
	for i, at := range p.positions(shape) {
		out[i] = buffer[at]
	}
	return out
}

// positions lists where the array's elements, in row-major order, lie in the buffer.
func (p placement) positions(shape []int) []int {
	strides := make([]int, len(shape)) // Of the buffer's axes, then of the array's.
	stride := 1
	for i, sizes := len(shape)-1, p.bufferShape(); i >= 0; i-- {
		strides[i] = stride
		stride *= sizes[i]
	}
	p.swap(strides)

	positions := []int{0}
	for i, n := range shape {
		next := make([]int, 0, len(positions)*n)
		for _, base := range positions {
			for j := range n {
				next = append(next, base+(p.axes[i].start+j*p.axes[i].step)*strides[i])
			}
		}
		positions = next
	}
	return positions
}

package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
)

// Layout is the arrangement of an array's elements in memory.
type Layout string

// The layouts. All but Contiguous are views of a larger or reordered buffer. Buffer elements outside the view are NaN,
// so that a kernel that ignores strides or offsets fails.
const (
	Contiguous  Layout = "contiguous"
	Transposed  Layout = "transposed"  // the last two axes are swapped; at least two axes
	Interleaved Layout = "interleaved" // axes -3 and -2 are swapped, as for attention heads; at least three axes
	Strided     Layout = "strided"     // every second element of the last axis of a wider array
	Sliced      Layout = "sliced"      // columns from the middle of wider rows
	Offset      Layout = "offset"      // dense, but not at the start of the buffer
	Reversed    Layout = "reversed"    // the last axis is reversed
	Broadcast   Layout = "broadcast"   // one slab of the first axis is repeated
)

// layouts lists every layout, Contiguous first.
func layouts() []Layout {
	return []Layout{Contiguous, Transposed, Interleaved, Strided, Sliced, Offset, Reversed, Broadcast}
}

// leastAxes returns the number of axes that an array with layout l must have.
func (l Layout) leastAxes() int {
	switch l {
	case Contiguous, "":
		return 0
	case Transposed:
		return 2
	case Interleaved:
		return 3
	}
	return 1
}

// check returns an error if an array with a number of axes cannot have layout l.
func (l Layout) check(axes int) error {
	if l != "" && !slices.Contains(layouts(), l) {
		return fmt.Errorf("there is no layout %q; the layouts are %v", string(l), layouts())
	}
	// Without axes, the layouts that need one are contiguous.
	if least := l.leastAxes(); least > 1 && axes < least {
		return fmt.Errorf("the layout %s needs at least %d axes; the array has %d", l, least, axes)
	}
	return nil
}

// axis maps an axis of an array to an axis of the buffer: index i is at start + i·step. With a step of 0 the buffer
// axis has size 1 and its element is repeated.
type axis struct{ start, step, size int }

// placement is the position of an array in a dense buffer.
type placement struct {
	axes    []axis  // one for each axis of the array
	swapped *[2]int // the pair of axes that the buffer exchanges, or nil
}

// place returns the position of an array with layout l. The array must have the axes that l needs (see
// [Layout.within]).
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

// bufferShape returns the shape of the buffer.
func (p placement) bufferShape() []int {
	shape := make([]int, len(p.axes))
	for i, a := range p.axes {
		shape[i] = a.size
	}
	p.swap(shape)
	return shape
}

// swap exchanges the entries of the swapped axes in a list with one entry for each axis.
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

// read returns the array's elements from a buffer. With a repeated axis they differ from the values given to fill.
func (p placement) read(buffer []float64, shape []int) []float64 {
	out := make([]float64, oracle.Size(shape))
	for i, at := range p.positions(shape) {
		out[i] = buffer[at]
	}
	return out
}

// positions returns the buffer positions of the array's elements in row-major order.
func (p placement) positions(shape []int) []int {
	strides := make([]int, len(shape)) // of the buffer's axes; after swap, in the order of the array's axes
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

package mlxc

import (
	"errors"
	"fmt"
	"slices"
)

// Products of matrices, vectors and tensors. Those that MLX computes as matrix products,
// which are all but Outer, Kron and VecDot, take floating-point and complex operands, which
// are promoted to a common dtype; integers are an error: convert with AsType first.

// MatMul returns the matrix product over the last two axes; the others are
// broadcast. A vector counts as a row on the left and as a column on the right.
// A sum over no elements is 0.
func (a *Array) MatMul(b *Array) *Array {
	return mlxMatmul(a, b)
}

// AddMM returns alpha·x·y + beta·a. a is broadcast to the product's shape.
func (a *Array) AddMM(x, y *Array, alpha, beta float32) *Array {
	if alpha == 1 && beta == 1 || !a.IsTraced() && !x.IsTraced() && !y.IsTraced() {
		return mlxAddmm(a, x, y, alpha, beta)
	}
	// MLX's rule for JVP leaves the factors out.
	checked := mlxAddmm(a, x, y, alpha, beta)
	defer checked.Free()
	if checked.Err() != nil {
		return invalid(checked.Err())
	}
	var sum *Array
	WithScope(func() {
		sum = x.MatMul(y).MulScalar(float64(alpha)).Add(a.MulScalar(float64(beta))).AsType(checked.DType()).Keep()
	})
	return sum
}

// Inner returns the sums of the products over the last axes of both, which have one size:
// shapes (I,K) and (J,K) give (I,J). A scalar multiplies.
func (a *Array) Inner(b *Array) *Array { return mlxInner(a, b) }

// Outer returns the product of every element of a with every element of b, in row-major
// order: sizes m and n give the shape (m,n), whatever the shapes.
func (a *Array) Outer(b *Array) *Array { return mlxOuter(a, b) }

// Kron returns the Kronecker product: every element of a times the whole of b, in a's
// arrangement. Along every axis it is as long as both together multiply to; axes of size 1
// are put in front of the one that has fewer.
func (a *Array) Kron(b *Array) *Array { return mlxKron(a, b) }

// VecDot returns the sums of the products along the axis, those of a complex a conjugated:
// Σ ā·b. Both have one size there; the other axes are broadcast. The axis is one of the
// operand that has more of them.
func (a *Array) VecDot(b *Array, axis int) *Array {
	// MLX looks for the axis in each operand by itself.
	n := max(a.NDim(), b.NDim())
	front := func(x *Array) *Array {
		axes := make([]int, n-x.NDim())
		for i := range axes {
			axes[i] = i
		}
		return x.ExpandDims(axes...)
	}
	switch {
	case a.Err() != nil || b.Err() != nil || a.NDim() == b.NDim():
		return mlxVecdot(a, b, axis)
	case a.NDim() < n:
		a = front(a)
		defer a.Free()
	default:
		b = front(b)
		defer b.Free()
	}
	return mlxVecdot(a, b, axis)
}

// TensorDot returns the sums of the products over pairs of axes of a and b, of one size
// each. The result has a's other axes and then b's; without axes it is the product of
// every element of a with every element of b.
func (a *Array) TensorDot(b *Array, axesA, axesB []int) *Array {
	const op = "tensordot"
	for i, side := range []struct {
		a    *Array
		axes []int
	}{{a, axesA}, {b, axesB}} {
		if side.a.Err() != nil {
			continue
		}
		var seen []int
		for _, x := range side.axes {
			k, err := side.a.axis(x)
			if err == nil && slices.Contains(seen, k) {
				err = fmt.Errorf("axis %d of operand %d is there twice", x, i+1)
			}
			if err != nil {
				return invalid(opError(op, err, a, b))
			}
			seen = append(seen, k)
		}
	}
	return mlxTensordot(a, b, axesA, axesB)
}

// Einsum returns the sums of products that the subscripts tell of, as in Einstein's
// notation: "ij,jk->ik" is the matrix product, "ii->i" the diagonal, "...ij->...ji" a
// transposition. Letters that do not stand right of the arrow are summed over; without an
// arrow those are kept that stand once, in alphabetical order.
func Einsum(subscripts string, operands ...*Array) *Array {
	return mlxEinsum(subscripts, operands)
}

// HadamardTransform multiplies along the last axis with the Hadamard matrix of its size
// and with scale, 0 standing for 1/√size, which makes it orthonormal. The size is m·2ᵏ
// for m of 1, 12, 20 and 28; the dtype is float16, bfloat16 or float32, integers count as
// float32.
func (a *Array) HadamardTransform(scale float32) *Array {
	const op = "hadamard_transform"
	if a.Err() == nil {
		switch {
		case a.DType() == Float64 || a.DType() == Complex64:
			return invalid(opError(op, errors.New("the dtype must be float16, bfloat16 or float32: convert with AsType"), a))
		case !hadamardSize(a.Dim(-1)):
			return invalid(opError(op, fmt.Errorf("the size %d of the last axis is not m·2ᵏ with m of 1, 12, 20 or 28", a.Dim(-1)), a))
		}
	}
	if scale == 0 {
		return mlxHadamardTransform(a, nil)
	}
	return mlxHadamardTransform(a, &scale)
}

// hadamardSize says whether MLX knows the matrix of this size.
func hadamardSize(n int) bool {
	odd, twos := n, 0
	for odd > 0 && odd%2 == 0 {
		odd, twos = odd/2, twos+1
	}
	return odd == 1 || twos >= 2 && (odd == 3 || odd == 5 || odd == 7)
}

// MatMulIDs say which matrices of two batches are multiplied: for each position of both,
// which are broadcast to each other, matrix Left of the first batch with matrix Right of
// the second. They are integers that count the matrices in row-major order; nil stands for
// all of them in this order. Ids below 0 are out of range; ids out of range are treated as in
// Take.
type MatMulIDs struct {
	Left, Right *Array
	Sorted      bool // says that the ids ascend, which MLX can make use of
}

// limit gives the ids as MLX may use them.
func (ids MatMulIDs) limit(a, b *Array) (limited MatMulIDs, free func(), err error) {
	sides := []struct{ batch, ids *Array }{{a, ids.Left}, {b, ids.Right}}
	counts := make([]int, len(sides))
	for i, side := range sides {
		if side.batch.Err() != nil {
			continue
		}
		counts[i] = 1
		if shape := side.batch.Shape(); len(shape) > 2 {
			for _, n := range shape[:len(shape)-2] {
				counts[i] *= n
			}
		}
		if counts[i] == 0 && side.ids.Size() > 0 {
			return ids, nil, errors.New("there are no matrices that the ids could mean")
		}
	}
	limited = ids
	// MLX's gradients of sorted ids hold only where the matrices of the first batch are taken one
	// after the other; of others they are wrong, and read memory that is not the operands'.
	limited.Sorted = ids.Sorted && ids.Left == nil && ids.Right.NDim() == 1 && a.NDim() == 3 && a.Dim(0) == ids.Right.Dim(0)
	frees := [2]func(){func() {}, func() {}}
	for i, x := range []**Array{&limited.Left, &limited.Right} {
		if *x == nil {
			continue
		}
		if *x, frees[i], err = limitIDs(*x, 0, counts[i]-1); err != nil {
			frees[0]()
			return ids, nil, err
		}
	}
	return limited, func() { frees[0](); frees[1]() }, nil
}

// GatherMM multiplies chosen matrices of two batches, of shapes (…,M,K) and (…,K,N): the
// result has the shape of the ids, broadcast to each other, and then (M,N). On a CPU it is
// float32. Its gradient is MLX's own.
func (a *Array) GatherMM(b *Array, ids MatMulIDs) *Array {
	ids, free, err := ids.limit(a, b)
	if err != nil {
		return invalid(opError("gather_mm", err, a, b, ids.Left, ids.Right))
	}
	defer free()
	return mlxGatherMm(a, b, ids.Left, ids.Right, ids.Sorted).float32OnCPU("gather_mm", a, b)
}

// float32OnCPU is for products that MLX computes in float32 alone where there is no GPU,
// and says so only when it computes.
func (a *Array) float32OnCPU(op string, operands ...*Array) *Array {
	if a.Err() != nil || a.DType() == Float32 || CurrentDevice() != CPU {
		return a
	}
	defer a.Free()
	return invalid(opError(op, errors.New("on a CPU, MLX computes this for float32 only: convert with AsType"), operands...))
}

// SegmentedMM multiplies pieces of two matrices, of shapes (M,K) and (K,N): for every pair
// start, stop in the last axis of segments, of shape (…,2) and an integer dtype, the
// columns start … stop−1 of a with these rows of b. The result has the shape (…,M,N); it is 0
// where stop is not above start. Positions are in 0 … K; those out of range are treated as ids
// in Take.
func (a *Array) SegmentedMM(b, segments *Array) *Array {
	const op = "segmented_mm"
	last := -1
	if a.Err() == nil && b.Err() == nil {
		var err error
		switch {
		case a.NDim() != 2 || b.NDim() != 2:
			err = errors.New("it multiplies two matrices, not batches of them")
		case a.Dim(1) != b.Dim(0):
			err = fmt.Errorf("the matrices have %d columns and %d rows", a.Dim(1), b.Dim(0))
		}
		if err != nil {
			return invalid(opError(op, err, a, b, segments))
		}
		last = a.Dim(1)
	}
	limited, free, err := limitIDs(segments, 0, last)
	if err != nil {
		return invalid(opError(op, err, a, b, segments))
	}
	defer free()
	r := mlxSegmentedMm(a, b, limited)
	if r.Err() == nil && (a.Size() == 0 || b.Size() == 0) { // MLX divides by their sizes
		defer r.Free()
		return Zeros(r.DType(), r.Shape()...)
	}
	if d := r.DType(); (d == Float16 || d == BFloat16) && CurrentDevice() == CPU {
		// MLX takes the length of a segment for the row stride of halves.
		r.Free()
		WithScope(func() {
			r = mlxSegmentedMm(a.AsType(Float32), b.AsType(Float32), limited).AsType(d).Keep()
		})
	}
	return r
}

// BlockMasks say which blocks take part in a matrix product: the operands and the result
// are cut into squares of Size. Each mask, nil for none, has one element for every block,
// that of the result (…,⌈M/Size⌉,⌈N/Size⌉), those of the operands accordingly: a boolean
// that keeps the block or makes it 0, or a factor.
type BlockMasks struct {
	Size             int // 32 or 64; 0 stands for 64
	Out, Left, Right *Array
}

// BlockMaskedMM returns the matrix product of a and b with blocks masked. On a CPU it is
// float32.
func (a *Array) BlockMaskedMM(b *Array, masks BlockMasks) *Array {
	if masks.Size == 0 {
		masks.Size = 64
	}
	if out := masks.Out; out.DType().IsFloating() {
		// MLX's gradient of its factors is wrong.
		masks.Out = nil
		product := a.BlockMaskedMM(b, masks)
		defer product.Free()
		return product.mulBlocks(out, masks.Size)
	}
	return mlxBlockMaskedMm(a, b, masks.Size, masks.Out, masks.Left, masks.Right).zerosIfEmpty().float32OnCPU("block_masked_mm", a, b)
}

// mulBlocks multiplies blocks of the last two axes, squares of a size, by a factor each.
func (a *Array) mulBlocks(factors *Array, size int) (result *Array) {
	const op = "block_masked_mm"
	if err := a.Err(); err != nil {
		return invalid(err)
	}
	rows, columns := a.Dim(-2), a.Dim(-1)
	if n := factors.NDim(); n < 2 || factors.Dim(-2) != (rows+size-1)/size || factors.Dim(-1) != (columns+size-1)/size {
		return invalid(opError(op, fmt.Errorf("the mask of the result must have a factor for every block of %d in (%d,%d)", size, rows, columns), factors))
	}
	WithScope(func() {
		each := factors.Repeat(size, -2).Repeat(size, -1)
		each = each.Index(Rest, Range(0, rows), Range(0, columns))
		result = a.Mul(each.AsType(a.DType())).Keep()
	})
	return result
}

package mlxc

import (
	"errors"
	"fmt"
	"slices"
)

// Products of matrices, vectors and tensors. All but Outer, Kron and VecDot take floating-point and complex operands,
// which are promoted to a common dtype. Integer operands are an error: convert them with AsType.

// MatMul returns the matrix product over the last two axes; the others are broadcast. A vector is a row on the left and
// a column on the right. A sum over no elements is 0.
func (a *Array) MatMul(b *Array) *Array {
	return mlxMatmul(a, b)
}

// AddMM returns alpha·x·y + beta·a with the matrix product x·y; see MatMul. a is broadcast to the shape of the product.
// With beta 0, the elements of a are ignored, also infinities and NaN; with alpha 0, those of x and y.
func (a *Array) AddMM(x, y *Array, alpha, beta float32) *Array {
	// MLX ignores the elements in some cases only: BLAS does, and a sum of products does not.
	if beta == 0 && a.Err() == nil {
		a = a.ignored()
		defer a.Free()
	}
	if alpha == 0 && x.Err() == nil && y.Err() == nil {
		x, y = x.ignored(), y.ignored()
		defer x.Free()
		defer y.Free()
	}
	if alpha == 1 && beta == 1 || !a.IsTraced() && !x.IsTraced() && !y.IsTraced() {
		return mlxAddmm(a, x, y, alpha, beta)
	}
	// MLX's JVP rule omits alpha and beta (fault addmm-jvp).
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

// ignored returns zeros in place of the elements. In a function compiled for all shapes they follow the shape of a.
func (a *Array) ignored() *Array {
	no, zero := Scalar(false), Zeros(a.DType())
	defer no.Free()
	defer zero.Free()
	return Where(no, a, zero)
}

// Inner returns the sums of products over the last axes of both operands, which must have equal sizes: shapes (I,K) and
// (J,K) give (I,J). With a scalar operand, it is Mul.
func (a *Array) Inner(b *Array) *Array { return mlxInner(a, b) }

// Outer returns the products of all elements of a with all elements of b, in row-major order: sizes m and n give shape
// (m,n) for any operand shapes.
func (a *Array) Outer(b *Array) *Array { return mlxOuter(a, b) }

// Kron returns the Kronecker product: the product of every element of a with all of b, arranged like a. The size along
// every axis is the product of the operands' sizes; the operand with fewer axes gets leading axes of size 1.
func (a *Array) Kron(b *Array) *Array { return mlxKron(a, b) }

// VecDot returns the sums of products Σ ā·b along the axis; a complex a is conjugated. Both operands have equal sizes
// there; the other axes are broadcast. If the operands have different numbers of axes, axis refers to the longer shape.
func (a *Array) VecDot(b *Array, axis int) *Array {
	// MLX resolves the axis in each operand separately.
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

// TensorDot returns the sums of products over pairs of axes of a and b of equal sizes. The result has the remaining
// axes of a, followed by the remaining axes of b. Without axes it is the outer product.
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
				err = fmt.Errorf("axis %d of operand %d is repeated", x, i+1)
			}
			if err != nil {
				return invalid(opError(op, err, a, b))
			}
			seen = append(seen, k)
		}
	}
	return mlxTensordot(a, b, axesA, axesB)
}

// Einsum returns the sums of products described by the subscripts in Einstein notation: "ij,jk->ik" is the matrix
// product, "ii->i" the diagonal, "...ij->...ji" a transpose. Letters that are missing right of the arrow are summed
// over. Without an arrow, letters that occur once are kept, in alphabetical order.
func Einsum(subscripts string, operands ...*Array) *Array {
	return mlxEinsum(subscripts, operands)
}

// HadamardTransform multiplies the last axis by the Hadamard matrix of its size and by scale; 0 stands for 1/√size,
// which makes the transform orthonormal. The size must be m·2ᵏ with m of 1, 12, 20 or 28. The dtype must be float16,
// bfloat16 or float32; integers are computed as float32.
func (a *Array) HadamardTransform(scale float32) *Array {
	const op = "hadamard_transform"
	if a.Err() == nil {
		switch {
		case a.DType() == Float64 || a.DType() == Complex64:
			return invalid(opError(op, errors.New("the dtype must be float16, bfloat16 or float32: convert with AsType"), a))
		case !hadamardSize(a.Dim(-1)):
			return invalid(opError(op, fmt.Errorf("the size %d of the last axis is not m·2ᵏ with m of 1, 12, 20 or 28",
				a.Dim(-1)), a))
		}
	}
	if scale == 0 {
		return mlxHadamardTransform(a, nil)
	}
	return mlxHadamardTransform(a, &scale)
}

// hadamardSize reports whether MLX supports a Hadamard matrix of size n.
func hadamardSize(n int) bool {
	odd, twos := n, 0
	for odd > 0 && odd%2 == 0 {
		odd, twos = odd/2, twos+1
	}
	return odd == 1 || twos >= 2 && (odd == 3 || odd == 5 || odd == 7)
}

// MatMulIDs selects pairs of matrices of two batches. Left and Right are broadcast to each other; product i multiplies
// matrix Left[i] of the first batch by matrix Right[i] of the second. Ids are integers that number the matrices in
// row-major order; nil selects all matrices in this order. Negative ids are out of range; ids out of range are handled
// as in Take.
type MatMulIDs struct {
	Left, Right *Array
	Sorted      bool // the ids ascend, which lets MLX choose a faster algorithm
}

// limit returns ids in MLX's valid range. The caller calls free when it no longer needs them.
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
			return ids, nil, errors.New("the batch is empty, so no id is in range")
		}
	}
	limited = ids
	// MLX's gradients for sorted ids are correct only if the matrices of the first batch are taken in order. Otherwise
	// they are wrong, and MLX reads memory outside the arrays (fault gather-mm-gradient-sorted).
	limited.Sorted = ids.Sorted && ids.Left == nil && ids.Right.NDim() == 1 && a.NDim() == 3 &&
		a.Dim(0) == ids.Right.Dim(0)
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

// GatherMM multiplies selected matrices of two batches of shapes (…,M,K) and (…,K,N). The result has the broadcast
// shape of the ids, followed by (M,N). On a CPU, only float32 is supported. It has a gradient.
func (a *Array) GatherMM(b *Array, ids MatMulIDs) *Array {
	ids, free, err := ids.limit(a, b)
	if err != nil {
		return invalid(opError("gather_mm", err, a, b, ids.Left, ids.Right))
	}
	defer free()
	return mlxGatherMm(a, b, ids.Left, ids.Right, ids.Sorted).float32OnCPU("gather_mm", a, b)
}

// float32OnCPU returns the product a, or an error if it is computed on a CPU in another dtype than float32. MLX would
// fail at evaluation.
func (a *Array) float32OnCPU(op string, operands ...*Array) *Array {
	if a.Err() != nil || a.DType() == Float32 || CurrentDevice() != CPU {
		return a
	}
	defer a.Free()
	return invalid(opError(op, errors.New("on a CPU, MLX computes this for float32 only: convert with AsType"),
		operands...))
}

// SegmentedMM multiplies segments of two matrices of shapes (M,K) and (K,N). For every pair start, stop in the last
// axis of segments, of shape (…,2) and an integer dtype, it multiplies the columns start … stop−1 of a by the same rows
// of b. The result has shape (…,M,N); it is 0 where stop is not above start. Positions are in 0 … K; positions out of
// range are handled like ids in Take.
func (a *Array) SegmentedMM(b, segments *Array) *Array {
	const op = "segmented_mm"
	last := -1
	if a.Err() == nil && b.Err() == nil {
		var err error
		switch {
		case a.NDim() != 2 || b.NDim() != 2:
			err = errors.New("the operands must be matrices, without batch axes")
		case a.Dim(1) != b.Dim(0):
			err = fmt.Errorf("a has %d columns, but b has %d rows: they must be equal", a.Dim(1), b.Dim(0))
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
	if r.Err() == nil && (a.Size() == 0 || b.Size() == 0) { // fault segmented-mm-empty
		defer r.Free()
		return Zeros(r.DType(), r.Shape()...)
	}
	if d := r.DType(); (d == Float16 || d == BFloat16) && CurrentDevice() == CPU {
		// For float16 and bfloat16, MLX takes the segment's length for the row stride, so the results would be wrong
		// (fault segmented-mm-half).
		r.Free()
		WithScope(func() {
			r = mlxSegmentedMm(a.AsType(Float32), b.AsType(Float32), limited).AsType(d).Keep()
		})
	}
	return r
}

// BlockMasks holds the masks of a product of matrices (…,M,K) and (…,K,N). The operands and the result are divided into
// square blocks of Size. A mask, nil for none, has one element per block: Out has shape (…,⌈M/Size⌉,⌈N/Size⌉), Left
// (…,⌈M/Size⌉,⌈K/Size⌉) and Right (…,⌈K/Size⌉,⌈N/Size⌉). A boolean keeps the block or sets it to 0; a number is a
// factor.
type BlockMasks struct {
	Size             int // 32 or 64; 0 for 64
	Out, Left, Right *Array
}

// BlockMaskedMM returns the matrix product of a and b with masked blocks. On a CPU, only float32 is supported.
func (a *Array) BlockMaskedMM(b *Array, masks BlockMasks) *Array {
	if masks.Size == 0 {
		masks.Size = 64
	}
	if out := masks.Out; out.DType().IsFloating() {
		// MLX's gradient of the factors is wrong (fault block-masked-mm-mask-gradient).
		masks.Out = nil
		product := a.BlockMaskedMM(b, masks)
		defer product.Free()
		return product.mulBlocks(out, masks.Size)
	}
	return mlxBlockMaskedMm(a, b, masks.Size, masks.Out, masks.Left,
		masks.Right).zerosIfEmpty().float32OnCPU("block_masked_mm", a, b)
}

// mulBlocks multiplies each square block of the last two axes by its factor.
func (a *Array) mulBlocks(factors *Array, size int) (result *Array) {
	const op = "block_masked_mm"
	if err := a.Err(); err != nil {
		return invalid(err)
	}
	rows, columns := a.Dim(-2), a.Dim(-1)
	if n := factors.NDim(); n < 2 || factors.Dim(-2) != (rows+size-1)/size || factors.Dim(-1) != (columns+size-1)/size {
		return invalid(opError(op, fmt.Errorf("the result's mask must have a factor per block of size %d in (%d,%d)",
			size, rows, columns), factors))
	}
	WithScope(func() {
		each := factors.Repeat(size, -2).Repeat(size, -1)
		each = each.Index(Rest, Range(0, rows), Range(0, columns))
		result = a.Mul(each.AsType(a.DType())).Keep()
	})
	return result
}

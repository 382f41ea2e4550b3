package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// EmbeddingSparseGradient is the gradient of Embedding's weight without the rows of
// zeros: what an optimizer needs that changes only the rows in use.
//
// ids are int32 or uint32, of any shape S; dy, the cotangent of Embedding's result, has
// shape S+(D) and is float32, float16 or bfloat16. vocabulary is the number V of weight's
// rows.
//
// Of K = min(V, number of ids) rows, rows (uint32, shape (K)) holds the distinct ids in
// ascending order and then V, the number of no row; gradients (shape (K,D), dy's dtype)
// their rows of the gradient and then zeros; count (uint32, no axes) how many distinct ids
// there are. Ids out of range are treated as by Embedding, and are not among the
// rows. The results have no gradient.
func EmbeddingSparseGradient(dy, ids *mlxc.Array, vocabulary int) (rows, gradients, count *mlxc.Array) {
	const op = "ops.EmbeddingSparseGradient"
	if err := checkSparseGradient(dy, ids, vocabulary); err != nil {
		err = opError(op, err, dy, ids)
		return mlxc.InvalidArray(err), mlxc.InvalidArray(err), mlxc.InvalidArray(err)
	}
	width, slots := dy.Dim(-1), min(vocabulary, ids.Size())
	if slots == 0 {
		return mlxc.Zeros(mlxc.Uint32, 0), mlxc.Zeros(dy.DType(), 0, width), mlxc.Zeros(mlxc.Uint32)
	}
	if !kernelsAvailable(op) {
		return sparseGradientOfMLX(dy, ids, vocabulary, slots)
	}
	mlxc.WithScope(func() {
		on := currentTarget()
		high := mlxc.Scalar(uint64(1 << 32))
		keys := sortedTokens(on, ids, vocabulary)
		token, id := keys.Remainder(high), keys.FloorDivide(high).AsType(mlxc.Uint32)
		before := mlxc.Concatenate(0, mlxc.FromSlice([]uint32{math.MaxUint32}), id.Slice([]int{0}, []int{ids.Size() - 1}, nil))
		first := id.NotEqual(before)

		none := mlxc.Scalar(uint32(vocabulary))
		known := id.Less(none)
		rows = mlxc.Where(first, id, none).Sort(0).Slice([]int{0}, []int{slots}, nil).Keep()
		count = first.LogicalAnd(known).AsType(mlxc.Uint32).Sum().Keep()

		// The slot of an id is its rank among the distinct ones.
		rank := first.AsType(mlxc.Uint64).CumSum(0).Sub(mlxc.Scalar(uint64(1)))
		slot := mlxc.Where(known, rank, mlxc.Scalar(uint64(slots)))
		gradients = sumRuns(on, dy, slot.Mul(high).Add(token), slots).Keep()
	})
	return rows, gradients, count
}

// sparseGradientOfMLX is EmbeddingSparseGradient in operations of MLX, by way of the
// whole gradient.
func sparseGradientOfMLX(dy, ids *mlxc.Array, vocabulary, slots int) (rows, gradients, count *mlxc.Array) {
	mlxc.WithScope(func() {
		width, n := dy.Dim(-1), ids.Size()
		none := mlxc.Scalar(uint32(vocabulary))
		known := unsignedIDs(ids).Minimum(none)
		// A row of zeros comes last, for what is out of range.
		table := mlxc.Zeros(dy.DType(), vocabulary+1, width)
		sums := table.ScatterAdd(known, dy.Reshape(n, width), 0).SliceUpdate(
			mlxc.Zeros(dy.DType(), 1, width), []int{vocabulary, 0}, []int{vocabulary + 1, width}, nil)
		uses := mlxc.Zeros(mlxc.Uint32, vocabulary+1).ScatterAdd(known, mlxc.Ones(mlxc.Uint32, n), 0)
		used := uses.Slice([]int{0}, []int{vocabulary}, nil).Greater(mlxc.Scalar(uint32(0)))
		rows = mlxc.Where(used, mlxc.Arange(mlxc.Uint32, 0, float64(vocabulary), 1), none).
			Sort(0).Slice([]int{0}, []int{slots}, nil).Keep()
		gradients = sums.Take(rows, 0).Keep()
		count = used.AsType(mlxc.Uint32).Sum().Keep()
	})
	return rows, gradients, count
}

func checkSparseGradient(dy, ids *mlxc.Array, vocabulary int) error {
	if vocabulary < 0 || vocabulary > math.MaxInt32 {
		return fmt.Errorf("the vocabulary is %d: a table has 0 to 2³¹−1 rows", vocabulary)
	}
	if err := requireArray("dy", dy); err != nil {
		return err
	}
	if !slices.Contains(gradientDTypes, dy.DType()) {
		return fmt.Errorf("dy is %v: the kernels take float32, float16 and bfloat16; convert with AsType", dy.DType())
	}
	if err := checkIDs(ids, vocabulary); err != nil {
		return err
	}
	if n := dy.NDim(); n == 0 || !slices.Equal(dy.Shape()[:n-1], ids.Shape()) {
		return errors.New("dy must have ids' shape and one more axis, the width")
	}
	return nil
}

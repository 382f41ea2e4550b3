package ops

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// EmbeddingSparseGradient returns the gradient of [Embedding] for weight without the rows that no id selects, for an
// optimizer that updates only rows in use.
//
// ids has any shape S and dtype int32 or uint32. dy, the cotangent of Embedding's result, has shape S+(D) and dtype
// float32, float16 or bfloat16. vocabulary is V, the number of rows of weight.
//
// The results have a fixed size of K = min(V, number of ids) rows. The first count rows are in use:
//
//	rows       uint32 (K)     the distinct ids in ascending order, then V, which is not a row
//	gradients  dy's (K,D)     the rows of the gradient, then zeros
//	count      uint32 ()      the number of distinct ids
//
// Ids out of range are treated as by Embedding and are not counted. The results have no gradient. Their bits are the
// same at every call.
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
		return sparseGradientMLX(dy, ids, vocabulary, slots)
	}
	mlxc.WithScope(func() {
		on := currentTarget()
		high := mlxc.Scalar(uint64(1 << 32))
		keys := sortedTokens(on, ids, vocabulary)
		token, id := keys.Remainder(high), keys.FloorDivide(high).AsType(mlxc.Uint32)
		shifted := id.Slice([]int{0}, []int{ids.Size() - 1}, nil)
		previous := mlxc.Concatenate(0, mlxc.FromSlice([]uint32{math.MaxUint32}), shifted)
		first := id.NotEqual(previous)

		none := mlxc.Scalar(uint32(vocabulary))
		known := id.Less(none)
		rows = mlxc.Where(first, id, none).Sort(0).Slice([]int{0}, []int{slots}, nil).Keep()
		count = first.LogicalAnd(known).AsType(mlxc.Uint32).Sum().Keep()

		// The slot of an id is its rank among the distinct ids.
		rank := first.AsType(mlxc.Uint64).CumSum(0).Sub(mlxc.Scalar(uint64(1)))
		slot := mlxc.Where(known, rank, mlxc.Scalar(uint64(slots)))
		gradients = sumRuns(on, dy, slot.Mul(high).Add(token), slots).Keep()
	})
	return rows, gradients, count
}

// sparseGradientMLX returns EmbeddingSparseGradient composed of MLX operations. It computes the dense gradient first.
func sparseGradientMLX(dy, ids *mlxc.Array, vocabulary, slots int) (rows, gradients, count *mlxc.Array) {
	mlxc.WithScope(func() {
		width, n := dy.Dim(-1), ids.Size()
		none := mlxc.Scalar(uint32(vocabulary))
		known := unsignedIDs(ids).Minimum(none)
		// The last row collects the ids out of range and is then set to zero.
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
		return fmt.Errorf("vocabulary is %d; it must be at least 0 and below 2³¹", vocabulary)
	}
	if err := requireArray("dy", dy); err != nil {
		return err
	}
	if !slices.Contains(gradientDTypes, dy.DType()) {
		return fmt.Errorf("dy is %v; it must be float32, float16 or bfloat16: convert it with AsType", dy.DType())
	}
	if err := checkIDs(ids, vocabulary); err != nil {
		return err
	}
	if n := dy.NDim(); n == 0 || !slices.Equal(dy.Shape()[:n-1], ids.Shape()) {
		return fmt.Errorf("dy has shape %v; it must be %v and one more axis, the width", dy.Shape(), ids.Shape())
	}
	return nil
}

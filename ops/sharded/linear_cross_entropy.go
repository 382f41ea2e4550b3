// Package sharded has operations whose parameters are divided among processes.
package sharded

import (
	"errors"
	"fmt"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
)

// LinearCrossEntropy returns the mean cross-entropy of the logits hidden·weightᵀ, where each process of the group holds
// the rows of weight for its own classes. The logits stay in their process: the processes exchange four numbers for
// each row of hidden, and the gradient of hidden.
//
// hidden has shape (…,H) and dtype float32 or bfloat16. weight has shape (V,H) and hidden's dtype, and holds the classes
// first, first+1, … of all. Together the processes must hold each class once; V may differ among processes. targets has
// shape (…), dtype int32, and counts all classes. If a target is outside of them, the loss and the gradients are NaN.
// hidden and targets must be equal in all processes. All processes must evaluate the loss, and its gradient.
//
// Every process gets the same loss. It gets the gradient of its own weight, and the same whole gradient of hidden. The
// sum over the classes is in the order in which the backend adds the processes' sums, which is fixed for a number of
// processes. The logits of the process are in memory, in float32.
func LinearCrossEntropy(g *distributed.Group, hidden, weight, targets *mlxc.Array, first int) *mlxc.Array {
	const op = "sharded.LinearCrossEntropy"
	if err := check(g, hidden, weight, targets, first); err != nil {
		return mlxc.InvalidArray(mlxc.NewError(op, err))
	}
	l := loss{g, first}
	results := mlxc.CustomVJP(l.forward, l.backward)([]*mlxc.Array{hidden, weight, targets})
	for _, r := range results[1:] {
		r.Free() // the graph references them
	}
	return results[0]
}

func check(g *distributed.Group, hidden, weight, targets *mlxc.Array, first int) error {
	if g == nil {
		return errors.New("the group is nil")
	}
	for _, a := range []struct {
		name  string
		array *mlxc.Array
	}{{"hidden", hidden}, {"weight", weight}, {"targets", targets}} {
		if err := a.array.Err(); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	d := hidden.DType()
	switch {
	case d != mlxc.Float32 && d != mlxc.BFloat16:
		return fmt.Errorf("hidden is %v; it must be float32 or bfloat16", d)
	case weight.DType() != d:
		return fmt.Errorf("hidden is %v and weight is %v; they must be equal", d, weight.DType())
	case targets.DType() != mlxc.Int32:
		return fmt.Errorf("targets is %v; it must be int32", targets.DType())
	case hidden.NDim() == 0 || hidden.Size() == 0:
		return fmt.Errorf("hidden has shape %v; it must have rows and columns", hidden.Shape())
	case weight.NDim() != 2 || weight.Dim(1) != hidden.Dim(-1) || weight.Dim(0) == 0:
		return fmt.Errorf("weight has shape %v; it must be [classes, %d], with at least one class",
			weight.Shape(), hidden.Dim(-1))
	case targets.Size()*hidden.Dim(-1) != hidden.Size():
		return fmt.Errorf("targets has shape %v; it must have one element for each row of hidden, which has shape %v",
			targets.Shape(), hidden.Shape())
	case first < 0 || first > math.MaxInt32-weight.Dim(0):
		return fmt.Errorf("first is %d; it must not be negative, and classes must be below 2³¹", first)
	}
	return nil
}

// loss is the operation in one process.
type loss struct {
	group *distributed.Group
	first int
}

// asRows returns hidden with shape (rows, H).
func asRows(hidden *mlxc.Array) *mlxc.Array {
	return hidden.Reshape(hidden.Size()/hidden.Dim(-1), hidden.Dim(-1))
}

// own returns the index of each row's target among this process's classes, of shape (rows, 1), and whether it is one.
func (l loss) own(targets *mlxc.Array, classes int) (index, inside *mlxc.Array) {
	index = targets.Reshape(targets.Size(), 1).SubScalar(l.first)
	inside = index.GreaterEqualScalar(0).LogicalAnd(index.LessScalar(classes))
	return index.Clip(0, classes-1), inside
}

// forward returns the loss, and for backward the float32 logits and the logarithm of each row's sum over all classes,
// of shape (rows, 1). The logarithm is NaN for a target outside of the classes.
func (l loss) forward(args []*mlxc.Array) []*mlxc.Array {
	logits := asRows(args[0]).MatMul(args[1].Transpose()).AsType(mlxc.Float32)
	index, inside := l.own(args[2], args[1].Dim(0))
	zero := mlxc.Scalar[float32](0)
	highest := l.group.AllMax(logits.MaxKeepDims(-1))
	sums := l.group.AllSum(mlxc.Concatenate(1,
		logits.Sub(highest).Exp().SumKeepDims(-1),
		mlxc.Where(inside, logits.TakeAlongAxis(index, 1), zero),
		inside.AsType(mlxc.Float32),
	)).Split(3, 1)
	found := mlxc.Where(sums[2].EqualScalar(1), zero, mlxc.Scalar(float32(math.NaN())))
	total := sums[0].Log().Add(highest).Add(found)
	return []*mlxc.Array{total.Sub(sums[1]).Mean(), logits, total}
}

// backward returns the gradients of hidden and weight. That of targets is zero.
func (l loss) backward(args, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
	hidden, weight, targets := args[0], args[1], args[2]
	index, inside := l.own(targets, weight.Dim(0))
	scale := cotangents[0].AsType(mlxc.Float32).DivScalar(float64(targets.Size()))
	softmax := outputs[1].Sub(outputs[2]).Exp()
	classes := mlxc.Arange(mlxc.Int32, 0, float64(weight.Dim(0)), 1).Reshape(1, weight.Dim(0))
	hot := classes.Equal(index).LogicalAnd(inside).AsType(mlxc.Float32)
	dlogits := softmax.Sub(hot).Mul(scale).AsType(hidden.DType())
	dhidden := l.group.AllSum(dlogits.MatMul(weight).AsType(mlxc.Float32)).AsType(hidden.DType())
	return []*mlxc.Array{
		dhidden.Reshape(hidden.Shape()...), dlogits.Transpose().MatMul(asRows(hidden)), mlxc.ZerosLike(targets),
	}
}

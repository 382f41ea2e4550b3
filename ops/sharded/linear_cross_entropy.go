// Package sharded has operations whose parameters are divided among processes.
package sharded

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
	"github.com/mlxgrad/mlxgrad/ops"
)

// LinearCrossEntropy returns the cross-entropy of the logits hidden·weightᵀ, where each process of the group holds the
// rows of weight for its own classes. The logits stay in their process: the processes exchange six numbers for each row
// of hidden, and the gradient of hidden.
//
// hidden has shape (…,H) and dtype float32, float16 or bfloat16. weight has shape (n,H) and hidden's dtype, and row i
// is class first+i. Together the processes must hold each of the V classes once; n may differ among processes. targets
// has shape (…) and dtype int32 or uint32, and holds classes from 0 to V−1. The loss, its options and the treatment of
// ignored targets are those of [ops.CrossEntropy]. The loss and the gradients of a row whose target is not a class are
// NaN. hidden, targets and cfg must be equal in all processes. All processes must evaluate the loss, and all or none
// its gradient.
//
// Every process gets the same loss. It gets the gradient of its own weight, and the same whole gradient of hidden. The
// sum over the classes is in the order in which the backend adds the processes' sums, which is fixed for a number of
// processes. The logits of the process are in memory, in float32. In float16 the products of the gradients are computed
// in float32, because small elements of the gradient of the logits would vanish.
func LinearCrossEntropy(
	g *distributed.Group, hidden, weight, targets *mlxc.Array, first int, cfg ops.CrossEntropyConfig,
) *mlxc.Array {
	const op = "sharded.LinearCrossEntropy"
	if err := check(g, hidden, weight, targets, first, cfg); err != nil {
		return mlxc.InvalidArray(mlxc.NewError(op, err))
	}
	if cfg.IgnoreIndex != nil {
		cfg.IgnoreIndex = new(*cfg.IgnoreIndex) // the caller may change it before the gradient is taken
	}
	l := loss{g, first, cfg}
	results := mlxc.CustomVJP(l.forward, l.backward)([]*mlxc.Array{hidden, weight, targets})
	for _, r := range results[1:] {
		r.Free() // the graph references them
	}
	return results[0]
}

func check(g *distributed.Group, hidden, weight, targets *mlxc.Array, first int, cfg ops.CrossEntropyConfig) error {
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
	case d != mlxc.Float32 && d != mlxc.Float16 && d != mlxc.BFloat16:
		return fmt.Errorf("hidden is %v; it must be float32, float16 or bfloat16", d)
	case weight.DType() != d:
		return fmt.Errorf("hidden is %v and weight is %v; they must be equal", d, weight.DType())
	case targets.DType() != mlxc.Int32 && targets.DType() != mlxc.Uint32:
		return fmt.Errorf("targets is %v; it must be int32 or uint32", targets.DType())
	case hidden.NDim() == 0 || hidden.Size() == 0:
		return fmt.Errorf("hidden has shape %v; it must have rows and columns", hidden.Shape())
	case weight.NDim() != 2 || weight.Dim(1) != hidden.Dim(-1) || weight.Dim(0) == 0:
		return fmt.Errorf("weight has shape %v; it must be [classes, %d], with at least one class",
			weight.Shape(), hidden.Dim(-1))
	case !slices.Equal(targets.Shape(), hidden.Shape()[:hidden.NDim()-1]):
		return fmt.Errorf("targets has shape %v; it must have one element for each row of hidden, which has shape %v",
			targets.Shape(), hidden.Shape())
	case first < 0 || first > math.MaxInt32-weight.Dim(0):
		return fmt.Errorf("first is %d; it must not be negative, and classes must be below 2³¹", first)
	}
	return cfg.Check()
}

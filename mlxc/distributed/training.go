package distributed

import (
	"errors"
	"fmt"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// Broadcast returns, in every process, a tree with the bits of rank 0's arrays. The processes must pass trees of the
// same structure, shapes and dtypes, such as the parameters of a model. The arrays of the result are evaluated and
// belong to the caller; the argument is not freed.
func Broadcast[T any](g *Group, t T) (T, error) {
	const op = "Broadcast"
	if g == nil {
		return t, mlxc.NewError(op, errNoGroup)
	}
	arrays, err := tree.Flatten(t)
	if err != nil {
		return t, err
	}
	same := make([]*mlxc.Array, len(arrays))
	for i, a := range arrays {
		same[i] = g.broadcast(a)
	}
	if err := mlxc.Eval(same...); err != nil {
		return t, mlxc.NewError(op, err)
	}
	return tree.Unflatten(t, same)
}

// broadcast returns rank 0's array. It sums bytes, and all bytes of the other ranks are 0: a sum of floating-point
// numbers would change -0 and the payload of a NaN.
func (g *Group) broadcast(a *mlxc.Array) *mlxc.Array {
	var same *mlxc.Array
	mlxc.WithScope(func() {
		if a.Err() != nil || a.Size() == 0 {
			same = a.Reshape(a.Shape()...).Keep()
			return
		}
		rows := a
		if a.NDim() == 0 {
			rows = a.Reshape(1)
		}
		bytes := rows.View(mlxc.Uint8) // all bytes in one axis may be too many for it
		if g.rank != 0 {
			bytes = mlxc.ZerosLike(bytes)
		}
		same = g.AllSum(bytes).View(a.DType()).Reshape(a.Shape()...).Keep()
	})
	return same
}

// AnyRank reports, in every process, whether a process passed true. No process returns before all have called it, so it
// is also a barrier. For example, processes agree with it that a training ends.
func (g *Group) AnyRank(condition bool) (result bool, err error) {
	const op = "AnyRank"
	if g == nil {
		return false, mlxc.NewError(op, errNoGroup)
	}
	var own int32
	if condition {
		own = 1
	}
	err = mlxc.WithScopeErr(func() error {
		n, err := mlxc.Item[int32](g.AllSum(mlxc.Scalar(own)))
		result = n > 0
		return err
	})
	return result, err
}

// OnFirst runs f in rank 0 only, and returns in every process after f has ended. It returns f's error in rank 0 and
// another error in the other processes, also if f panics. For example, f writes a checkpoint that all processes read
// later.
func (g *Group) OnFirst(f func() error) error {
	const op = "OnFirst"
	if g == nil {
		return mlxc.NewError(op, errNoGroup)
	}
	var own error
	if g.rank == 0 {
		ended := false
		defer func() {
			if !ended { // f panics or ends the goroutine: the other processes must not block
				_, _ = g.AnyRank(true)
			}
		}()
		own = f()
		ended = true
	}
	failed, err := g.AnyRank(own != nil)
	switch {
	case own != nil:
		return own
	case err != nil:
		return mlxc.NewError(op, err)
	case failed:
		return mlxc.NewError(op, errors.New("the function failed in rank 0"))
	}
	return nil
}

// Share returns the process's part [begin, end) of n items, such as the rows of a batch or the passages of an
// evaluation. The parts are in the order of ranks, and their sizes differ by 1 at most.
func (g *Group) Share(n int) (begin, end int) { return n * g.rank / g.size, n * (g.rank + 1) / g.size }

// WeightedMean returns the mean of the processes' values, weighted by a number such as the process's count of items.
// The calculation is in float32. At least one weight must be positive, and none may be negative. A weight that is
// not allowed is an error in all processes. The value of a process with the weight 0 may be NaN, such as the mean of no
// items.
func (g *Group) WeightedMean(value, weight float64) (mean float64, err error) {
	const op = "WeightedMean"
	if g == nil {
		return 0, mlxc.NewError(op, errNoGroup)
	}
	var own error
	switch {
	case !(weight >= 0):
		own = fmt.Errorf("the weight is %v; it must not be negative", weight)
		weight = math.NaN() // gives an error in all processes
	case weight == 0:
		value = 0
	}
	err = mlxc.WithScopeErr(func() error {
		sums, err := mlxc.ToSlice[float32](g.AllSum(mlxc.FromSlice([]float32{float32(value * weight), float32(weight)})))
		switch {
		case own != nil:
			return mlxc.NewError(op, own)
		case err != nil:
			return err
		case sums[1] == 0:
			return mlxc.NewError(op, errors.New("all weights are 0; one must be positive"))
		case math.IsNaN(float64(sums[1])):
			return mlxc.NewError(op, errors.New("the weight of another process is negative or NaN"))
		}
		mean = float64(sums[0]) / float64(sums[1])
		return nil
	})
	return mean, err
}

// RandomKey returns a key for the random numbers of this process, such as those of dropout. Each process gets another
// key; all must pass the same one.
func (g *Group) RandomKey(key *mlxc.Array) *mlxc.Array {
	if g == nil {
		return invalid("RandomKey", errNoGroup, key)
	}
	keys := mlxc.RandomSplit(key, g.size)
	for i, k := range keys {
		if i != g.rank {
			k.Free()
		}
	}
	return keys[min(g.rank, len(keys)-1)]
}

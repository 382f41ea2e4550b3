package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// gradientDTypes are the dtypes that the kernels are for.
var gradientDTypes = []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16}

// normError leaves an error alone that an operand brought with it.
func opError(op string, err error, operands ...*mlxc.Array) error {
	var carried *mlxc.Error
	if errors.As(err, &carried) {
		return err
	}
	return mlxc.NewError(op, err, operands...)
}

// usable checks an argument that there must be.
func requireArray(name string, a *mlxc.Array) error {
	if a == nil {
		return fmt.Errorf("%s: %w", name, mlxc.ErrNil)
	}
	return a.Err()
}

// checkRows returns an error unless the argument has rows of a dtype that the kernels are for.
func checkRows(name string, x *mlxc.Array) error {
	if err := requireArray(name, x); err != nil {
		return err
	}
	if x.NDim() == 0 {
		return fmt.Errorf("%s has no axis to work along", name)
	}
	if !slices.Contains(gradientDTypes, x.DType()) {
		return fmt.Errorf("%s is %v: the gradient's kernels take float32, float16 and bfloat16; convert with AsType", name, x.DType())
	}
	return nil
}

// checkVector checks an argument, which may be nil, with an element for each of x's
// columns.
func checkVector(name string, v, x *mlxc.Array) error {
	if v == nil {
		return nil
	}
	if err := v.Err(); err != nil {
		return err
	}
	if v.NDim() != 1 || v.Dim(0) != x.Dim(-1) {
		return fmt.Errorf("%s must have one axis of %d elements, like x's last", name, x.Dim(-1))
	}
	if v.DType() != x.DType() {
		return fmt.Errorf("x is %v and %s %v: convert one with AsType", x.DType(), name, v.DType())
	}
	return nil
}

// checkLike checks an argument that must be like x.
func checkLike(name string, a, x *mlxc.Array) error {
	if err := requireArray(name, a); err != nil {
		return err
	}
	if !slices.Equal(a.Shape(), x.Shape()) || a.DType() != x.DType() {
		return fmt.Errorf("%s must have x's shape and dtype, %v %v: use BroadcastTo and AsType", name, x.DType(), x.Shape())
	}
	return nil
}

// count is a number for a kernel, which has 32 bits for it.
func uint32Arg(n int) *mlxc.Array {
	if n > math.MaxUint32 {
		return mlxc.InvalidArray(fmt.Errorf("%d is beyond the 32 bits of the kernels' counts: cut the arrays into parts", n))
	}
	return customkernels.Constant(uint32(n))
}

// counts are several.
func uint32Args(values ...int) []*mlxc.Array {
	scalars := make([]*mlxc.Array, len(values))
	for i, n := range values {
		scalars[i] = uint32Arg(n)
	}
	return scalars
}

// zerosLike are the gradients of empty arrays. There is none for a nil.
func zerosLike(arrays ...*mlxc.Array) []*mlxc.Array {
	zeros := make([]*mlxc.Array, len(arrays))
	for i, a := range arrays {
		if a != nil {
			zeros[i] = mlxc.Zeros(a.DType(), a.Shape()...)
		}
	}
	return zeros
}

func freeAll(arrays []*mlxc.Array) {
	for _, a := range arrays {
		a.Free()
	}
}

// checkedTargets is the largest number of targets that are looked at before a launch:
// some tens of microseconds.
const maxCheckedElements = 1 << 16

// inHand reports whether the elements of an argument can be looked at without waiting for a
// device. What an NVIDIA GPU has computed would have to be moved.
func readableWithoutSync(a *mlxc.Array) bool {
	return a.Size() <= maxCheckedElements && a.IsReady() && (a.IsHostBacked() || mlxc.CurrentBackend() != mlxc.BackendCUDA)
}

// scoped frees what f makes, but for its results.
func scoped(f func() []*mlxc.Array) (results []*mlxc.Array) {
	mlxc.WithScope(func() {
		results = f()
		for _, r := range results {
			r.Keep()
		}
	})
	return results
}

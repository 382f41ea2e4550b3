package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// gradientDTypes lists the dtypes that the kernels support.
var gradientDTypes = []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16}

// opError adds the operation and its operands to err. If err is the error of an invalid operand, opError returns it
// unchanged.
func opError(op string, err error, operands ...*mlxc.Array) error {
	var carried *mlxc.Error
	if errors.As(err, &carried) {
		return err
	}
	return mlxc.NewError(op, err, operands...)
}

// requireArray returns an error if a is nil or invalid.
func requireArray(name string, a *mlxc.Array) error {
	if a == nil {
		return fmt.Errorf("%s: %w", name, mlxc.ErrNil)
	}
	return a.Err()
}

// checkRows returns an error unless x has at least one axis and a dtype that the kernels support.
func checkRows(name string, x *mlxc.Array) error {
	if err := requireArray(name, x); err != nil {
		return err
	}
	if x.NDim() == 0 {
		return fmt.Errorf("%s is a scalar; it must have at least one axis", name)
	}
	if !slices.Contains(gradientDTypes, x.DType()) {
		return fmt.Errorf("%s is %v; it must be float32, float16 or bfloat16: convert it with AsType", name, x.DType())
	}
	return nil
}

// checkVector returns an error unless v is nil or has one element for each column of x, in x's dtype.
func checkVector(name string, v, x *mlxc.Array) error {
	if v == nil {
		return nil
	}
	if err := v.Err(); err != nil {
		return err
	}
	if v.NDim() != 1 || v.Dim(0) != x.Dim(-1) {
		return fmt.Errorf("%s has shape %v; it must be %v, the last axis of x", name, v.Shape(), []int{x.Dim(-1)})
	}
	if v.DType() != x.DType() {
		return fmt.Errorf("%s is %v; it must be %v like x: convert one with AsType", name, v.DType(), x.DType())
	}
	return nil
}

// checkLike returns an error unless a has x's shape and dtype.
func checkLike(name string, a, x *mlxc.Array) error {
	if err := requireArray(name, a); err != nil {
		return err
	}
	if !slices.Equal(a.Shape(), x.Shape()) || a.DType() != x.DType() {
		return fmt.Errorf("%s is %v %v; it must be %v %v like x: use BroadcastTo and AsType",
			name, a.DType(), a.Shape(), x.DType(), x.Shape())
	}
	return nil
}

// uint32Arg returns n as a scalar argument of a kernel. It is an invalid array if n is negative or
// does not fit 32 bits.
func uint32Arg(n int) *mlxc.Array {
	if n < 0 || n > math.MaxUint32 {
		return mlxc.InvalidArray(fmt.Errorf("a size is %d; it must be from 0 to 2³²−1: split the arrays", n))
	}
	return customkernels.Constant(uint32(n))
}

// uint32Args returns each value as a scalar argument of a kernel, like uint32Arg.
func uint32Args(values ...int) []*mlxc.Array {
	scalars := make([]*mlxc.Array, len(values))
	for i, n := range values {
		scalars[i] = uint32Arg(n)
	}
	return scalars
}

// zerosLike returns zeros of each array's shape and dtype, and nil for nil.
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

// maxCheckedElements is the largest number of targets or ids whose values are checked before a launch. Reading
// 65,536 values takes some tens of microseconds.
const maxCheckedElements = 1 << 16

// readableWithoutSync reports whether the host can read the elements of a without waiting: there are at most
// maxCheckedElements, they have been computed, and they are in host memory. Elements that an NVIDIA GPU computed would
// have to be copied first.
func readableWithoutSync(a *mlxc.Array) bool {
	inHostMemory := a.IsHostBacked() || mlxc.CurrentBackend() != mlxc.BackendCUDA
	return a.Size() <= maxCheckedElements && a.IsReady() && inHostMemory
}

// scoped calls f and frees all arrays that f makes, except its results. The results pass to the enclosing scope.
func scoped(f func() []*mlxc.Array) (results []*mlxc.Array) {
	mlxc.WithScope(func() {
		results = f()
		for _, r := range results {
			r.Keep()
		}
	})
	return results
}

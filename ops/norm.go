package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// normError leaves an error alone that an operand brought with it.
func normError(op string, err error, operands ...*mlxc.Array) error {
	var carried *mlxc.Error
	if errors.As(err, &carried) {
		return err
	}
	return mlxc.NewError(op, err, operands...)
}

// usable checks an argument that there must be.
func usable(name string, a *mlxc.Array) error {
	if a == nil {
		return fmt.Errorf("%s: %w", name, mlxc.ErrNil)
	}
	return a.Err()
}

// checkNorm checks the arguments that the norms share.
func checkNorm(x, weight *mlxc.Array, eps float32) error {
	if err := checkRows(x); err != nil {
		return err
	}
	if err := checkVector("weight", weight, x); err != nil {
		return err
	}
	if !(eps >= 0) || math.IsInf(float64(eps), 0) {
		return fmt.Errorf("eps is %v: it must be finite and not negative", eps)
	}
	return nil
}

// checkRows checks an argument x that has rows of a dtype that the kernels are for.
func checkRows(x *mlxc.Array) error { return checkRowsOf("x", x) }

// checkRowsOf is checkRows for an argument of another name.
func checkRowsOf(name string, x *mlxc.Array) error {
	if err := usable(name, x); err != nil {
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
	if err := usable(name, a); err != nil {
		return err
	}
	if !slices.Equal(a.Shape(), x.Shape()) || a.DType() != x.DType() {
		return fmt.Errorf("%s must have x's shape and dtype, %v %v: use BroadcastTo and AsType", name, x.DType(), x.Shape())
	}
	return nil
}

// rowArgs are the last inputs of the kernels that walk over rows: scalars that must not
// be template arguments, which would compile a kernel for each.
type rowArgs struct{ rows, width, eps *mlxc.Array }

func newRowArgs(rows, width int, eps float32) rowArgs {
	return rowArgs{count(rows), count(width), customkernels.Constant(eps)}
}

// normRows are what the kernels of a norm's gradient go along.
type normRows struct {
	dy          *mlxc.Array // in x's dtype, to be freed
	w           *mlxc.Array // the weight; without one dy, which is not read
	rows, width int
	args        rowArgs
}

func normRowsOf(x, weight, dy *mlxc.Array, eps float32) normRows {
	width := x.Dim(-1)
	rows := x.Size() / width
	r := normRows{dy: dy.AsType(x.DType()), w: weight, rows: rows, width: width, args: newRowArgs(rows, width, eps)}
	if weight == nil {
		r.w = r.dy
	}
	return r
}

// count is a number for a kernel, which has 32 bits for it.
func count(n int) *mlxc.Array {
	if n > math.MaxUint32 {
		return mlxc.InvalidArray(fmt.Errorf("%d is beyond the 32 bits of the kernels' counts: cut the arrays into parts", n))
	}
	return customkernels.Constant(uint32(n))
}

// counts are several.
func counts(values ...int) []*mlxc.Array {
	scalars := make([]*mlxc.Array, len(values))
	for i, n := range values {
		scalars[i] = count(n)
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

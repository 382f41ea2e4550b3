package ops

import (
	"fmt"
	"math"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// checkNorm checks the arguments that the norms share.
func checkNorm(x, weight *mlxc.Array, eps float32) error {
	if err := checkRows("x", x); err != nil {
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

// rowArgs are the last inputs of the kernels that walk over rows: scalars that must not
// be template arguments, which would compile a kernel for each.
type rowArgs struct{ rows, width, eps *mlxc.Array }

func newRowArgs(rows, width int, eps float32) rowArgs {
	return rowArgs{uint32Arg(rows), uint32Arg(width), customkernels.Constant(eps)}
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

package ops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// widestState is the largest P and N of the kernels.
const widestState = 256

// checkSSMScan returns an error if the arguments of SSMScan are invalid.
func checkSSMScan(x, dt, a, b, c *mlxc.Array, cfg SSMScanConfig) error {
	if err := checkSSMInputs([]string{"batch", "length", "heads", "P"}, x, dt, a, b, c, cfg.D); err != nil {
		return err
	}
	for _, s := range []struct {
		name string
		size int
	}{{"P, the last axis of x,", x.Dim(3)}, {"N, the last axis of b,", b.Dim(3)}} {
		if s.size%8 != 0 || s.size < 8 || s.size > widestState {
			return fmt.Errorf("%s is %d; it must be a multiple of 8 from 8 to %d", s.name, s.size, widestState)
		}
	}
	sequences, err := countSequences("x", x, cfg.Starts, x.Dim(1))
	if err != nil {
		return err
	}
	return checkFloats("InitialState", cfg.InitialState, sequences, x.Dim(2), x.Dim(3), b.Dim(3))
}

// checkSSMStep returns an error if the arguments of SSMStep are invalid.
func checkSSMStep(x, dt, a, b, c, d, state *mlxc.Array) error {
	if err := checkSSMInputs([]string{"batch", "heads", "P"}, x, dt, a, b, c, d); err != nil {
		return err
	}
	if err := requireArray("state", state); err != nil {
		return err
	}
	return checkFloats("state", state, x.Dim(0), x.Dim(1), x.Dim(2), b.Dim(2))
}

// checkSSMInputs returns an error unless the inputs fit each other. x has axes of these names, and b and c have the same
// axes but the last two.
func checkSSMInputs(names []string, x, dt, a, b, c, d *mlxc.Array) error {
	if err := checkRows("x", x); err != nil {
		return err
	}
	axes := len(names)
	if x.NDim() != axes {
		return fmt.Errorf("x has the shape %v; it must be [%s]", x.Shape(), strings.Join(names, ", "))
	}
	shape, heads := x.Shape(), x.Dim(-2)
	if heads == 0 || x.Dim(-1) == 0 {
		return fmt.Errorf("x has the shape %v; heads and P must be at least 1", shape)
	}
	for _, v := range []struct {
		name  string
		array *mlxc.Array
	}{{"dt", dt}, {"a", a}, {"b", b}, {"c", c}} {
		if err := requireArray(v.name, v.array); err != nil {
			return err
		}
	}
	if err := checkFloats("dt", dt, shape[:axes-1]...); err != nil {
		return err
	}
	if err := checkFloats("a", a, heads); err != nil {
		return err
	}
	if b.NDim() != axes || !slices.Equal(b.Shape()[:axes-2], shape[:axes-2]) || b.Dim(-2) == 0 || b.Dim(-1) == 0 {
		return fmt.Errorf("b has the shape %v; it must be %v, groups and N", b.Shape(), shape[:axes-2])
	}
	if heads%b.Dim(-2) != 0 {
		return fmt.Errorf("x has %d heads; their number must be a multiple of the %d groups of b", heads, b.Dim(-2))
	}
	if err := checkLike("c", c, b); err != nil {
		return fmt.Errorf("%w: b and c must agree", err)
	}
	if b.DType() != x.DType() {
		return fmt.Errorf("x is %v and b is %v; they must have one dtype: use AsType", x.DType(), b.DType())
	}
	return checkFloats("D", d, heads)
}

// checkFloats returns an error unless v is nil or has this shape and a dtype that the kernels support.
func checkFloats(name string, v *mlxc.Array, shape ...int) error {
	if v == nil {
		return nil
	}
	if err := v.Err(); err != nil {
		return err
	}
	if !slices.Contains(gradientDTypes, v.DType()) {
		return fmt.Errorf("%s is %v; it must be float32, float16 or bfloat16: convert it with AsType", name, v.DType())
	}
	if !slices.Equal(v.Shape(), shape) {
		return fmt.Errorf("%s has the shape %v; it must be %v", name, v.Shape(), shape)
	}
	return nil
}

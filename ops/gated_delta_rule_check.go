package ops

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A namedArray is an argument with its name in error messages.
type namedArray struct {
	name  string
	array *mlxc.Array
}

// checkGatedDelta returns an error if the arguments of GatedDeltaRule are invalid.
func checkGatedDelta(q, k, v, logDecay, beta *mlxc.Array, c GatedDeltaRuleConfig) error {
	if err := checkDeltaHeads(q, k, v, "batch", "heads", "length", "head_dim"); err != nil {
		return err
	}
	if q.Dim(2) != v.Dim(2) {
		return fmt.Errorf("q has length %d and v has length %d; they must be equal", q.Dim(2), v.Dim(2))
	}
	if err := checkDeltaGates(v, logDecay, beta); err != nil {
		return err
	}
	if err := checkFinite("Scale", c.Scale); err != nil {
		return err
	}
	sequences, err := countSequences("q", q, c.Starts, q.Dim(2))
	if err != nil || c.InitialState == nil {
		return err
	}
	return checkDeltaState("InitialState", c.InitialState, []int{sequences, v.Dim(1), q.Dim(3), v.Dim(3)})
}

// checkGatedDeltaStep returns an error if the arguments of GatedDeltaStep are invalid.
func checkGatedDeltaStep(q, k, v, logDecay, beta, state *mlxc.Array, scale float32) error {
	if err := checkDeltaHeads(q, k, v, "batch", "heads", "head_dim"); err != nil {
		return err
	}
	if err := checkDeltaGates(v, logDecay, beta); err != nil {
		return err
	}
	if err := checkFinite("scale", scale); err != nil {
		return err
	}
	return checkDeltaState("state", state, []int{q.Dim(0), v.Dim(1), q.Dim(2), v.Dim(2)})
}

// checkDeltaHeads returns an error if q, k and v are invalid or do not fit each other.
func checkDeltaHeads(q, k, v *mlxc.Array, axes ...string) error {
	for _, o := range []namedArray{{"q", q}, {"k", k}, {"v", v}} {
		if err := requireArray(o.name, o.array); err != nil {
			return err
		}
		if o.array.NDim() != len(axes) {
			return fmt.Errorf("%s has the shape %v; it must be [%s]: use Reshape and Transpose",
				o.name, o.array.Shape(), strings.Join(axes, ", "))
		}
		if err := checkRows(o.name, o.array); err != nil {
			return err
		}
		if o.array.DType() != q.DType() {
			return fmt.Errorf("q is %v and %s is %v; they must have one dtype: use AsType",
				q.DType(), o.name, o.array.DType())
		}
		if width := o.array.Dim(-1); width < 16 || width > widestHead || width%16 != 0 {
			return fmt.Errorf("%s has rows of %d elements; the width must be a multiple of 16 from 16 to %d: pad with zeros",
				o.name, width, widestHead)
		}
		if o.array.Dim(1) == 0 {
			return fmt.Errorf("%s has the shape %v; it must have at least one head", o.name, o.array.Shape())
		}
	}
	switch {
	case !slices.Equal(q.Shape(), k.Shape()):
		return fmt.Errorf("q has the shape %v and k has the shape %v; they must be equal", q.Shape(), k.Shape())
	case q.Dim(0) != v.Dim(0):
		return fmt.Errorf("q has %d batches and v has %d; they must be equal", q.Dim(0), v.Dim(0))
	case v.Dim(1)%q.Dim(1) != 0:
		return fmt.Errorf("v has %d heads; their number must be a multiple of the %d heads of q and k", v.Dim(1), q.Dim(1))
	}
	return nil
}

// checkDeltaGates returns an error unless logDecay and beta have one number for each row of v.
func checkDeltaGates(v, logDecay, beta *mlxc.Array) error {
	rows := v.Shape()[:v.NDim()-1]
	for _, o := range []namedArray{{"logDecay", logDecay}, {"beta", beta}} {
		if err := requireArray(o.name, o.array); err != nil {
			return err
		}
		if shape := o.array.Shape(); len(shape) == v.NDim() {
			return fmt.Errorf("%s has the shape %v; it must be %v: a number for each channel is not supported",
				o.name, shape, rows)
		} else if !slices.Equal(shape, rows) {
			return fmt.Errorf("%s has the shape %v; it must be %v, one number for each row of v", o.name, shape, rows)
		}
		if t := o.array.DType(); t != v.DType() && t != mlxc.Float32 {
			return fmt.Errorf("%s is %v; it must be float32, or %v like v: use AsType", o.name, t, v.DType())
		}
	}
	return nil
}

// checkDeltaState returns an error unless a state has this shape.
func checkDeltaState(name string, state *mlxc.Array, shape []int) error {
	if err := checkRows(name, state); err != nil {
		return err
	}
	if !slices.Equal(state.Shape(), shape) {
		return fmt.Errorf("%s has the shape %v; it must be [sequences, value heads, head_dim, value_dim], %v",
			name, state.Shape(), shape)
	}
	return nil
}

func checkFinite(name string, value float32) error {
	if math.IsNaN(float64(value)) || math.IsInf(float64(value), 0) {
		return fmt.Errorf("%s is %v; it must be finite, or 0 for head_dim^-1/2", name, value)
	}
	return nil
}

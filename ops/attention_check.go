package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// checkAttention checks the arguments of attention.
func checkAttention(q, k, v *mlxc.Array, c AttentionConfig) error {
	if err := checkHeads(q, k, v); err != nil {
		return err
	}
	finite := func(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }
	switch {
	case !finite(c.Scale):
		return fmt.Errorf("the scale is %v: it must be finite, or 0 for head_dim^-1/2", c.Scale)
	case !finite(c.SoftCap) || c.SoftCap < 0:
		return fmt.Errorf("SoftCap is %v: it must be finite and positive, or 0 for none", c.SoftCap)
	case c.Window != nil && (c.Window.Left < Unbounded || c.Window.Right < Unbounded):
		return fmt.Errorf("the window is %+v: a side must be 0, positive or Unbounded", *c.Window)
	}
	if err := checkMask(q, k, c.Mask); err != nil {
		return err
	}
	if err := checkSinks(q, c.Sinks); err != nil {
		return err
	}
	return c.checkStarts(q, k)
}

// checkHeads checks q, k and v against each other.
func checkHeads(q, k, v *mlxc.Array) error {
	operands := []struct {
		name  string
		array *mlxc.Array
	}{{"q", q}, {"k", k}, {"v", v}}
	for _, o := range operands {
		if err := requireArray(o.name, o.array); err != nil {
			return err
		}
		if o.array.NDim() != 4 {
			return fmt.Errorf("%s must have the axes [batch, heads, length, head_dim]: use Reshape and Transpose", o.name)
		}
		if err := checkRows(o.name, o.array); err != nil {
			return err
		}
		if o.array.DType() != q.DType() {
			return fmt.Errorf("q is %v and %s %v: convert one with AsType", q.DType(), o.name, o.array.DType())
		}
		if o.array.Dim(0) != q.Dim(0) {
			return fmt.Errorf("q has %d batches and %s has %d", q.Dim(0), o.name, o.array.Dim(0))
		}
		if o.array.Dim(1) == 0 || o.array.Dim(3) == 0 {
			return fmt.Errorf("%s is empty: there must be a head and a column", o.name)
		}
	}
	switch {
	case k.Dim(1) != v.Dim(1) || k.Dim(2) != v.Dim(2):
		return errors.New("k and v must have the same heads and the same length")
	case q.Dim(1)%k.Dim(1) != 0:
		return fmt.Errorf("q has %d heads, which is no multiple of the %d of k and v", q.Dim(1), k.Dim(1))
	case q.Dim(3) != k.Dim(3):
		return fmt.Errorf("q has a head_dim of %d and k one of %d", q.Dim(3), k.Dim(3))
	}
	return nil
}

// checkMask checks a mask, which may be nil.
func checkMask(q, k, mask *mlxc.Array) error {
	if mask == nil {
		return nil
	}
	if err := mask.Err(); err != nil {
		return err
	}
	if t := mask.DType(); t != mlxc.Bool && !slices.Contains(gradientDTypes, t) {
		return fmt.Errorf("the mask is %v: it must be bool, or float32, float16 or bfloat16; convert with AsType", t)
	}
	scores := []int{q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(2)}
	shape := mask.Shape()
	fits := len(shape) <= len(scores)
	for i := 1; fits && i <= len(shape); i++ {
		n := shape[len(shape)-i]
		fits = n == 1 || n == scores[len(scores)-i]
	}
	if !fits {
		return fmt.Errorf("the mask has the shape %v, which cannot be broadcast to %v, [batch, heads, queries, keys]", shape, scores)
	}
	return nil
}

// checkSinks checks sinks, which may be nil.
func checkSinks(q, sinks *mlxc.Array) error {
	if sinks == nil {
		return nil
	}
	if err := sinks.Err(); err != nil {
		return err
	}
	if !slices.Contains(gradientDTypes, sinks.DType()) {
		return fmt.Errorf("the sinks are %v: they must be float32, float16 or bfloat16; convert with AsType", sinks.DType())
	}
	if !slices.Equal(sinks.Shape(), []int{q.Dim(1)}) {
		return fmt.Errorf("the sinks must have one axis of %d elements, one for each head of q", q.Dim(1))
	}
	return nil
}

// checkStarts checks the starts of packed sequences, which may be nil.
func (c AttentionConfig) checkStarts(q, k *mlxc.Array) error {
	if c.QueryStarts == nil && c.KeyStarts == nil {
		return nil
	}
	if c.QueryStarts == nil || c.KeyStarts == nil {
		return errors.New("QueryStarts and KeyStarts belong together: give both or neither")
	}
	if q.Dim(0) != 1 {
		return fmt.Errorf("there are %d batches: packed sequences lie one after the other in one", q.Dim(0))
	}
	for _, s := range []struct {
		name   string
		starts *mlxc.Array
		length int
	}{{"QueryStarts", c.QueryStarts, q.Dim(2)}, {"KeyStarts", c.KeyStarts, k.Dim(2)}} {
		if err := requireArray(s.name, s.starts); err != nil {
			return err
		}
		if s.starts.DType() != mlxc.Int32 || s.starts.NDim() != 1 || s.starts.Dim(0) < 2 {
			return fmt.Errorf("%s must be int32 with one axis, of at least two elements", s.name)
		}
		if err := checkAscent(s.name, s.starts, s.length); err != nil {
			return err
		}
	}
	if c.QueryStarts.Dim(0) != c.KeyStarts.Dim(0) {
		return fmt.Errorf("QueryStarts is for %d sequences and KeyStarts for %d", c.QueryStarts.Dim(0)-1, c.KeyStarts.Dim(0)-1)
	}
	return nil
}

// checkAscent looks at the starts where that costs little. Starts that are not computed
// yet and wrong give numbers without a meaning.
func checkAscent(name string, starts *mlxc.Array, length int) error {
	if !readableWithoutSync(starts) {
		return nil
	}
	values, err := mlxc.ToSlice[int32](starts)
	if err != nil {
		return err
	}
	first, last := values[0], values[len(values)-1]
	switch {
	case first != 0 || int(last) != length:
		return fmt.Errorf("%s goes from %d to %d: it must ascend from 0 to the length, %d", name, first, last, length)
	case !slices.IsSorted(values):
		return fmt.Errorf("%s must ascend from 0 to the length, %d: it goes back", name, length)
	}
	return nil
}

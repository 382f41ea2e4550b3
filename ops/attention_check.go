package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// checkAttention returns an error if the arguments of attention are invalid.
func checkAttention(q, k, v *mlxc.Array, c AttentionConfig) error {
	if err := checkHeads(q, k, v); err != nil {
		return err
	}
	finite := func(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }
	switch {
	case !finite(c.Scale):
		return fmt.Errorf("Scale is %v; it must be finite, or 0 for head_dim^-1/2", c.Scale)
	case !finite(c.SoftCap) || c.SoftCap < 0:
		return fmt.Errorf("SoftCap is %v; it must be finite and positive, or 0 for no cap", c.SoftCap)
	case c.Window != nil && (c.Window.Left < Unbounded || c.Window.Right < Unbounded):
		return fmt.Errorf("Window is %+v; a side must be at least 0, or Unbounded", *c.Window)
	}
	if err := checkMask(q, k, c.Mask); err != nil {
		return err
	}
	if err := checkSinks(q, c.Sinks); err != nil {
		return err
	}
	return c.checkStarts(q, k)
}

// checkHeads returns an error if q, k and v are invalid or do not fit each other.
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
			return fmt.Errorf(
				"%s has the shape %v; it must be [batch, heads, length, head_dim]: use Reshape and Transpose",
				o.name, o.array.Shape())
		}
		if err := checkRows(o.name, o.array); err != nil {
			return err
		}
		if o.array.DType() != q.DType() {
			return fmt.Errorf("q is %v and %s is %v; they must have one dtype: use AsType",
				q.DType(), o.name, o.array.DType())
		}
		if o.array.Dim(0) != q.Dim(0) {
			return fmt.Errorf("q has %d batches and %s has %d; they must be equal", q.Dim(0), o.name, o.array.Dim(0))
		}
		if o.array.Dim(1) == 0 || o.array.Dim(3) == 0 {
			return fmt.Errorf("%s has the shape %v; heads and head_dim must be at least 1", o.name, o.array.Shape())
		}
	}
	switch {
	case k.Dim(1) != v.Dim(1) || k.Dim(2) != v.Dim(2):
		return fmt.Errorf("k has %d heads of length %d and v has %d of length %d; they must be equal",
			k.Dim(1), k.Dim(2), v.Dim(1), v.Dim(2))
	case q.Dim(1)%k.Dim(1) != 0:
		return fmt.Errorf("q has %d heads; their number must be a multiple of the %d heads of k and v",
			q.Dim(1), k.Dim(1))
	case q.Dim(3) != k.Dim(3):
		return fmt.Errorf("q has head_dim %d and k has head_dim %d; they must be equal", q.Dim(3), k.Dim(3))
	}
	return nil
}

// checkMask returns an error if a mask is invalid. It may be nil.
func checkMask(q, k, mask *mlxc.Array) error {
	if mask == nil {
		return nil
	}
	if err := mask.Err(); err != nil {
		return err
	}
	if t := mask.DType(); t != mlxc.Bool && !slices.Contains(gradientDTypes, t) {
		return fmt.Errorf("Mask is %v; it must be bool, float32, float16 or bfloat16: use AsType", t)
	}
	scores := []int{q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(2)}
	shape := mask.Shape()
	fits := len(shape) <= len(scores)
	for i := 1; fits && i <= len(shape); i++ {
		n := shape[len(shape)-i]
		fits = n == 1 || n == scores[len(scores)-i]
	}
	if !fits {
		return fmt.Errorf("Mask has the shape %v; it must broadcast to [batch, heads, queries, keys], %v",
			shape, scores)
	}
	return nil
}

// checkSinks returns an error if sinks are invalid. They may be nil.
func checkSinks(q, sinks *mlxc.Array) error {
	if sinks == nil {
		return nil
	}
	if err := sinks.Err(); err != nil {
		return err
	}
	if !slices.Contains(gradientDTypes, sinks.DType()) {
		return fmt.Errorf("Sinks is %v; it must be float32, float16 or bfloat16: use AsType", sinks.DType())
	}
	if !slices.Equal(sinks.Shape(), []int{q.Dim(1)}) {
		return fmt.Errorf("Sinks has the shape %v; it must be [%d], one for each head of q", sinks.Shape(), q.Dim(1))
	}
	return nil
}

// checkStarts returns an error if the starts of packed sequences are invalid. Both may be nil.
func (c AttentionConfig) checkStarts(q, k *mlxc.Array) error {
	if c.QueryStarts == nil && c.KeyStarts == nil {
		return nil
	}
	if c.QueryStarts == nil || c.KeyStarts == nil {
		return errors.New("only one of QueryStarts and KeyStarts is set; set both or neither")
	}
	if err := checkOneBatch("q", q); err != nil {
		return err
	}
	for _, s := range []struct {
		name   string
		starts *mlxc.Array
		length int
	}{{"QueryStarts", c.QueryStarts, q.Dim(2)}, {"KeyStarts", c.KeyStarts, k.Dim(2)}} {
		if err := checkStartsArray(s.name, s.starts, s.length); err != nil {
			return err
		}
	}
	if c.QueryStarts.Dim(0) != c.KeyStarts.Dim(0) {
		return fmt.Errorf("QueryStarts has %d sequences and KeyStarts has %d; they must be equal",
			c.QueryStarts.Dim(0)-1, c.KeyStarts.Dim(0)-1)
	}
	return nil
}

// checkOneBatch returns an error unless an array with packed sequences has one batch.
func checkOneBatch(name string, x *mlxc.Array) error {
	if x.Dim(0) != 1 {
		return fmt.Errorf("%s has %d batches; packed sequences need exactly 1", name, x.Dim(0))
	}
	return nil
}

// countSequences returns the number of sequences of x, whose axis of steps has this length: its batches, or with starts
// the packed sequences. It returns an error if the starts are invalid.
func countSequences(name string, x, starts *mlxc.Array, length int) (int, error) {
	if starts == nil {
		return x.Dim(0), nil
	}
	if err := checkOneBatch(name, x); err != nil {
		return 0, err
	}
	if err := checkStartsArray("Starts", starts, length); err != nil {
		return 0, err
	}
	return starts.Dim(0) - 1, nil
}

// checkStartsArray returns an error if the starts of packed sequences along an axis of this length are invalid.
func checkStartsArray(name string, starts *mlxc.Array, length int) error {
	if err := requireArray(name, starts); err != nil {
		return err
	}
	if starts.DType() != mlxc.Int32 || starts.NDim() != 1 || starts.Dim(0) < 2 {
		return fmt.Errorf("%s is %v of shape %v; it must be int32 with one axis of at least two elements",
			name, starts.DType(), starts.Shape())
	}
	return checkAscent(name, starts, length)
}

// checkAscent returns an error if the starts do not ascend from 0 to length. It accepts starts that cannot be read
// without synchronization.
func checkAscent(name string, starts *mlxc.Array, length int) error {
	if !readableWithoutSync(starts) {
		return nil
	}
	type ascentTo int
	return starts.CheckOnce(ascentTo(length), func() error {
		values, err := mlxc.ToSlice[int32](starts)
		if err != nil {
			return err
		}
		first, last := values[0], values[len(values)-1]
		switch {
		case first != 0 || int(last) != length:
			return fmt.Errorf("%s goes from %d to %d; it must ascend from 0 to the length, %d", name, first, last, length)
		case !slices.IsSorted(values):
			return fmt.Errorf("%s descends; it must ascend from 0 to the length, %d", name, length)
		}
		return nil
	})
}

package mlxc

import (
	"fmt"
	"slices"
)

// GatedDeltaConfig holds the options of GatedDeltaUpdate.
type GatedDeltaConfig struct {
	State *Array // the state before the first position: (batch, value_heads, value_dim, head_dim); nil for zeros
	Mask  *Array // a boolean (batch, length), false at positions that are left out; nil for none
}

// GatedDeltaUpdate is MLX's gated delta rule (Yang et al., "Gated Delta Networks", 2024, equation 10), a linear
// attention with a state S of shape (value_dim, head_dim) per value head. At each position, with its q, k, v, gate g
// and beta b,
//
//	S ← g·S,  S ← S + b·(v − S·k)·kᵀ,  out = S·q
//
// q and k have shape (batch, length, heads, head_dim), v has (batch, length, value_heads, value_dim), gates and beta
// have (batch, length, value_heads). value_heads is a multiple of heads, and consecutive value heads share a head. No
// size may be 0. A position that the mask leaves out does not change the state, and its output is 0. out has v's shape;
// state is S after the last position. It needs MLX 0.32.4 and has a gradient.
func GatedDeltaUpdate(q, k, v, gates, beta *Array, c GatedDeltaConfig) (out, state *Array) {
	if err := c.check(q, k, v, gates, beta); err != nil {
		bad := invalid(opError("gated_delta_update", err, q, k, v, gates, beta, c.State, c.Mask))
		return bad, bad
	}
	return pair(mlxFastGatedDeltaUpdate(q, k, v, gates, beta, c.State, c.Mask))
}

// check returns an error if shapes do not match: MLX's kernels for GPUs do not check them.
func (c GatedDeltaConfig) check(q, k, v, gates, beta *Array) error {
	for _, a := range []*Array{q, k, v, gates, beta, c.State, c.Mask} {
		if a != nil && a.Err() != nil {
			return nil // the operation returns that error
		}
	}
	if q.NDim() != 4 || v.NDim() != 4 {
		return fmt.Errorf("q has %d axes and v has %d: both must have 4", q.NDim(), v.NDim())
	}
	batch, length, heads, headDim := q.Dim(0), q.Dim(1), q.Dim(2), q.Dim(3)
	valueHeads, valueDim := v.Dim(2), v.Dim(3)
	if q.Size() == 0 || v.Size() == 0 {
		return fmt.Errorf("q is %s and v is %s: no size may be 0", shapeText(q.Shape()), shapeText(v.Shape()))
	}
	if valueHeads%heads != 0 {
		return fmt.Errorf("there are %d value heads: the number must be a multiple of the %d heads", valueHeads, heads)
	}
	for _, has := range []struct {
		name string
		a    *Array
		want []int
	}{
		{"k", k, q.Shape()},
		{"v", v, []int{batch, length, valueHeads, valueDim}},
		{"gates", gates, []int{batch, length, valueHeads}},
		{"beta", beta, []int{batch, length, valueHeads}},
		{"State", c.State, []int{batch, valueHeads, valueDim, headDim}},
		{"Mask", c.Mask, []int{batch, length}},
	} {
		if has.a != nil && !slices.Equal(has.a.Shape(), has.want) {
			return fmt.Errorf("%s has the shape %s: it must be %s", has.name, shapeText(has.a.Shape()), shapeText(has.want))
		}
	}
	if c.Mask != nil && c.Mask.DType() != Bool {
		return fmt.Errorf("Mask is %v: it must be bool", c.Mask.DType())
	}
	return nil
}

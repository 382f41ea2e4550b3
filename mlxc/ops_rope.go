package mlxc

import (
	"errors"
	"fmt"
)

// RoPEConfig says how RoPE rotates. The zero value rotates all dimensions, in halves,
// with the base 10000, from position 0.
type RoPEConfig struct {
	Dims        int     // the first dimensions, which are rotated, an even number; 0 stands for all
	Traditional bool    // pairs of neighbours, instead of pairs from the two halves
	Base        float32 // of the frequencies, positive; 0 stands for 10000
	Scale       float32 // of the positions; 0 stands for 1
	Offset      int     // the position of the first row
	// Freqs, of shape (Dims/2), are the reciprocals of the frequencies, instead of those
	// of Base; nil for these. They have no gradient.
	Freqs *Array
}

// RoPE is MLX's fast rotary position embedding (Su et al., "RoFormer", 2021, section
// 3.2.2). x has the shape (batch,…,length,head_dim), with three axes at least, and is
// floating-point. For each i below Dims/2, row r is rotated in the plane of its elements i
// and i+Dims/2, or with Traditional 2i and 2i+1, by the angle
// Scale·(Offset+r)·Base^(−2i/Dims), computed in float32; the other elements stay. The
// result has x's shape and dtype. Its gradient is MLX's own.
func RoPE(x *Array, c RoPEConfig) *Array {
	base, err := c.complete(x)
	if err != nil {
		return invalid(opError("rope", err, x, c.Freqs))
	}
	return mlxFastRope(x, c.Dims, c.Traditional, base, c.Scale, c.Offset, c.Freqs).zerosIfEmpty()
}

// RoPEDynamic is RoPE with the position of the first row in an array, so that a compiled
// function need not be traced again for another one: offset is an integer scalar, or has
// the shape (batch). The config's Offset must be 0.
func RoPEDynamic(x, offset *Array, c RoPEConfig) *Array {
	base, err := c.complete(x)
	if err == nil && c.Offset != 0 {
		err = errors.New("the offset is an array: the config's must be 0")
	}
	if err != nil {
		return invalid(opError("rope", err, x, offset, c.Freqs))
	}
	// MLX's rules give it a gradient that is none.
	constant := offset.StopGradient()
	defer constant.Free()
	return mlxFastRopeDynamic(x, c.Dims, c.Traditional, base, c.Scale, constant, c.Freqs).zerosIfEmpty()
}

// complete puts the defaults in place, and gives the base, nil if there are frequencies.
func (c *RoPEConfig) complete(x *Array) (base *float32, err error) {
	if c.Dims == 0 {
		c.Dims = x.Dim(-1)
	}
	if c.Base == 0 {
		c.Base = 10000
	}
	if c.Scale == 0 {
		c.Scale = 1
	}
	if c.Dims == 2 {
		// Both ways there is one pair, the same. MLX's gradient is wrong the traditional
		// way: that of a slice with a stride, of one element.
		c.Traditional = false
	}
	switch {
	case !(c.Base > 0):
		return nil, fmt.Errorf("the base is %v: it must be positive", c.Base)
	case c.Dims < 0: // before MLX, which counts in other types
		return nil, fmt.Errorf("%d dimensions cannot be rotated", c.Dims)
	case c.Freqs != nil:
		return nil, nil
	}
	return &c.Base, nil
}

package mlxc

import (
	"errors"
	"fmt"
)

// RoPEConfig holds the options of RoPE. The zero value rotates all dimensions, in halves, with base 10000, from
// position 0.
type RoPEConfig struct {
	Dims        int     // number of leading dimensions to rotate, even; 0 for all
	Traditional bool    // rotates pairs of neighbors instead of pairs from the two halves
	Base        float32 // base of the frequencies, positive; 0 for 10000
	Scale       float32 // factor of the positions; 0 for 1
	Offset      int     // position of the first row
	// Freqs, of shape (Dims/2), holds the reciprocals of the frequencies: row r is rotated by
	// Scale·(Offset+r)/Freqs[i]. nil stands for Base^(2i/Dims). Freqs has no gradient.
	Freqs *Array
}

// RoPE is MLX's fused rotary position embedding (Su et al., "RoFormer", 2021, section 3.2.2). x is floating-point of
// shape (batch,…,length,head_dim), with at least three axes. For each i below Dims/2, row r is rotated in the plane of
// its elements i and i+Dims/2, or 2i and 2i+1 with Traditional, by the angle Scale·(Offset+r)·Base^(−2i/Dims), computed
// in float32. The other elements stay. The result has x's shape and dtype, and a gradient.
func RoPE(x *Array, c RoPEConfig) *Array {
	base, err := c.complete(x)
	if err != nil {
		return invalid(opError("rope", err, x, c.Freqs))
	}
	return mlxFastRope(x, c.Dims, c.Traditional, base, c.Scale, c.Offset, c.Freqs).zerosIfEmpty()
}

// RoPEDynamic is RoPE with an array as the position of the first row, so that a compiled function is not traced again
// for another position. offset is an integer scalar or has shape (batch). The config's Offset must be 0.
func RoPEDynamic(x, offset *Array, c RoPEConfig) *Array {
	base, err := c.complete(x)
	if err == nil && c.Offset != 0 {
		err = errors.New("the config's Offset must be 0: the offset is an array")
	}
	if err != nil {
		return invalid(opError("rope", err, x, offset, c.Freqs))
	}
	// MLX's rules would return a meaningless gradient (fault rope-offset-gradient).
	constant := offset.StopGradient()
	defer constant.Free()
	return mlxFastRopeDynamic(x, c.Dims, c.Traditional, base, c.Scale, constant, c.Freqs).zerosIfEmpty()
}

// complete sets the defaults, and returns the base, or nil if Freqs is set.
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
		// With one pair, both layouts are equal. MLX's gradient of the traditional layout is then wrong: it is the
		// gradient of a strided slice of one element (fault rope-gradient-single-pair).
		c.Traditional = false
	}
	switch {
	case !(c.Base > 0):
		return nil, fmt.Errorf("the base is %v: it must be positive", c.Base)
	case c.Dims < 0:
		return nil, fmt.Errorf("Dims is %d: it must not be negative", c.Dims)
	case c.Freqs != nil:
		return nil, nil
	}
	return &c.Base, nil
}

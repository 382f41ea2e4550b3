package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// composed is SSMScan composed of basic MLX operations, step after step. Its gradient is MLX's. Axes may have no
// elements.
func (in ssmInputs) composed() []*mlxc.Array {
	state := in.state
	if state == nil {
		state = mlxc.Zeros(mlxc.Float32, in.stateShape(in.sequences())...)
	}
	if in.x.Size() == 0 {
		return []*mlxc.Array{mlxc.Zeros(in.x.DType(), in.x.Shape()...), state.Reshape(state.Shape()...)}
	}
	steps := func(v *mlxc.Array) []*mlxc.Array { return v.AsType(mlxc.Float32).Unstack(1) }
	xs, dts, bs, cs := steps(in.x), steps(in.dt), steps(in.b), steps(in.c)
	ys := make([]*mlxc.Array, len(xs))
	walk := newPackedWalk(in.starts, state, len(xs))
	for t := range ys {
		state = walk.enter(state, t)
		ys[t], state = ssmStep(xs[t], dts[t], in.a, bs[t], cs[t], in.d, state)
		walk.leave(state, t)
	}
	return []*mlxc.Array{mlxc.Stack(1, ys...).AsType(in.x.DType()), walk.final(state)}
}

// ssmStep is one step of SSMScan, for float32 arrays without a length axis. d may be nil.
func ssmStep(x, dt, a, b, c, d, state *mlxc.Array) (y, next *mlxc.Array) {
	batches, heads, headDim, groups := x.Dim(0), x.Dim(1), x.Dim(2), b.Dim(1)
	// The heads of a group get an axis of their own, along which b and c are broadcast.
	grouped := func(v *mlxc.Array, axes ...int) *mlxc.Array {
		return v.Reshape(append([]int{batches, groups, v.Size() / (batches * groups * product(axes))}, axes...)...)
	}
	width := b.Dim(2)
	decay := grouped(dt.Mul(a).Exp(), 1, 1)
	input := grouped(x.Mul(dt.ExpandDims(-1)), headDim, 1).Mul(grouped(b, 1, width))
	h := decay.Mul(grouped(state, headDim, width)).Add(input)
	y = h.Mul(grouped(c, 1, width)).Sum(-1).Reshape(batches, heads, headDim)
	if d != nil {
		y = y.Add(x.Mul(d.ExpandDims(-1)))
	}
	return y, h.Reshape(state.Shape()...)
}

func product(sizes []int) int {
	n := 1
	for _, size := range sizes {
		n *= size
	}
	return n
}

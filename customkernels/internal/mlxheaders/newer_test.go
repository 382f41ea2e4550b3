package mlxheaders

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// sinceNewer returns text, a part of template arguments, if the loaded MLX has the template parameters that 0.32.4
// added. Otherwise it returns "".
func sinceNewer(text string) string {
	if mlxtest.AtLeast("0.32.4") {
		return text
	}
	return ""
}

// mlxNewer returns the cases of headers that MLX 0.32.4 added.
func (c *corpus) mlxNewer() []headerCase {
	if !mlxtest.AtLeast("0.32.4") {
		return nil
	}
	const gatedDelta = "gated_delta_update.h"
	return []headerCase{
		{"cross_entropy.h", nil, "cross_entropy", "{T}, float, 4", mlxtest.FloatDTypes, nil, func(d mlxc.DType) headerLaunch { return c.crossEntropy(d, false) }},
		{"cross_entropy.h", nil, "cross_entropy_vjp", "{T}, float, 4", mlxtest.FloatDTypes, nil, func(d mlxc.DType) headerLaunch { return c.crossEntropy(d, true) }},
		{"sdpa_blocked.h", nil, "sdpa_blocked_scale_copy", "{T}", onlyFloat32, nil, c.blockedScaleCopy},
		{"sdpa_blocked.h", nil, "sdpa_blocked_causal_mask", "{T}", onlyFloat32, nil, nil},
		{gatedDelta, nil, "gated_delta_seq", "{T}, 64, 32, 2, 4, 16", mlxtest.FloatDTypes, nil, func(d mlxc.DType) headerLaunch { return c.gatedDelta(d, 1) }},
		{gatedDelta, nil, "gated_delta_fused_chunk", "{T}, 64, 32, 2, 4, 8", onlyFloat32, nil, func(d mlxc.DType) headerLaunch { return c.gatedDelta(d, 8) }},
		{"gated_delta_update_vjp.h", nil, "gated_delta_vjp_seq", "{T}, 64, 32, 2, 4, 16", onlyFloat32, nil, nil},
	}
}

// crossEntropy is the loss of each row, or the gradient of the logits. Negative targets count from the end.
func (c *corpus) crossEntropy(d mlxc.DType, gradient bool) headerLaunch {
	const rows, classes, threads = 3, 301, 96
	x, _ := c.Normal(d, rows, classes)
	logits := x.AsType(mlxc.Float32)
	targets := mlxc.FromSlice([]int32{7, 300, -2}, rows)
	chosen := mlxc.FromSlice([]int32{7, 300, classes - 2}, rows, 1)
	loss := logits.LogSumExp(1).Sub(logits.TakeAlongAxis(chosen, 1).Reshape(rows))
	l := headerLaunch{grid: [3]int{threads * rows, 1, 1}, threadgroup: [3]int{threads, 1, 1}}
	want := loss
	if gradient {
		cotangent, _ := c.Normal(mlxc.Float32, rows)
		l.arguments = []any{x, targets, loss, cotangent, result{dtype: d, shape: []int{rows, classes}}, int32(classes)}
		oneHot := mlxc.Arange(mlxc.Int32, 0, classes, 1).Reshape(1, classes).Equal(chosen).AsType(mlxc.Float32)
		want = logits.Softmax(1).Sub(oneHot).Mul(cotangent.Reshape(rows, 1))
	} else {
		l.arguments = []any{x, targets, result{dtype: mlxc.Float32, shape: []int{rows}}, int32(classes)}
	}
	l.check = func(t testing.TB, got arrays) {
		mlxtest.RequireNear(t, mlxtest.Values(t, want), got[0], mlxtest.Rounded(d, 64, 8))
	}
	return l
}

// blockedScaleCopy multiplies a block of query rows by the scale.
func (c *corpus) blockedScaleCopy(d mlxc.DType) headerLaunch {
	const batch, heads, length, headDim, rows, offset, scale = 2, 3, 45, 20, 17, 25, 0.125
	q, _ := c.Normal(d, batch, heads, length, headDim)
	return headerLaunch{
		grid: [3]int{headDim, rows, batch * heads}, threadgroup: [3]int{4, 4, 2},
		arguments: []any{
			q,
			result{dtype: d, shape: []int{batch, heads, rows, headDim}},
			float32(scale),
			[]int64{heads * length * headDim, length * headDim, headDim},
			int32(heads), int32(rows), int32(headDim), int32(offset),
		},
		check: func(t testing.TB, got arrays) {
			want := q.Slice([]int{0, 0, offset, 0}, []int{batch, heads, offset + rows, headDim}, []int{1, 1, 1, 1}).MulScalar(scale)
			mlxtest.RequireNear(t, mlxtest.Values(t, want), got[0], mlxtest.Bound{})
		},
	}
}

// gatedDelta is the gated delta rule with two value heads for each head, in steps of chunk positions. A simdgroup has
// one row of the state if chunk is 1, and 8 rows otherwise.
func (c *corpus) gatedDelta(d mlxc.DType, chunk int) headerLaunch {
	const batch, length, heads, valueHeads, headDim, valueDim = 2, 21, 2, 4, 64, 32
	q, _ := c.Uniform(d, -0.2, 0.2, batch, length, heads, headDim)
	k, _ := c.Uniform(d, -0.2, 0.2, batch, length, heads, headDim)
	v, _ := c.Normal(d, batch, length, valueHeads, valueDim)
	gates, _ := c.Uniform(d, 0.8, 1, batch, length, valueHeads)
	beta, _ := c.Uniform(d, 0, 1, batch, length, valueHeads)
	f := mlxc.Float32
	state, _ := c.Normal(f, batch, valueHeads, valueDim, headDim)
	simdgroups := valueDim
	if chunk > 1 {
		simdgroups /= 8
	}
	arguments := []any{
		q, k, v, state, gates, beta,
		result{dtype: d, shape: []int{batch, length, valueHeads, valueDim}},
		result{dtype: f, shape: []int{batch, valueHeads, valueDim, headDim}},
		int32(length),
	}
	if chunk == 1 {
		arguments = append(arguments, nil) // checkpoints of the state, for the gradient
	}
	return headerLaunch{
		grid: [3]int{32, simdgroups, batch * valueHeads}, threadgroup: [3]int{32, 4, 1},
		arguments: arguments,
		check: func(t testing.TB, got arrays) {
			out, last := mlxc.GatedDeltaUpdate(q.AsType(f), k.AsType(f), v.AsType(f), gates.AsType(f), beta.AsType(f), mlxc.GatedDeltaConfig{State: state})
			bound := mlxtest.Rounded(d, 2*headDim, 8)
			mlxtest.RequireNear(t, mlxtest.Values(t, out), got[0], bound)
			mlxtest.RequireNear(t, mlxtest.Values(t, last), got[1], mlxtest.Rounded(f, 2*headDim*length, 8))
		},
	}
}

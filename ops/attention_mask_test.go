package ops

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// The weights of n keys are exactly 1/n under a mask that makes all scores huge, as for rows of padding.
func TestAttentionOfHugeMask(t *testing.T) {
	for _, dtype := range sampleDTypes(2) {
		t.Run(dtype.String(), func(t *testing.T) {
			const n = 32
			q, k, v := mlxc.Zeros(dtype, 1, 1, 8, 8), mlxc.Zeros(dtype, 1, 1, n, 8), normal(1, dtype, 1, 1, n, 8)
			mask := mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(-1e9)), 8, n)
			_, grads, err := mlxc.VJP(func(a arrays) arrays {
				return arrays{Attention(a[0], a[1], a[2], AttentionConfig{Mask: mask})}
			}, arrays{q, k, v}, arrays{mlxc.Ones(dtype, 1, 1, 8, 8)})
			require.NoError(t, err)
			closeTo(t, mlxc.Full(dtype, mlxc.Scalar(float32(8.0/n)), 1, 1, n, 8), grads[2])
		})
	}
}

// A row that sees no key has the output 0, lse −∞ and no gradient for every way to hide keys. The other rows are not
// affected.
func TestAttentionOfRowsThatSeeNothing(t *testing.T) {
	const queries, keys = 6, 3
	inf := float32(math.Inf(-1))
	seen, bias := make([]bool, queries*keys), make([]float32, queries*keys)
	for i := range seen {
		seen[i] = i >= 3*keys
		if !seen[i] {
			bias[i] = inf
		}
	}
	added := mlxc.FromSlice(bias, queries, keys)
	for _, dtype := range gradientDTypes {
		q, k := normal(1, dtype, 1, 2, queries, 8), normal(2, dtype, 1, 1, keys, 8)
		configs := map[string]AttentionConfig{
			"causal":         {Causal: true},
			"window":         {Window: &Window{Left: Unbounded, Right: 0}},
			"booleans":       {Mask: mlxc.FromSlice(seen, queries, keys)},
			"minus infinity": {Mask: added.AsType(dtype)},
			"float32 mask":   {Mask: added},
			"sequences": {
				QueryStarts: mlxc.FromSlice([]int32{0, 3, 6}), KeyStarts: mlxc.FromSlice([]int32{0, 0, 3}),
			},
			"booleans, capped": {Mask: mlxc.FromSlice(seen, queries, keys), SoftCap: 2},
		}
		for i, name := range slices.Sorted(maps.Keys(configs)) {
			if !inSample(i, dtype) {
				continue
			}
			cfg := configs[name]
			t.Run(fmt.Sprintf("%v/%s", dtype, name), func(t *testing.T) {
				c := attentionCase{cfg: cfg, args: arrays{q, k, k}}
				if cfg.Mask != nil && cfg.Mask.DType() != mlxc.Bool {
					c.args = append(c.args, cfg.Mask)
				}
				cotangents := arrays{normal(3, dtype, 1, 2, queries, 8), normal(4, mlxc.Float32, 1, 2, queries)}
				outputs, grads, err := mlxc.VJP(c.function(AttentionLogSumExp), c.args, cotangents)
				require.NoError(t, err)
				for row := range 2 * queries {
					empty := row%queries < 3
					sum := float32(0)
					for d := range 8 {
						require.Equal(t, empty, mlxtest.Floats(t, outputs[0])[row*8+d] == 0)
						sum += mlxtest.Floats(t, grads[0])[row*8+d]
					}
					require.Equal(t, empty, mlxtest.Floats(t, outputs[1])[row] == inf)
					require.Equal(t, empty, sum == 0)
				}
				for _, g := range grads {
					for _, v := range mlxtest.Floats(t, g) {
						require.False(t, math.IsNaN(float64(v)))
					}
				}
			})
		}
	}
}

// A block of the mask's rows spans a whole sequence and the first rows of the next one, which see no key.
func TestMaskGradientOfSequences(t *testing.T) {
	const queries, keys = 205, 12
	c := attentionCase{args: arrays{
		normal(1, mlxc.Float32, 1, 1, queries, 8), normal(2, mlxc.Float32, 1, 1, keys, 8),
		normal(3, mlxc.Float32, 1, 1, keys, 8), normal(4, mlxc.Float32, queries, keys),
	}}
	c.cfg = AttentionConfig{
		Mask: c.args[3], Causal: true,
		QueryStarts: mlxc.FromSlice([]int32{0, 5, queries}), KeyStarts: mlxc.FromSlice([]int32{0, 9, keys}),
	}
	dout := normal(5, mlxc.Float32, 1, 1, queries, 8)
	_, want, err := mlxc.VJP(only(0, c.function(attentionMLX)), c.args, arrays{dout})
	require.NoError(t, err)
	_, got, err := mlxc.VJP(only(0, c.function(AttentionLogSumExp)), c.args, arrays{dout})
	require.NoError(t, err)
	for i := range want {
		closeTo(t, want[i], got[i])
	}
}

// The gradient of a mask that is broadcast along the keys is the sum of the gradients of a full mask. It is 0 without a
// sink and a cotangent of lse.
func TestMaskGradientBroadcastAlongKeys(t *testing.T) {
	for _, dtype := range sampleDTypes(1) {
		for _, shape := range [][]int{{2, 2, 33, 1}, {33, 1}, {2, 1, 1}, {1}} {
			t.Run(fmt.Sprint(dtype, shape), func(t *testing.T) {
				q := normal(1, dtype, 2, 2, 33, 16)
				k, v := normal(2, dtype, 2, 2, 65, 16), normal(3, dtype, 2, 2, 65, 16)
				cotangents := arrays{normal(5, dtype, 2, 2, 33, 16), normal(6, mlxc.Float32, 2, 2, 33)}
				gradient := func(sinks *mlxc.Array, outputs int, prepare func(mask *mlxc.Array) *mlxc.Array) []float32 {
					f := func(args arrays) arrays {
						cfg := AttentionConfig{Mask: prepare(args[0]), Sinks: sinks, Window: &Window{9, 9}}
						out, lse := AttentionLogSumExp(q, k, v, cfg)
						return arrays{out, lse}[:outputs]
					}
					_, grads, err := mlxc.VJP(f, arrays{normal(4, dtype, shape...)}, cotangents[:outputs])
					require.NoError(t, err)
					return mlxtest.Floats(t, grads[0])
				}
				unchanged := func(mask *mlxc.Array) *mlxc.Array { return mask }
				repeated := func(mask *mlxc.Array) *mlxc.Array {
					return mask.AsType(mlxc.Float32).BroadcastTo(2, 2, 33, 65)
				}
				for _, x := range gradient(nil, 1, unchanged) {
					require.Zero(t, x)
				}
				sinks := normal(7, dtype, 2)
				got, want := gradient(sinks, 2, unchanged), gradient(sinks, 2, repeated)
				for i := range want {
					require.InDelta(t, want[i], got[i], 0.02*max(1, math.Abs(float64(want[i]))))
				}
			})
		}
	}
}

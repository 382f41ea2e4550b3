package ops

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A mask and sinks may have another dtype than q. Their gradients have their own dtype.
func TestAttentionOfOtherDTypes(t *testing.T) {
	q, k := normal(1, mlxc.Float16, 1, 2, 5, 8), normal(2, mlxc.Float16, 1, 2, 5, 8)
	mask, sinks := normal(3, mlxc.Float32, 1, 5), normal(4, mlxc.BFloat16, 2)
	c := attentionCase{cfg: AttentionConfig{Mask: mask, Sinks: sinks}, args: arrays{q, k, k, mask, sinks}}
	dout := normal(5, mlxc.Float16, 1, 2, 5, 8)
	_, want, err := mlxc.VJP(only(0, c.function(attentionMLX)), c.args, arrays{dout})
	require.NoError(t, err)
	_, got, err := mlxc.VJP(only(0, c.function(AttentionLogSumExp)), c.args, arrays{dout})
	require.NoError(t, err)
	for i := range want {
		closeTo(t, want[i], got[i])
	}
	require.Equal(t, mlxc.Float32, got[3].DType())
	require.Equal(t, mlxc.BFloat16, got[4].DType())
}

// Operands and cotangents may have any memory layout.
func TestAttentionOfLayouts(t *testing.T) {
	for _, dtype := range sampleDTypes(1) {
		for name, x := range map[string]*mlxc.Array{
			"heads side by side": normal(1, dtype, 2, 33, 3, 16).Transpose(0, 2, 1, 3),
			"transposed":         normal(1, dtype, 2, 3, 16, 33).SwapAxes(-1, -2),
			"strided": normal(1, dtype, 2, 3, 33, 48).Slice(
				[]int{0, 0, 0, 1}, []int{2, 3, 33, 48}, []int{1, 1, 1, 3}),
			"offset": normal(1, dtype, 3, 3, 33, 16).Slice([]int{1, 0, 0, 0}, []int{3, 3, 33, 16}, nil),
			"every second row": normal(1, dtype, 2, 3, 66, 16).Slice(
				[]int{0, 0, 0, 0}, []int{2, 3, 66, 16}, []int{1, 1, 2, 1}),
			"broadcast": normal(1, dtype, 1, 3, 33, 16).BroadcastTo(2, 3, 33, 16),
		} {
			t.Run(fmt.Sprintf("%v/%s", dtype, name), func(t *testing.T) {
				dense := x.Contiguous()
				like := func(seed uint64) *mlxc.Array { return normal(seed, dtype, 2, 3, 33, 16) }
				others := arrays{like(2), like(3), like(4)}
				c := attentionCase{cfg: AttentionConfig{Causal: true}}
				for i := range 4 { // dout comes last
					with := func(x *mlxc.Array) arrays {
						all := append(arrays{}, others...)
						return append(all[:i:i], append(arrays{x}, all[i:]...)...)
					}
					a, b := with(dense), with(x)
					want, wantGrads, err := mlxc.VJP(only(0, c.function(attentionMLX)), a[:3], a[3:])
					require.NoError(t, err)
					got, grads, err := mlxc.VJP(only(0, c.function(AttentionLogSumExp)), b[:3], b[3:])
					require.NoError(t, err)
					closeTo(t, want[0], got[0])
					for j := range grads {
						closeTo(t, wantGrads[j], grads[j])
					}
				}
			})
		}
	}
}

// Operands that are not arguments of the function get no gradient.
func TestAttentionOfCaptured(t *testing.T) {
	q := normal(1, mlxc.Float32, 1, 2, 5, 8)
	k, v := normal(2, mlxc.Float32, 1, 2, 7, 8), normal(3, mlxc.Float32, 1, 2, 7, 8)
	cfg := AttentionConfig{Mask: normal(4, mlxc.Float32, 5, 7), Sinks: normal(5, mlxc.Float32, 2)}
	dout := normal(6, mlxc.Float32, 1, 2, 5, 8)
	of := func(q, k, v *mlxc.Array) arrays { return arrays{Attention(q, k, v, cfg)} }
	_, want, err := mlxc.VJP(func(a arrays) arrays { return of(a[0], a[1], a[2]) }, arrays{q, k, v}, arrays{dout})
	require.NoError(t, err)
	for i, f := range []mlxc.Func{
		func(a arrays) arrays { return of(a[0], k, v) },
		func(a arrays) arrays { return of(q, a[0], v) },
		func(a arrays) arrays { return of(q, k, a[0]) },
	} {
		_, got, err := mlxc.VJP(f, arrays{q, k, v}[i:i+1], arrays{dout})
		require.NoError(t, err)
		require.Len(t, got, 1)
		closeTo(t, want[i], got[0])
	}
	// An array that is passed several times gets the sum of the gradients.
	square := normal(7, mlxc.Float32, 1, 2, 5, 8)
	alone := func(a arrays) arrays { return arrays{Attention(a[0], a[0], a[0], AttentionConfig{Causal: true})} }
	_, got, err := mlxc.VJP(alone, arrays{square}, arrays{dout})
	require.NoError(t, err)
	apart := func(a arrays) arrays { return arrays{Attention(a[0], a[1], a[2], AttentionConfig{Causal: true})} }
	_, parts, err := mlxc.VJP(apart, arrays{square, square, square}, arrays{dout})
	require.NoError(t, err)
	closeTo(t, parts[0].Add(parts[1]).Add(parts[2]), got[0])
}

// Starts that are not evaluated are not checked, and give the same results.
func TestAttentionOfLazyStarts(t *testing.T) {
	q, k := normal(1, mlxc.Float32, 1, 2, 5, 8), normal(2, mlxc.Float32, 1, 2, 7, 8)
	queryStarts, keyStarts := mlxc.FromSlice([]int32{0, 2, 5}), mlxc.FromSlice([]int32{0, 3, 7})
	want := Attention(q, k, k, AttentionConfig{QueryStarts: queryStarts, KeyStarts: keyStarts})
	got := Attention(q, k, k, AttentionConfig{QueryStarts: lazily(queryStarts), KeyStarts: lazily(keyStarts)})
	require.Equal(t, mlxtest.Floats(t, want), mlxtest.Floats(t, got))

	// Each sequence is a separate attention.
	for _, s := range [][4]int{{0, 2, 0, 3}, {2, 5, 3, 7}} {
		part := func(x *mlxc.Array, from, to int) *mlxc.Array {
			return x.Slice([]int{0, 0, from, 0}, []int{1, 2, to, 8}, nil)
		}
		keys := part(k, s[2], s[3])
		closeTo(t, Attention(part(q, s[0], s[1]), keys, keys, AttentionConfig{}), part(got, s[0], s[1]))
	}
	// Unchecked invalid starts give unspecified numbers, but no access outside of the arrays.
	gradients := func(queryStarts, keyStarts *mlxc.Array) arrays {
		out, grads, err := mlxc.VJP(func(a arrays) arrays {
			cfg := AttentionConfig{QueryStarts: queryStarts, KeyStarts: keyStarts, Causal: true}
			return arrays{Attention(a[0], a[1], a[2], cfg)}
		}, arrays{q, k, k}, arrays{q})
		require.NoError(t, err)
		require.NoError(t, mlxc.Eval(append(out, grads...)...))
		return append(out, grads...)
	}
	for _, wrong := range [][]int32{
		{0, 9, 5}, {3, 2, 1}, {-4, 1 << 30, -1 << 31}, {1000, 1064, 1128}, {1 << 30, 1<<30 + 1, 1<<30 + 2}, {0, 0, 0},
	} {
		starts := func() *mlxc.Array { return lazily(mlxc.FromSlice(wrong)) }
		gradients(starts(), starts())
		gradients(queryStarts, starts())
		gradients(starts(), keyStarts)
	}
	// The kernels ignore the first and the last element.
	inner := gradients(lazily(mlxc.FromSlice([]int32{1, 2, 3})), lazily(mlxc.FromSlice([]int32{-5, 3, 0})))
	for i, want := range gradients(queryStarts, keyStarts) {
		require.Equal(t, mlxtest.Floats(t, want), mlxtest.Floats(t, inner[i]))
	}
}

var _ = testdevice.AlsoOnGPU(TestAttentionOfLazyStarts)

// Without batches, queries or keys, results and gradients have their shapes, and only a sink contributes to lse.
func TestAttentionWithoutElements(t *testing.T) {
	for _, c := range []struct{ batch, queries, keys int }{{0, 3, 4}, {2, 0, 4}, {2, 3, 0}, {2, 0, 0}} {
		for _, cfg := range []AttentionConfig{
			{},
			{
				Causal: true, SoftCap: 2, Sinks: normal(1, mlxc.Float32, 4),
				Mask: mlxc.Zeros(mlxc.Float32, c.queries, c.keys),
			},
		} {
			t.Run(fmt.Sprintf("%+v/%t", c, cfg.Causal), func(t *testing.T) {
				q := mlxc.Ones(mlxc.Float32, c.batch, 4, c.queries, 8)
				k := mlxc.Ones(mlxc.Float32, c.batch, 2, c.keys, 8)
				with := attentionCase{cfg: cfg, args: arrays{q, k, k}}
				if cfg.Causal {
					with.args = append(with.args, cfg.Mask, cfg.Sinks)
				}
				cotangents := arrays{q, mlxc.Ones(mlxc.Float32, c.batch, 4, c.queries)}
				outputs, grads, err := mlxc.VJP(with.function(AttentionLogSumExp), with.args, cotangents)
				require.NoError(t, err)
				require.Equal(t, q.Shape(), outputs[0].Shape())
				require.Equal(t, make([]float32, q.Size()), append([]float32{}, mlxtest.Floats(t, outputs[0])...))
				for i, v := range mlxtest.Floats(t, outputs[1]) {
					want := float32(math.Inf(-1))
					if cfg.Sinks != nil {
						want = mlxtest.Floats(t, cfg.Sinks)[i/c.queries%4]
					}
					require.Equal(t, want, v)
				}
				for i, g := range grads {
					require.Equal(t, with.args[i].Shape(), g.Shape())
					for _, v := range mlxtest.Floats(t, g) {
						// Only a sink contributes to the lse of a row without keys.
						require.Equal(t, map[bool]float32{true: float32(c.batch * c.queries)}[i == 4], v)
					}
				}
			})
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestAttentionWithoutElements)

// Errors name the argument, its value and the allowed values, and the operation.
func TestAttentionRefuses(t *testing.T) {
	ones := func(shape ...int) *mlxc.Array { return mlxc.Ones(mlxc.Float32, shape...) }
	q, k := ones(2, 4, 3, 8), ones(2, 2, 5, 8)
	freed := ones(3, 5)
	freed.Free()
	starts := func(v ...int32) *mlxc.Array { return mlxc.FromSlice(v) }
	one := ones(1, 4, 3, 8)
	keys := ones(1, 2, 5, 8)
	nan := float32(math.NaN())
	plain := func(q, k, v *mlxc.Array) *mlxc.Array { return Attention(q, k, v, AttentionConfig{}) }
	with := func(c AttentionConfig) *mlxc.Array { return Attention(q, k, k, c) }
	packed := func(queryStarts, keyStarts *mlxc.Array) *mlxc.Array {
		return Attention(one, keys, keys, AttentionConfig{QueryStarts: queryStarts, KeyStarts: keyStarts})
	}
	twoBatches := AttentionConfig{QueryStarts: starts(0, 3), KeyStarts: starts(0, 5)}
	unsigned, rows := starts(0, 3).AsType(mlxc.Uint32), ones(3, 8)
	for _, c := range []struct {
		name  string
		y     *mlxc.Array
		parts []string
	}{
		{"rank of q", plain(q.Reshape(8, 3, 8), k, k), []string{"q", "[8 3 8]", "[batch, heads, length, head_dim]"}},
		{"rank of v", plain(q, k, k.Flatten(0, 1)), []string{"v", "[4 5 8]", "Reshape"}},
		{"integers", plain(q.AsType(mlxc.Int32), k, k), []string{"q is int32", "AsType"}},
		{"float64", plain(q.AsType(mlxc.Float64), k, k), []string{"q is float64", "AsType"}},
		{"dtypes", plain(q, k.AsType(mlxc.Float16), k), []string{"q is float32 and k is float16", "AsType"}},
		{"batches", plain(q, keys, keys), []string{"2 batches and k has 1"}},
		{"heads", plain(q, ones(2, 3, 5, 8), ones(2, 3, 5, 8)), []string{"4 heads", "multiple of the 3 heads"}},
		{"no heads", plain(q, ones(2, 0, 5, 8), ones(2, 0, 5, 8)), []string{"k has the shape [2 0 5 8]", "at least 1"}},
		{"no columns", plain(q, k, ones(2, 2, 5, 0)), []string{"v has the shape [2 2 5 0]", "at least 1"}},
		{"head_dim", plain(q, ones(2, 2, 5, 4), k), []string{"q has head_dim 8 and k has head_dim 4"}},
		{"lengths", plain(q, k, ones(2, 2, 6, 8)), []string{"k has 2 heads of length 5 and v has 2 of length 6"}},
		{"key heads", plain(q, k, ones(2, 4, 5, 8)), []string{"k has 2 heads of length 5 and v has 4 of length 5"}},
		{"nil", plain(q, nil, k), []string{"k: the array is nil"}},
		{"scale", with(AttentionConfig{Scale: nan}), []string{"Scale is NaN"}},
		{"soft-cap", with(AttentionConfig{SoftCap: -1}), []string{"SoftCap is -1"}},
		{"infinite soft-cap", with(AttentionConfig{SoftCap: float32(math.Inf(1))}), []string{"SoftCap is +Inf"}},
		{"window", with(AttentionConfig{Window: &Window{Left: -2}}), []string{"Window", "Left:-2", "Unbounded"}},
		{"mask's shape", with(AttentionConfig{Mask: ones(3, 4)}), []string{"Mask", "[3 4]", "[2 4 3 5]"}},
		{"mask's rank", with(AttentionConfig{Mask: ones(1, 1, 1, 3, 5)}), []string{"Mask", "broadcast"}},
		{"mask's dtype", with(AttentionConfig{Mask: mlxc.Ones(mlxc.Int32, 3, 5)}), []string{"Mask is int32", "AsType"}},
		{"freed mask", with(AttentionConfig{Mask: freed}), []string{"freed"}},
		{"sinks' shape", with(AttentionConfig{Sinks: ones(2)}), []string{"Sinks", "[2]", "[4]"}},
		{"sinks' rank", with(AttentionConfig{Sinks: ones(4, 1)}), []string{"Sinks", "[4 1]", "[4]"}},
		{"sinks' dtype", with(AttentionConfig{Sinks: mlxc.Ones(mlxc.Int32, 4)}), []string{"Sinks is int32"}},
		{"one list of starts", packed(starts(0, 3), nil), []string{"both or neither"}},
		{"batches of sequences", with(twoBatches), []string{"2 batches"}},
		{"dtype of starts", packed(unsigned, starts(0, 5)), []string{"QueryStarts is uint32", "must be int32"}},
		{"too few starts", packed(starts(0, 3), starts(5)), []string{"KeyStarts", "two elements"}},
		{"rank of starts", packed(starts(0, 3).Reshape(1, 2), starts(0, 5)), []string{"QueryStarts", "one axis"}},
		{"first start", packed(starts(1, 3), starts(0, 5)), []string{"QueryStarts goes from 1 to 3", "length, 3"}},
		{"last start", packed(starts(0, 3), starts(0, 4)), []string{"KeyStarts goes from 0 to 4", "the length, 5"}},
		{"order of starts", packed(starts(0, 1, 3), starts(0, 6, 5)), []string{"KeyStarts", "descends"}},
		{"numbers of sequences", packed(starts(0, 1, 3), starts(0, 5)), []string{"2 sequences and KeyStarts has 1"}},
		{"an error passes through", plain(q.Add(ones(7)), k, k), []string{"add"}},
		{"rows of three axes", CausalAttention(q, k, k, 4, 2), []string{"CausalAttention", "[length, heads·head_dim]"}},
		{"rows and batches", CausalAttention(rows, ones(1, 3, 8), rows, 2, 2), []string{"q has 2 axes and k has 3"}},
		{"rows of other heads", CausalAttention(rows, rows, rows, 3, 3), []string{"rows of 8 elements", "of heads, 3"}},
		{"rows of no heads", CausalAttention(rows, rows, rows, 2, 0), []string{"kvHeads is 0", "at least 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mlxc.Eval(c.y)
			for _, p := range c.parts {
				require.ErrorContains(t, err, p)
			}
			if c.name != "an error passes through" && c.name != "freed mask" {
				require.ErrorContains(t, err, "Attention")
			}
			require.NoError(t, mlxc.Eval(Attention(q, k, k, AttentionConfig{})))
		})
	}
	out, lse := AttentionLogSumExp(q, k, q, AttentionConfig{})
	require.ErrorContains(t, out.Err(), "AttentionLogSumExp")
	require.Equal(t, out.Err(), lse.Err())
}

// Without an executor for the kernels, the results equal the composition bit by bit, and no kernel is launched.
func TestAttentionWithoutACompiler(t *testing.T) {
	defer func() { warnOnce = sync.Once{} }()
	withoutCompiler(t)
	for _, c := range someAttention(mlxc.Float16) {
		t.Run(c.name, func(t *testing.T) {
			outputs := c.function(attentionMLX)(c.args)
			dOut, dLSE := normal(7, mlxc.Float16, outputs[0].Shape()...), normal(8, mlxc.Float32, outputs[1].Shape()...)
			cotangents := arrays{dOut, dLSE}
			want, wantGrads, err := mlxc.VJP(c.function(attentionMLX), c.args, cotangents)
			require.NoError(t, err)
			before := customkernels.LaunchCount()
			got, grads, err := mlxc.VJP(c.function(AttentionLogSumExp), c.args, cotangents)
			require.NoError(t, err)
			require.Equal(t, before, customkernels.LaunchCount())
			for i := range want {
				require.Equal(t, mlxtest.Floats(t, want[i]), mlxtest.Floats(t, got[i]))
			}
			for i := range wantGrads {
				require.Equal(t, mlxtest.Floats(t, wantGrads[i]), mlxtest.Floats(t, grads[i]))
			}
		})
	}
}

package valuetest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// attention returns softmax(scale·q·kᵀ + mask)·v in float64. mask has the axes (heads, queries, keys). mask and sinks
// may be nil.
func attention(q, k, v []float32, batch, heads, kvHeads, queries, keys, dim, valueDim int, scale float64,
	mask func(head, query, key int) float64, sinks []float32,
) []float64 {
	var out []float64
	for b := range batch {
		for h := range heads {
			kv := (b*kvHeads + h/(heads/kvHeads)) * keys
			for i := range queries {
				weights := make([]float64, keys)
				sum := 0.0
				if sinks != nil {
					sum = math.Exp(float64(sinks[h]))
				}
				for j := range weights {
					s := 0.0
					for d := range dim {
						s += float64(q[((b*heads+h)*queries+i)*dim+d]) * float64(k[(kv+j)*dim+d])
					}
					weights[j] = math.Exp(s*scale + mask(h, i, j))
					sum += weights[j]
				}
				for d := range valueDim {
					o := 0.0
					for j, w := range weights {
						o += w / sum * float64(v[(kv+j)*valueDim+d])
					}
					out = append(out, o)
				}
			}
		}
	}
	return out
}

func TestScaledDotProductAttention(t *testing.T) {
	const batch, heads, kvHeads, queries, keys, dim, valueDim = 2, 4, 2, 3, 5, 8, 6
	q := normal(1, batch, heads, queries, dim)
	k := normal(2, batch, kvHeads, keys, dim)
	v := normal(3, batch, kvHeads, keys, valueDim)
	sinks, bias := normal(4, heads), normal(5, heads, queries, keys)
	added, seen := floats(t, bias), read[bool](t, bias.Greater(mlxc.Scalar[float32](-0.5)))
	none := func(_, _, _ int) float64 { return 0 }
	hidden := func(visible bool) float64 {
		if visible {
			return 0
		}
		return math.Inf(-1)
	}
	for _, c := range []struct {
		name   string
		config mlxc.AttentionConfig
		scale  float64
		mask   func(head, query, key int) float64
	}{
		{"plain", mlxc.AttentionConfig{}, 1 / math.Sqrt(dim), none},
		{"scale", mlxc.AttentionConfig{Scale: 0.7}, 0.7, none},
		{
			"causal",
			mlxc.AttentionConfig{Causal: true},
			1 / math.Sqrt(dim),
			func(_, i, j int) float64 { return hidden(j <= i+keys-queries) },
		},
		{
			"booleans",
			mlxc.AttentionConfig{Mask: bias.Greater(mlxc.Scalar[float32](-0.5))},
			1 / math.Sqrt(dim),
			func(h, i, j int) float64 { return hidden(seen[(h*queries+i)*keys+j]) },
		},
		{
			"added",
			mlxc.AttentionConfig{Mask: bias},
			1 / math.Sqrt(dim),
			func(h, i, j int) float64 { return float64(added[(h*queries+i)*keys+j]) },
		},
		{
			"sinks",
			mlxc.AttentionConfig{Sinks: sinks, Causal: true},
			1 / math.Sqrt(dim),
			func(_, i, j int) float64 { return hidden(j <= i+keys-queries) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s []float32
			if c.config.Sinks != nil {
				s = floats(t, sinks)
			}
			want := attention(floats(t, q), floats(t, k), floats(t, v), batch, heads, kvHeads, queries, keys, dim,
				valueDim, c.scale, c.mask, s)
			got := mlxc.ScaledDotProductAttention(q, k, v, c.config)
			require.Equal(t, []int{batch, heads, queries, valueDim}, got.Shape())
			require.InDeltaSlice(t, want, floats(t, got), 1e-5)
		})
	}
}

func TestWrongAttention(t *testing.T) {
	q, k := normal(1, 1, 2, 3, 4), normal(2, 1, 1, 5, 4)
	attend := func(k *mlxc.Array, c mlxc.AttentionConfig) error {
		return mlxc.ScaledDotProductAttention(q, k, k, c).Err()
	}
	for want, err := range map[string]error{
		"exclude each other":  attend(k, mlxc.AttentionConfig{Causal: true, Mask: mlxc.Ones(mlxc.Bool, 3, 5)}),
		"cannot be broadcast": attend(k, mlxc.AttentionConfig{Mask: mlxc.Ones(mlxc.Bool, 3, 4)}),
		"shape for sinks":     attend(k, mlxc.AttentionConfig{Sinks: mlxc.Ones(mlxc.Float32, 3)}),
		"rank 4":              attend(k.Squeeze(), mlxc.AttentionConfig{}),
		"multiple":            attend(normal(2, 1, 3, 5, 4), mlxc.AttentionConfig{}),
		"kv_heads is 0":       attend(mlxc.Zeros(mlxc.Float32, 1, 0, 5, 4), mlxc.AttentionConfig{}),
		"the array is nil":    attend(nil, mlxc.AttentionConfig{}),
		"mlxc: add":           attend(k, mlxc.AttentionConfig{Mask: q.Add(k)}),
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestCrossEntropy(t *testing.T) {
	const classes = 6
	logits := normal(1, 2, 2, classes)
	x := floats(t, logits)
	targets := []int32{5, 0, 3, 3}
	ids := mlxc.FromSlice(targets, 2, 2)
	var losses, gradient []float64
	for i, target := range targets {
		row := x[i*classes : (i+1)*classes]
		sum := 0.0
		for _, v := range row {
			sum += math.Exp(float64(v))
		}
		losses = append(losses, math.Log(sum)-float64(row[target]))
		for j, v := range row {
			p := math.Exp(float64(v)) / sum
			if j == int(target) {
				p--
			}
			gradient = append(gradient, p*float64(i+1))
		}
	}
	got := mlxc.CrossEntropy(logits, ids)
	require.Equal(t, []int{2, 2}, got.Shape())
	require.InDeltaSlice(t, losses, floats(t, got), 1e-5)
	require.Equal(t, mlxc.Float32, mlxc.CrossEntropy(logits.AsType(mlxc.BFloat16), ids).DType())
	_, grads, err := mlxc.VJP(single(func(a *mlxc.Array) *mlxc.Array { return mlxc.CrossEntropy(a, ids) }),
		arrays{logits}, arrays{mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2)})
	require.NoError(t, err)
	require.InDeltaSlice(t, gradient, floats(t, grads[0]), 1e-5)
	require.ErrorContains(t, mlxc.CrossEntropy(logits, ids.Flatten(0, 1)).Err(), "does not match")
}

package customkernels

import (
	"math"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// addAttention adds attention and the rotary position embedding of its operands.
func addAttention(c *corpus) {
	for _, d := range mlxtest.FloatDTypes {
		c.addAttention(d, true, 2, 7, 11)
		c.addRoPE(d, false)
	}
	c.addAttention(mlxc.Float32, false, 1, 5, 33)
	c.addRoPE(mlxc.Float32, true)
}

func (c *corpus) addAttention(d mlxc.DType, causal bool, heads, queries, keys int) {
	const headDim = 64
	scale := float32(1 / math.Sqrt(headDim))
	q, vq := c.Normal(d, heads, queries, headDim)
	k, vk := c.Normal(d, heads, keys, headDim)
	v, vv := c.Normal(d, heads, keys, headDim)
	c.add(namedLaunch{
		name:   named("attention", d, map[bool]string{true: "causal", false: "full"}[causal]),
		kernel: c.kernel("attention", ""),
		launch: Launch{
			Grid: [3]int{32 * queries, heads}, Threadgroup: [3]int{64},
			Template: template("T", d, "D", headDim, "causal", causal),
			Outputs:  []mlxc.Output{output(d, heads, queries, headDim)},
		},
		inputs: inputs(arrays{q, k, v, mlxc.Scalar(scale)}, ints(keys)),
		check: func(t testing.TB, out arrays) {
			var want []float64
			for h := range heads {
				keyRows, valueRows := vk[h*keys*headDim:], vv[h*keys*headDim:]
				for i := range queries {
					seen := keys
					if causal {
						seen = i + 1 + keys - queries
					}
					query := vq[(h*queries+i)*headDim:]
					scores := mlxtest.MatMul(query, keyRows, 1, seen, headDim, true)
					for j := range scores {
						scores[j] *= float64(scale)
					}
					want = append(want, mlxtest.MatMul(mlxtest.Softmax(scores), valueRows, 1, headDim, seen, false)...)
				}
			}
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(d, 2*headDim+keys, 4))
		},
	})
}

func (c *corpus) addRoPE(d mlxc.DType, interleaved bool) {
	const layers, length, pairs, offset, base = 3, 5, 17, 9, 10000.0
	x, v := c.Normal(d, layers, length, 2*pairs)
	c.add(namedLaunch{
		name:   named("rope", d, map[bool]string{true: "interleaved", false: "halves"}[interleaved]),
		kernel: c.kernel("rope", ""),
		launch: Launch{
			Grid: [3]int{pairs, length, layers}, Threadgroup: [3]int{8, 4, 2},
			Template: template("T", d, "interleaved", interleaved),
			Outputs:  []mlxc.Output{output(d, layers, length, 2*pairs)},
		},
		inputs: inputs(arrays{x, mlxc.Scalar(float32(math.Log2(base)))}, ints(offset)),
		check: func(t testing.TB, out arrays) {
			want := make([]float64, len(v))
			for row := range layers * length {
				for i := range pairs {
					first := row*2*pairs + i
					second := first + pairs
					if interleaved {
						first = row*2*pairs + 2*i
						second = first + 1
					}
					angle := float64(row%length+offset) * math.Pow(base, -float64(i)/pairs)
					sin, cos := math.Sincos(angle)
					want[first] = v[first]*cos - v[second]*sin
					want[second] = v[first]*sin + v[second]*cos
				}
			}
			// The angle is at most 14 and has several roundings. exp2 of arguments down to −13 amplifies its error.
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(d, 16*14, 4))
		},
	})
}

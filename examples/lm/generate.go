package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

type question struct {
	Params params
	IDs    *mlxc.Array // (1, length)
	Last   *mlxc.Array // int32 of shape (1): the position to read
}

// generate continues a text by n letters. temperature 0 takes the likeliest one each
// time; above, letters are drawn, from p^(1/temperature).
func (c config) generate(p params, text corpus, prompt string, n int, temperature float64) (string, error) {
	ids, err := text.encode(prompt)
	if err != nil {
		return "", err
	}
	// One shape for all positions, so that it is compiled once. What stands behind a
	// position does not matter to it.
	next := tree.Compile(func(q question) (*mlxc.Array, error) {
		return c.logits(c.shape, q.Params, q.IDs).Take(q.Last, 1).Reshape(c.letters), nil
	})
	defer next.Close()
	r := rand.New(rand.NewPCG(c.seed, 1))
	for range n {
		window := make([]int32, c.length)
		seen := copy(window, ids[max(len(ids)-c.length, 0):])
		err := mlxc.WithScopeErr(func() error {
			logits, err := next.Call(question{p, mlxc.FromSlice(window, 1, c.length), mlxc.FromSlice([]int32{int32(seen - 1)})})
			if err != nil {
				return err
			}
			values, err := mlxc.ToSlice[float32](logits)
			if err == nil {
				ids = append(ids, draw(r, values, temperature))
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return text.decode(ids), nil
}

func draw(r *rand.Rand, logits []float32, temperature float64) int32 {
	largest := slices.Max(logits)
	if temperature == 0 {
		return int32(slices.Index(logits, largest))
	}
	weights, sum := make([]float64, len(logits)), 0.0
	for i, l := range logits {
		weights[i] = math.Exp(float64(l-largest) / temperature)
		sum += weights[i]
	}
	left := r.Float64() * sum
	for i, w := range weights {
		if left -= w; left < 0 {
			return int32(i)
		}
	}
	return int32(slices.Index(logits, largest)) // a rounding error
}

package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

type query struct {
	Params params
	IDs    *mlxc.Array // (1, length)
	Last   *mlxc.Array // int32 of shape (1): the position to read
}

// generate returns the prompt and n more letters. With a temperature of 0 it takes the most likely letter; otherwise it
// samples from p^(1/temperature).
func (c config) generate(p params, text corpus, prompt string, n int, temperature float64) (string, error) {
	ids, err := text.encode(prompt)
	if err != nil {
		return "", err
	}
	// All positions have the same shape, so the function is compiled once. Logits do not depend on later positions.
	next := tree.Compile(func(q query) (*mlxc.Array, error) {
		return c.logits(c.shape, q.Params, q.IDs).Take(q.Last, 1).Reshape(c.letters), nil
	})
	defer next.Close()
	r := rand.New(rand.NewPCG(c.seed, 1))
	for range n {
		window := make([]int32, c.length)
		seen := copy(window, ids[max(len(ids)-c.length, 0):])
		err := mlxc.WithScopeErr(func() error {
			last := mlxc.FromSlice([]int32{int32(seen - 1)})
			logits, err := next.Call(query{p, mlxc.FromSlice(window, 1, c.length), last})
			if err != nil {
				return err
			}
			values, err := mlxc.ToSlice[float32](logits)
			if err == nil {
				ids = append(ids, sample(r, values, temperature))
			}
			return err
		})
		if err != nil {
			return "", err
		}
	}
	return text.decode(ids), nil
}

// sample returns a letter id, drawn with the probabilities softmax(logits/temperature).
func sample(r *rand.Rand, logits []float32, temperature float64) int32 {
	largest := slices.Max(logits)
	if temperature == 0 {
		return int32(slices.Index(logits, largest))
	}
	weights, sum := make([]float64, len(logits)), 0.0
	for i, l := range logits {
		weights[i] = math.Exp(float64(l-largest) / temperature)
		sum += weights[i]
	}
	remaining := r.Float64() * sum
	for i, w := range weights {
		if remaining -= w; remaining < 0 {
			return int32(i)
		}
	}
	return int32(slices.Index(logits, largest)) // after a rounding error
}

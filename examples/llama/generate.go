package main

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// generate returns up to n tokens that follow the prompt. It stops at a token that ends a text. With a temperature of 0 it
// takes the most likely token; otherwise it draws from softmax(logits/temperature).
func (m *model) generate(a adapters, prompt []int32, n int, temperature float64, seed uint64) (ids []int32, err error) {
	past, input := m.newCache(), prompt
	defer past.free()
	for len(ids) < n {
		seed++
		var next uint32
		err := mlxc.WithScopeErr(func() (err error) {
			next, err = m.next(a, past, input, temperature, seed)
			return err
		})
		if err != nil {
			return nil, err
		}
		if slices.Contains(m.EOSTokenID, int32(next)) {
			break
		}
		input = []int32{int32(next)}
		ids = append(ids, int32(next))
	}
	return ids, nil
}

// next adds ids to the cache and returns the next token.
func (m *model) next(a adapters, past cache, ids []int32, temperature float64, seed uint64) (uint32, error) {
	old := slices.Clone(past)
	hidden := m.hidden(a, mlxc.FromSlice(ids, 1, len(ids)), past)
	last := hidden.Slice([]int{0, len(ids) - 1, 0}, hidden.Shape(), nil)
	logits := m.logits(last)
	token := logits.ArgMax(-1)
	if temperature > 0 {
		token = mlxc.RandomCategorical(mlxc.RandomKey(seed), logits.DivScalar(temperature), -1)
	}
	id, err := mlxc.Item[uint32](token)
	for i := range past {
		past[i].keys.Keep()
		past[i].values.Keep()
	}
	old.free()
	return id, err
}

func (c cache) free() {
	for _, l := range c {
		if l.keys != nil {
			l.keys.Free()
			l.values.Free()
		}
	}
}

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/mlxgrad/mlxgrad/ops"
)

// passages holds the letters of a batch, and for each the next letter. Both are int32 of shape (batch, length).
type passages struct{ Inputs, Targets *mlxc.Array }

func (m model) loss(a adapters, p passages) *mlxc.Array {
	return ops.CrossEntropy(m.logits(a, p.Inputs), p.Targets, ops.CrossEntropyConfig{})
}

// encode returns the id of each letter.
func (m model) encode(text string) ([]int32, error) {
	ids := make([]int32, len(text))
	for i := range len(text) {
		id := strings.IndexByte(m.letters, text[i])
		if id < 0 {
			return nil, fmt.Errorf("the model does not have the letter %q", text[i])
		}
		ids[i] = int32(id)
	}
	return ids, nil
}

// cut returns the passages of the given length that begin at these positions.
func cut(ids []int32, length int, begins []int) passages {
	var in, out []int32
	for _, at := range begins {
		in = append(in, ids[at:at+length]...)
		out = append(out, ids[at+1:at+length+1]...)
	}
	return passages{mlxc.FromSlice(in, len(begins), length), mlxc.FromSlice(out, len(begins), length)}
}

// meanLoss returns the mean loss of a whole text, in passages that do not overlap.
func (m model) meanLoss(a adapters, ids []int32, length int) (float32, error) {
	var begins []int
	for at := 0; at+length < len(ids); at += length {
		begins = append(begins, at)
	}
	return mlxc.Item[float32](m.loss(a, cut(ids, length, begins)))
}

// tune trains the adapters on random passages of a text and returns them. report is called after each step.
func (m model) tune(c config, ids []int32, report func(step int, loss float64)) (adapters, error) {
	trainer, err := optim.NewTrainer(m.newAdapters(c.rank),
		optim.AdamW[adapters]{LearningRate: optim.CosineDecay(c.rate, c.rate/10, c.steps)}, m.loss)
	if err != nil {
		return adapters{}, err
	}
	defer trainer.Close()
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range c.steps {
		begins := make([]int, 8)
		for k := range begins {
			begins[k] = rng.IntN(len(ids) - c.length)
		}
		loss, err := trainer.Step(cut(ids, c.length, begins))
		if err != nil {
			return adapters{}, fmt.Errorf("step %d: %w", i+1, err)
		}
		report(i, loss)
	}
	return trainer.State.Params, nil
}

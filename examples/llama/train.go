package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
	"github.com/mlxgrad/mlxgrad/mlxc/optim"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
	"github.com/mlxgrad/mlxgrad/ops"
)

// training holds the settings of a fine-tuning.
type training struct {
	steps, batch, length int
	saveEvery            int     // steps between two files of the state
	rate                 float64 // the learning rate
	seed                 uint64
}

// passages holds the tokens of a batch, and for each the next token. Both are int32 of shape (batch, length).
type passages struct{ Inputs, Targets *mlxc.Array }

type (
	state   = optim.Training[adapters, optim.AdamWState]
	trainer = optim.Trainer[adapters, optim.AdamWState, passages]
)

// loss returns the mean cross-entropy. It does not hold all logits, which can be larger than the model.
func (m *model) loss(a adapters, p passages) *mlxc.Array {
	return ops.LinearCrossEntropy(m.hidden(a, p.Inputs, nil), m.head(), p.Targets, ops.CrossEntropyConfig{})
}

// cut returns the passages that begin at these positions.
func cut(ids []int32, length int, begins []int) passages {
	var in, out []int32
	for _, at := range begins {
		in = append(in, ids[at:at+length]...)
		out = append(out, ids[at+1:at+length+1]...)
	}
	return passages{mlxc.FromSlice(in, len(begins), length), mlxc.FromSlice(out, len(begins), length)}
}

// meanLoss returns the mean loss of passages that are spread evenly over a text, at most 25.
func (m *model) meanLoss(a adapters, ids []int32, length int) (mean float64, err error) {
	all := (len(ids) - 1) / length // passages that do not overlap
	n := min(all, 25)
	for i := range n {
		err := mlxc.WithScopeErr(func() error {
			loss, err := mlxc.Item[float32](m.loss(a, cut(ids, length, []int{i * all / n * length})).AsType(mlxc.Float32))
			mean += float64(loss) / float64(n)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	return mean, nil
}

// stateFile holds everything that a training needs to continue with the same bits. mlx-lm ignores it.
const stateFile = "training.safetensors"

// train trains the adapters on random passages, from the state in the folder if there is one. It writes the state and the
// adapters to the folder: every saveEvery steps, at the end, and when ctx is canceled. report is called after each step.
func (m *model) train(
	ctx context.Context, s training, begin adapters, ids []int32, dir string, report func(step int, loss float64),
) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	t, err := optim.NewTrainer(begin, optim.AdamW[adapters]{LearningRate: optim.Constant(s.rate)}, m.loss)
	if err != nil {
		return err
	}
	defer t.Close()
	file := filepath.Join(dir, stateFile)
	if err := resume(t, file); err != nil {
		return err
	}
	done, err := mlxc.Item[int32](t.State.Optimizer.Step)
	if err != nil {
		return err
	}
	for step := int(done); step < s.steps && ctx.Err() == nil; step++ {
		// Each step has its own generator, so a resumed training gets the same passages.
		rng := rand.New(rand.NewPCG(s.seed, uint64(step)))
		begins := make([]int, s.batch)
		for i := range begins {
			begins[i] = rng.IntN(len(ids) - s.length)
		}
		loss, err := t.Step(cut(ids, s.length, begins))
		if err != nil {
			return fmt.Errorf("step %d: %w", step+1, err)
		}
		report(step+1, loss)
		if (step+1)%s.saveEvery == 0 {
			if err := save(t.State, dir); err != nil {
				return err
			}
		}
	}
	return save(t.State, dir)
}

// save writes the state first: a process that is killed between the files loses no step.
func save(s state, dir string) error {
	arrays, err := tree.ToMap(s)
	if err != nil {
		return err
	}
	if err := mlxio.SaveSafetensors(filepath.Join(dir, stateFile), arrays, nil); err != nil {
		return err
	}
	return s.Params.save(dir)
}

// resume sets the state of t to the file's, if the file exists.
func resume(t *trainer, file string) error {
	arrays, _, err := mlxio.LoadSafetensors(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	loaded, err := tree.FromMap(t.State, arrays)
	if err != nil {
		return fmt.Errorf("%s is of another training: %w", file, err)
	}
	t.State = loaded
	return tree.Eval(loaded)
}

package optim

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// Optimizer updates parameters P along their gradients and keeps a state S. SGD and AdamW are optimizers.
type Optimizer[P, S any] interface {
	// Init returns the state before the first update.
	Init(params P) (S, error)
	// Update returns the parameters and the state after one update. It builds a graph and computes nothing.
	Update(params, grads P, state S) (P, S, error)
}

// Training holds the parameters and the optimizer's state between two steps. It is a tree, so tree.ToMap and
// tree.FromMap convert it to and from the maps that package mlxio saves and loads.
type Training[P, S any] struct {
	Params    P
	Optimizer S
}

// Trainer owns the parameters P and the optimizer's state S, and updates both with a batch B in each step. One
// goroutine at a time may use it.
//
// If a step needs more than a loss, use an optimizer and the functions of package tree directly; see the example in the
// package documentation.
type Trainer[P, S, B any] struct {
	// State holds the arrays after the last step. Step frees the arrays that it replaces.
	State Training[P, S]
	// MaxNorm limits the global norm of the gradients; see ClipByGlobalNorm. 0 sets no limit. Set it before the first
	// step.
	MaxNorm float64
	// Average returns the mean of each array over the processes of a data-parallel training, as
	// distributed.Group.AverageGradients does. Its argument holds the loss, followed by the gradients. Nil means a
	// single process. Set it before the first step. Step calls Average outside of compiled functions, so Average may
	// evaluate arrays.
	Average func([]*mlxc.Array) []*mlxc.Array

	optimizer Optimizer[P, S]
	// A single process runs step. Others run gradient, Average and update.
	step     *tree.Compiled[stepInput[P, S, B], stepOutput[P, S]]
	gradient *tree.Compiled[sample[P, B], gradients[P]]
	update   *tree.Compiled[updateInput[P, S], stepOutput[P, S]]
}

type stepInput[P, S, B any] struct {
	State Training[P, S]
	Batch B
}

// sample holds the arguments of the loss.
type sample[P, B any] struct {
	Params P
	Batch  B
}

// gradients holds a loss and its gradients.
type gradients[P any] struct {
	Loss  *mlxc.Array
	Grads P
}

type updateInput[P, S any] struct {
	State     Training[P, S]
	Gradients gradients[P]
}

type stepOutput[P, S any] struct {
	State Training[P, S]
	Loss  *mlxc.Array // float32, or float64 for a float64 loss
}

// NewTrainer returns a trainer that minimizes loss, whose value has shape (). The trainer takes ownership of params. A
// batch is a tree, such as a struct of inputs and targets. Arrays that loss captures, such as frozen parameters, are
// constants. The step is compiled; see tree.Compile for fields that do not hold arrays.
func NewTrainer[P, S, B any](
	params P, optimizer Optimizer[P, S], loss func(params P, batch B) *mlxc.Array,
) (*Trainer[P, S, B], error) {
	const op = "optim.NewTrainer"
	if optimizer == nil || loss == nil {
		return nil, mlxc.NewError(op, errors.New("the optimizer or the loss is nil"))
	}
	state, err := optimizer.Init(params)
	if err != nil {
		return nil, err
	}
	t := &Trainer[P, S, B]{State: Training[P, S]{params, state}, optimizer: optimizer}
	gradient := func(in sample[P, B]) (gradients[P], error) {
		value, grads, err := tree.ValueAndGrad(func(p P) *mlxc.Array { return loss(p, in.Batch) })(in.Params)
		return gradients[P]{value, grads}, err
	}
	t.gradient, t.update = tree.Compile(gradient), tree.Compile(t.apply)
	t.step = tree.Compile(func(in stepInput[P, S, B]) (out stepOutput[P, S], err error) {
		g, err := gradient(sample[P, B]{in.State.Params, in.Batch})
		if err != nil {
			return out, err
		}
		return t.apply(updateInput[P, S]{in.State, g})
	})
	return t, nil
}

// apply updates the state by gradients.
func (t *Trainer[P, S, B]) apply(in updateInput[P, S]) (out stepOutput[P, S], err error) {
	grads := in.Gradients.Grads
	if t.MaxNorm != 0 {
		if grads, _, err = ClipByGlobalNorm(grads, t.MaxNorm); err != nil {
			return out, err
		}
	}
	out.Loss = in.Gradients.Loss.AsType(precise(in.Gradients.Loss))
	out.State.Params, out.State.Optimizer, err = t.optimizer.Update(in.State.Params, grads, in.State.Optimizer)
	return out, err
}

// averaged is a step with Average, which runs between the compiled functions. It frees gradients and means before the
// evaluation: a handle would keep the memory until the end of the step.
func (t *Trainer[P, S, B]) averaged(in stepInput[P, S, B]) (out stepOutput[P, S], err error) {
	own, err := t.gradient.Call(sample[P, B]{in.State.Params, in.Batch})
	if err != nil {
		return out, err
	}
	arrays, err := tree.Flatten(own)
	if err != nil {
		return out, err
	}
	means := t.Average(slices.Clone(arrays))
	if len(means) != len(arrays) {
		err := fmt.Errorf("Average returned %d arrays; it must return %d", len(means), len(arrays))
		return out, mlxc.NewError("optim.Trainer", err)
	}
	for i, a := range arrays {
		if means[i] != a {
			a.Free()
		}
	}
	mean, err := tree.Unflatten(own, means)
	if err != nil {
		return out, err
	}
	if out, err = t.update.Call(updateInput[P, S]{in.State, mean}); err != nil {
		return out, err
	}
	return out, tree.Free(mean)
}

// Step updates State by the gradient of the batch's loss, and returns the loss before the update. It neither keeps nor
// frees the batch. After an error State is unchanged; a loss that is NaN or infinite is an error. The first step, and
// each step with new shapes or dtypes, compiles.
func (t *Trainer[P, S, B]) Step(batch B) (loss float64, err error) {
	// The new state outlives the caller's scopes.
	mlxc.OutsideScopes(func() {
		err = mlxc.WithScopeErr(func() (err error) {
			loss, err = t.run(batch)
			return err
		})
	})
	return loss, err
}

func (t *Trainer[P, S, B]) run(batch B) (loss float64, err error) {
	step := t.step.Call
	if t.Average != nil {
		step = t.averaged
	}
	out, err := step(stepInput[P, S, B]{t.State, batch})
	if err != nil {
		return 0, err
	}
	if err := tree.Eval(out); err != nil { // one evaluation for all arrays
		return 0, err
	}
	if loss, err = number(out.Loss); err != nil {
		return 0, err
	}
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return loss, mlxc.NewError("optim.Trainer.Step", fmt.Errorf("the loss is %v: it must be finite; check the "+
			"batch, or use a lower learning rate", loss))
	}
	if err := tree.Keep(out.State); err != nil {
		return 0, err
	}
	former := t.State
	t.State = out.State
	return loss, tree.Free(former)
}

// number reads a float32 or float64 of shape ().
func number(a *mlxc.Array) (float64, error) {
	if a.DType() == mlxc.Float64 {
		return mlxc.Item[float64](a)
	}
	v, err := mlxc.Item[float32](a)
	return float64(v), err
}

// Close frees the compiled functions. State stays valid. An unreachable trainer is freed without Close.
func (t *Trainer[P, S, B]) Close() {
	t.step.Close()
	t.gradient.Close()
	t.update.Close()
}

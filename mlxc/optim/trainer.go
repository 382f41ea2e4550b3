package optim

import (
	"errors"
	"fmt"
	"math"

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
	// State holds the arrays after the last step. Step frees the arrays that it replaces. The caller may assign it
	// between steps, for example to resume, and frees it with tree.Free.
	State Training[P, S]
	// MaxNorm limits the global norm of the gradients; see ClipByGlobalNorm. 0 sets no limit. Set it before the first
	// step.
	MaxNorm float64
	// Average returns the mean of each array over the processes of a data-parallel training, as
	// distributed.Group.AverageGradients does. Its argument holds the loss, followed by the gradients. Nil means a
	// single process. Set it before the first step.
	Average func([]*mlxc.Array) []*mlxc.Array

	optimizer Optimizer[P, S]
	gradient  func(P, B) (*mlxc.Array, P, error)
	compiled  *tree.Compiled[stepInput[P, S, B], stepOutput[P, S]]
}

type stepInput[P, S, B any] struct {
	State Training[P, S]
	Batch B
}

type stepOutput[P, S any] struct {
	State Training[P, S]
	Loss  *mlxc.Array // float32, or float64 for a float64 loss
}

// NewTrainer returns a trainer that minimizes loss, whose value has shape (). Call it outside of scopes: the end of a
// scope would free State. The first step frees params; if NewTrainer fails, they stay the caller's. A batch is a tree,
// such as a struct of inputs and targets. Arrays that loss captures, such as frozen parameters, are constants. The step
// is compiled; see tree.Compile for fields that do not hold arrays.
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
	t.gradient = func(params P, batch B) (*mlxc.Array, P, error) {
		return tree.ValueAndGrad(func(p P) *mlxc.Array { return loss(p, batch) })(params)
	}
	t.compiled = tree.Compile(t.step)
	return t, nil
}

// step is the function that NewTrainer compiles and Step calls.
func (t *Trainer[P, S, B]) step(in stepInput[P, S, B]) (out stepOutput[P, S], err error) {
	value, grads, err := t.gradient(in.State.Params, in.Batch)
	if err != nil {
		return out, err
	}
	if t.Average != nil {
		if value, grads, err = t.average(value, grads); err != nil {
			return out, err
		}
	}
	if t.MaxNorm != 0 {
		if grads, _, err = ClipByGlobalNorm(grads, t.MaxNorm); err != nil {
			return out, err
		}
	}
	out.Loss = value.AsType(precise(value))
	out.State.Params, out.State.Optimizer, err = t.optimizer.Update(in.State.Params, grads, in.State.Optimizer)
	return out, err
}

func (t *Trainer[P, S, B]) average(value *mlxc.Array, grads P) (*mlxc.Array, P, error) {
	arrays, err := tree.Flatten(grads)
	if err != nil {
		return nil, grads, err
	}
	means := t.Average(append([]*mlxc.Array{value}, arrays...))
	if len(means) != len(arrays)+1 {
		err := fmt.Errorf("Average returned %d arrays; it must return %d", len(means), len(arrays)+1)
		return nil, grads, mlxc.NewError("optim.Trainer", err)
	}
	grads, err = tree.Unflatten(grads, means[1:])
	return means[0], grads, err
}

// Step updates State by the gradient of the batch's loss, and returns the loss before the update. It neither keeps nor
// frees the batch. After an error State is unchanged. A loss that is NaN or infinite is an error. Gradients are not
// checked: a finite loss with a gradient of NaN makes State NaN. The first step, and each step with new shapes or
// dtypes, compiles.
func (t *Trainer[P, S, B]) Step(batch B) (loss float64, err error) {
	// The new state outlives the caller's scopes.
	mlxc.OutsideScopes(func() {
		err = mlxc.WithScopeErr(func() (err error) {
			loss, err = t.update(batch)
			return err
		})
	})
	return loss, err
}

func (t *Trainer[P, S, B]) update(batch B) (loss float64, err error) {
	out, err := t.compiled.Call(stepInput[P, S, B]{t.State, batch})
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

// Close frees the compiled step. State stays valid. An unreachable trainer is freed without Close.
func (t *Trainer[P, S, B]) Close() { t.compiled.Close() }

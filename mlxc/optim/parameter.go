package optim

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// Masters are float32 copies of parameters of 16 bits, by their names.
type Masters map[string]*mlxc.Array

// newMasters also refuses what no optimiser can update.
func newMasters[P any](op string, params P) (Masters, error) {
	arrays, err := tree.ToMap(params)
	if err != nil {
		return nil, err
	}
	masters := Masters{}
	for name, a := range arrays {
		if err := a.Err(); err != nil {
			return nil, err
		}
		if !a.DType().IsFloating() {
			err := fmt.Errorf("%s is %v: parameters are floating-point; leave it out of the tree, or convert it with AsType", name, a.DType())
			return nil, mlxc.NewError(op, err, a)
		}
		if half(a) {
			masters[name] = a.AsType(mlxc.Float32)
		}
	}
	return masters, nil
}

func half(a *mlxc.Array) bool { return a.DType() == mlxc.Float16 || a.DType() == mlxc.BFloat16 }

// zeros are a tree like params with zeros of the dtypes of arithmetic.
func zeros[P any](params P) (P, error) {
	return tree.Map(func(a *mlxc.Array) *mlxc.Array { return mlxc.Zeros(precise(a), a.Shape()...) }, params)
}

// parameter is one array on its way through an update.
type parameter struct {
	name    string
	master  *mlxc.Array   // the array itself, or what it is the rounded value of
	grad    *mlxc.Array   // of master's dtype
	moments []*mlxc.Array // its part of each tree of the state
}

// move returns master − rate·along.
func (p *parameter) move(rate, along *mlxc.Array) *mlxc.Array {
	return p.master.Sub(rate.AsType(p.master.DType()).Mul(along))
}

// update moves all parameters: f returns the new master of one, and leaves its new
// moments in it. It returns the new parameters, masters, and trees of moments.
func update[P any](op string, params, grads P, masters Masters, moments []P, f func(*parameter) *mlxc.Array) (P, Masters, []P, error) {
	var zero P
	all, arrays, err := parameters(op, params, grads, masters, moments)
	if err != nil {
		return zero, nil, nil, err
	}
	updated := Masters{}
	next := make([][]*mlxc.Array, 1+len(moments)) // the parameters, then the moments
	mlxc.WithScope(func() {
		for i := range all {
			p := &all[i]
			p.grad = p.grad.AsType(p.master.DType())
			master := f(p)
			if half(arrays[i]) {
				updated[p.name] = master.Keep()
				master = master.AsType(arrays[i].DType())
			}
			next[0] = append(next[0], master.Keep())
			for k, m := range p.moments {
				next[k+1] = append(next[k+1], m.Keep())
			}
		}
	})
	trees := make([]P, len(next))
	for k := range next {
		if trees[k], err = tree.Unflatten(params, next[k]); err != nil {
			return zero, nil, nil, err
		}
	}
	return trees[0], updated, trees[1:], nil
}

// parameters takes the trees of an update apart, and checks that they belong together:
// a gradient of another shape would be broadcast.
func parameters[P any](op string, params, grads P, masters Masters, moments []P) ([]parameter, []*mlxc.Array, error) {
	names, err := tree.Names(params)
	if err != nil {
		return nil, nil, err
	}
	arrays, err := tree.Flatten(params)
	if err != nil {
		return nil, nil, err
	}
	all := make([]parameter, len(names))
	for i, name := range names {
		p := &all[i]
		p.name, p.master = name, arrays[i]
		if half(arrays[i]) {
			if p.master = masters[name]; p.master == nil {
				return nil, nil, mlxc.NewError(op, fmt.Errorf("the state has no master of %s: make it with Init for these parameters", name), arrays[i])
			}
		}
		if err := checkAlike(op, "master", p, arrays[i], p.master); err != nil {
			return nil, nil, err
		}
	}
	of := func(what string, t P, take func(p *parameter, a *mlxc.Array)) error {
		others, err := tree.Names(t)
		if err != nil {
			return err
		}
		if !slices.Equal(names, others) {
			return mlxc.NewError(op, fmt.Errorf("the %ss are named %v, and the parameters %v", what, others, names))
		}
		values, err := tree.Flatten(t)
		if err != nil {
			return err
		}
		for i, a := range values {
			if err := checkAlike(op, what, &all[i], arrays[i], a); err != nil {
				return err
			}
			take(&all[i], a)
		}
		return nil
	}
	if err := of("gradient", grads, func(p *parameter, a *mlxc.Array) { p.grad = a }); err != nil {
		return nil, nil, err
	}
	for _, t := range moments {
		if err := of("moment", t, func(p *parameter, a *mlxc.Array) { p.moments = append(p.moments, a) }); err != nil {
			return nil, nil, err
		}
	}
	return all, arrays, nil
}

func checkAlike(op, what string, p *parameter, array, a *mlxc.Array) error {
	if err := errors.Join(array.Err(), a.Err()); err != nil {
		return err
	}
	if !a.DType().IsFloating() || !slices.Equal(array.Shape(), a.Shape()) {
		return mlxc.NewError(op, fmt.Errorf("the %s of %s must be floating-point and of its shape", what, p.name), array, a)
	}
	return nil
}

// rateAt is the learning rate of the update after step others.
func rateAt(op string, rate Schedule, step *mlxc.Array) (*mlxc.Array, error) {
	if rate == nil {
		return nil, mlxc.NewError(op, errors.New("Rate is nil: set it, to optim.Constant(1e-3) say"))
	}
	if err := step.Err(); err != nil {
		return nil, fmt.Errorf("%s: the state's Step: %w: make the state with Init", op, err)
	}
	if step.NDim() != 0 || step.DType() != mlxc.Int32 {
		return nil, mlxc.NewError(op, errors.New("the state's Step must be an int32 of shape ()"), step)
	}
	r := rate(step)
	if err := r.Err(); err != nil {
		return nil, err
	}
	if r.NDim() != 0 || !r.DType().IsFloating() {
		return nil, mlxc.NewError(op, errors.New("Rate must give a floating-point array of shape ()"), r)
	}
	return r, nil
}

// setting is an option of which 0 stands for another value. It must be in [0, below).
func setting(op, name string, value, instead, below float64) (float64, error) {
	if value == 0 {
		value = instead
	}
	if !(value >= 0 && value < below) || math.IsInf(value, 0) {
		return 0, mlxc.NewError(op, fmt.Errorf("%s is %v: it must be at least 0 and below %v", name, value, below))
	}
	return value, nil
}

// next is step + 1.
func next(step *mlxc.Array) *mlxc.Array {
	one := mlxc.Scalar[int32](1)
	defer one.Free()
	return step.Add(one)
}

package optim

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// ByName maps the name of a parameter (see tree.Names) to an array, such as its moment.
type ByName map[string]*mlxc.Array

// byName makes an array for each parameter that `which` selects. It returns an error for a parameter that is invalid or
// not floating-point.
func byName[P any](
	op string, params P, which func(*mlxc.Array) bool, array func(*mlxc.Array) *mlxc.Array,
) (ByName, error) {
	arrays, err := tree.ToMap(params)
	if err != nil {
		return nil, err
	}
	made := ByName{}
	for name, a := range arrays {
		if err := a.Err(); err != nil {
			return nil, err
		}
		if !a.DType().IsFloating() {
			err := fmt.Errorf("%s is %v: parameters must be floating-point; exclude it from the tree, or convert it "+
				"with AsType", name, a.DType())
			return nil, mlxc.NewError(op, err, a)
		}
		if which(a) {
			made[name] = array(a)
		}
	}
	return made, nil
}

// half reports whether the array has 16-bit elements.
func half(a *mlxc.Array) bool { return a.DType() == mlxc.Float16 || a.DType() == mlxc.BFloat16 }

// masters returns the float32 masters of the 16-bit parameters.
func masters[P any](op string, params P) (ByName, error) {
	return byName(op, params, half, func(a *mlxc.Array) *mlxc.Array { return a.AsType(mlxc.Float32) })
}

// zeros returns zero moments in the dtype used for arithmetic: float32, or float64 for float64 parameters.
func zeros[P any](op string, params P) (ByName, error) {
	return byName(op, params, func(*mlxc.Array) bool { return true },
		func(a *mlxc.Array) *mlxc.Array { return mlxc.Zeros(precise(a), a.Shape()...) })
}

// parameter is one parameter during an update.
type parameter struct {
	name    string
	array   *mlxc.Array
	master  *mlxc.Array   // the float32 copy of a 16-bit array, else array
	grad    *mlxc.Array   // in the dtype of master
	moments []*mlxc.Array // the state's arrays for the parameter
}

// move returns master − rate·direction.
func (p *parameter) move(rate, direction *mlxc.Array) *mlxc.Array {
	return p.master.Sub(rate.AsType(p.master.DType()).Mul(direction))
}

// update updates all parameters. f returns the new master of one parameter and sets its new moments. update returns the
// new parameters, masters and moments.
func update[P any](op string, params, grads P, masters ByName, moments []ByName, f func(*parameter) *mlxc.Array) (P,
	ByName, []ByName, error,
) {
	var zero P
	all, err := parameters(op, params, grads, masters, moments)
	if err != nil {
		return zero, nil, nil, err
	}
	arrays := make([]*mlxc.Array, len(all))
	newMasters, newMoments := ByName{}, make([]ByName, len(moments))
	for k := range newMoments {
		newMoments[k] = ByName{}
	}
	for i := range all {
		p := &all[i]
		p.grad = p.grad.AsType(p.master.DType())
		master := f(p)
		arrays[i] = master
		if half(p.array) {
			newMasters[p.name] = master
			arrays[i] = master.AsType(p.array.DType())
		}
		for k, m := range p.moments {
			newMoments[k][p.name] = m
		}
	}
	updated, err := tree.Unflatten(params, arrays)
	return updated, newMasters, newMoments, err
}

// parameters flattens the trees of an update, and checks that they match: otherwise a gradient of another shape would
// be broadcast.
func parameters[P any](op string, params, grads P, masters ByName, moments []ByName) ([]parameter, error) {
	names, err := tree.Names(params)
	if err != nil {
		return nil, err
	}
	arrays, err := tree.Flatten(params)
	if err != nil {
		return nil, err
	}
	gradNames, err := tree.Names(grads)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(names, gradNames) {
		return nil, mlxc.NewError(op, fmt.Errorf("the gradients are named %v, but the parameters %v", gradNames, names))
	}
	gradArrays, err := tree.Flatten(grads)
	if err != nil {
		return nil, err
	}
	all := make([]parameter, len(names))
	halves := 0
	for i, name := range names {
		p := &all[i]
		*p = parameter{name: name, array: arrays[i], master: arrays[i], grad: gradArrays[i]}
		if half(p.array) {
			halves++
			p.master = masters[name]
		}
		err := p.check(op, "master", p.master)
		if err == nil {
			err = p.check(op, "gradient", p.grad)
		}
		for _, m := range moments {
			if err == nil {
				err = p.check(op, "moment", m[name])
			}
			p.moments = append(p.moments, m[name])
		}
		if err != nil {
			return nil, err
		}
	}
	for _, m := range moments {
		if len(m) != len(names) || len(masters) != halves {
			return nil, mlxc.NewError(op, errors.New("the state has more parameters than the tree: make it with Init "+
				"for these parameters"))
		}
	}
	return all, nil
}

// check checks an array that belongs to the parameter.
func (p *parameter) check(op, what string, a *mlxc.Array) error {
	if a == nil {
		return mlxc.NewError(op, fmt.Errorf("the state has no %s of %s: make it with Init for these parameters", what,
			p.name), p.array)
	}
	if err := errors.Join(p.array.Err(), a.Err()); err != nil {
		return err
	}
	if !a.DType().IsFloating() || !slices.Equal(p.array.Shape(), a.Shape()) {
		return mlxc.NewError(op, fmt.Errorf("the %s of %s must be floating-point and have its shape", what, p.name),
			p.array, a)
	}
	return nil
}

// rateAt returns the learning rate of the update that follows `step` updates.
func rateAt(op string, rate Schedule, step *mlxc.Array) (*mlxc.Array, error) {
	if rate == nil {
		return nil, mlxc.NewError(op, errors.New("LearningRate is nil: set it, for example to optim.Constant(1e-3)"))
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
		return nil, mlxc.NewError(op, errors.New("the schedule LearningRate must give a floating-point array of shape ()"), r)
	}
	return r, nil
}

// setting returns value, or byDefault if value is 0. It returns an error if the result is not in [0, below).
func setting(op, name string, value, byDefault, below float64) (float64, error) {
	if value == 0 {
		value = byDefault
	}
	if !(value >= 0 && value < below) || math.IsInf(value, 0) {
		return 0, mlxc.NewError(op, fmt.Errorf("%s is %v: it must be at least 0 and below %v", name, value, below))
	}
	return value, nil
}

// next returns step + 1.
func next(step *mlxc.Array) *mlxc.Array { return step.Add(mlxc.Scalar[int32](1)) }

// decayed reports whether weight decay applies to a parameter.
func decayed(decay float64, decays func(name string) bool, name string) bool {
	return decay > 0 && (decays == nil || decays(name))
}

// scoped runs an update in a scope, which frees its intermediate arrays.
func scoped[P, S any](f func() (P, S, error)) (params P, state S, err error) {
	mlxc.WithScope(func() {
		if params, state, err = f(); err != nil {
			return
		}
		if err = tree.Keep(params); err == nil {
			err = tree.Keep(state)
		}
	})
	return params, state, err
}

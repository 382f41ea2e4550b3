package gomlx

import (
	"fmt"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// asCallee returns a function of the same builder that has returned. A closure must be one of f.
func (f *function) asCallee(role string, callee backends.Function, closure bool) (*function, error) {
	g, ok := callee.(*function)
	switch {
	case !ok || g == nil || g.builder != f.builder:
		return nil, fmt.Errorf("the %s is a %T; it must be a function of this builder", role, callee)
	case closure && g.parent != f:
		return nil, fmt.Errorf("the %s must be a closure of this function", role)
	case !closure && g.parent != nil:
		return nil, fmt.Errorf("the %s must be a named function", role)
	case !g.returned:
		return nil, fmt.Errorf("the %s has no Return", role)
	}
	return g, nil
}

// checkSignature returns an error unless the values have the given shapes.
func checkSignature(role string, values []*value, want []shapes.Shape) error {
	got := shapesOf(values)
	if !slices.EqualFunc(got, want, shapes.Shape.Equal) {
		return fmt.Errorf("the %s are %v; they must be %v", role, got, want)
	}
	return nil
}

func isPredicate(s shapes.Shape) bool { return s.IsScalar() && s.DType == dtypes.Bool }

// captured returns the values of f that the closures use, one list after the other.
func captured(closures ...*function) (values []backends.Value) {
	for _, c := range closures {
		for _, capture := range c.captures {
			values = append(values, capture.outer)
		}
	}
	return values
}

// addCall adds a step that calls other functions. It is dynamic if the course of the step, or of a callee, depends on
// values. The step is not tried out: the steps of the callees have been.
func (f *function) addCall(
	op backends.OpType, inputs []backends.Value, out []shapes.Shape, dynamic bool, run runFunc,
) ([]backends.Value, error) {
	in, err := f.resolve(inputs)
	if err != nil {
		return nil, fmt.Errorf("gomlx: %v: %w", op, err)
	}
	return f.append(&step{op: op, in: in, run: run, dynamic: dynamic}, out), nil
}

// Call calls a named function.
func (f *function) Call(callee backends.Function, inputs ...backends.Value) ([]backends.Value, error) {
	const op = backends.OpTypeCall
	g, err := f.asCallee("function", callee, false)
	if err != nil {
		return nil, fmt.Errorf("gomlx: %v: %w", op, err)
	}
	in, err := f.resolve(inputs)
	if err == nil {
		err = checkSignature("inputs", in, shapesOf(g.parameters))
	}
	if err != nil {
		return nil, fmt.Errorf("gomlx: %v: %w", op, err)
	}
	return f.addCall(op, inputs, shapesOf(g.outputs), g.dynamic, g.call)
}

// If calls one of two closures. The step reads the predicate, and computes only the chosen branch.
func (f *function) If(pred backends.Value, trueBranch, falseBranch backends.Function) ([]backends.Value, error) {
	const op = backends.OpTypeIf
	fail := func(err error) ([]backends.Value, error) { return nil, fmt.Errorf("gomlx: %v: %w", op, err) }
	onTrue, err := f.asCallee("true branch", trueBranch, true)
	if err != nil {
		return fail(err)
	}
	onFalse, err := f.asCallee("false branch", falseBranch, true)
	if err != nil {
		return fail(err)
	}
	in, err := f.resolve([]backends.Value{pred})
	if err != nil {
		return fail(err)
	}
	if !isPredicate(in[0].shape) {
		return fail(fmt.Errorf("the predicate is %v; it must be a boolean scalar", in[0].shape))
	}
	if len(onTrue.parameters)+len(onFalse.parameters) > 0 {
		return fail(fmt.Errorf("the branches have %d and %d parameters; they must have none", len(onTrue.parameters),
			len(onFalse.parameters)))
	}
	if err := checkSignature("outputs of the false branch", onFalse.outputs, shapesOf(onTrue.outputs)); err != nil {
		return fail(err)
	}
	inputs := append([]backends.Value{pred}, captured(onTrue, onFalse)...)
	run := func(in []*mlxc.Array) ([]*mlxc.Array, error) {
		chosen, err := mlxc.Item[bool](in[0])
		if err != nil {
			return nil, err
		}
		if split := 1 + len(onTrue.captures); !chosen {
			return onFalse.call(in[split:])
		} else {
			return onTrue.call(in[1:split])
		}
	}
	return f.addCall(op, inputs, shapesOf(onTrue.outputs), true, run)
}

// While calls the body on the state until the condition is false.
func (f *function) While(cond, body backends.Function, initialState ...backends.Value) ([]backends.Value, error) {
	const op = backends.OpTypeWhile
	fail := func(err error) ([]backends.Value, error) { return nil, fmt.Errorf("gomlx: %v: %w", op, err) }
	condition, err := f.asCallee("condition", cond, true)
	if err != nil {
		return fail(err)
	}
	loop, err := f.asCallee("body", body, true)
	if err != nil {
		return fail(err)
	}
	in, err := f.resolve(initialState)
	if err != nil {
		return fail(err)
	}
	state := shapesOf(in)
	if len(state) == 0 {
		return fail(fmt.Errorf("there is no initial state"))
	}
	if len(condition.outputs) != 1 || !isPredicate(condition.outputs[0].shape) {
		return fail(fmt.Errorf("the outputs of the condition are %v; it must have one, a boolean scalar",
			shapesOf(condition.outputs)))
	}
	for _, check := range []error{
		checkSignature("parameters of the condition", condition.parameters, state),
		checkSignature("parameters of the body", loop.parameters, state),
		checkSignature("outputs of the body", loop.outputs, state),
	} {
		if check != nil {
			return fail(check)
		}
	}
	inputs := slices.Concat(initialState, captured(condition, loop))
	return f.addCall(op, inputs, state, true, func(in []*mlxc.Array) ([]*mlxc.Array, error) {
		n := len(state)
		split := n + len(condition.captures)
		return runLoop(condition, loop, in[:n], in[n:split], in[split:])
	})
}

// runLoop runs a loop. Each iteration has a scope, computes the new state and frees the old one.
func runLoop(
	condition, loop *function, initial, conditionCaptures, loopCaptures []*mlxc.Array,
) (state []*mlxc.Array, err error) {
	state = initial
	for first := true; ; first = false {
		done := false
		err := mlxc.WithScopeErr(func() error {
			result, err := condition.call(slices.Concat(state, conditionCaptures))
			if err != nil {
				return err
			}
			if more, err := mlxc.Item[bool](result[0]); err != nil || !more {
				done = true
				return err
			}
			next, err := loop.call(slices.Concat(state, loopCaptures))
			if err != nil {
				return err
			}
			for i, a := range next {
				// A result of a function that is not compiled may be one of its arguments.
				next[i] = a.Reshape(a.Shape()...).Keep()
			}
			if err := mlxc.Eval(next...); err != nil {
				return err
			}
			if !first {
				for _, a := range state {
					a.Free()
				}
			}
			state = next
			return nil
		})
		if err != nil || done {
			return state, err
		}
	}
}

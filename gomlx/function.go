package gomlx

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// function implements backends.Function: a list of steps in the order in which GoMLX added them. Methods that add steps
// serve one goroutine; any goroutine may call a returned function.
type function struct {
	builder *builder
	name    string // "" for a closure
	parent  *function

	steps          []*step
	parameters     []*value
	parameterNames []string
	captures       []capture
	outputs        []*value
	constants      []*mlxc.Array
	values         int // number of values, the next value's slot
	returned       bool

	// Set by Return.
	live    []*step // the steps on which the outputs depend
	dynamic bool    // live steps depend on values of arrays, so MLX cannot compile the function

	program func() *mlxc.Compiled // the compiled function; nil if dynamic
}

var _ backends.Function = (*function)(nil)

// value is a result of a step, a parameter or a captured value.
type value struct {
	fn    *function
	slot  int // index in the list of arrays of an execution of fn
	shape shapes.Shape
}

// capture is a value of the parent function that a closure uses. It follows the parameters in the closure's arguments.
type capture struct{ outer, inner *value }

// step is an operation of a function.
type step struct {
	op      backends.OpType
	in, out []*value
	run     runFunc
	dynamic bool
}

// runFunc computes the results of a step. Except in dynamic steps, it only adds nodes to MLX's graph.
type runFunc func(in []*mlxc.Array) ([]*mlxc.Array, error)

func (f *function) Name() string { return f.name }

func (f *function) Parent() backends.Function {
	if f.parent == nil {
		return nil
	}
	return f.parent
}

// Closure returns a function that may use the values of f and of f's ancestors.
func (f *function) Closure() (backends.Function, error) {
	if err := f.checkOpen(); err != nil {
		return nil, err
	}
	return f.builder.newFunction("", f), nil
}

func (f *function) checkOpen() error {
	if f.builder.backend.IsFinalized() {
		return errFinalized
	}
	if f.builder.compiled {
		return errCompiled
	}
	if f.returned {
		return fmt.Errorf("gomlx: the function %q has returned; it takes no further operations", f.name)
	}
	return nil
}

func (f *function) newValue(s shapes.Shape) *value {
	f.values++
	return &value{fn: f, slot: f.values - 1, shape: s}
}

// resolve returns the values of f for the inputs of an operation. It captures values of ancestors.
func (f *function) resolve(inputs []backends.Value) ([]*value, error) {
	if err := f.checkOpen(); err != nil {
		return nil, err
	}
	out := make([]*value, len(inputs))
	for i, input := range inputs {
		v, ok := input.(*value)
		if !ok || v == nil {
			return nil, fmt.Errorf("input %d is a %T; it must be a value of this backend", i, input)
		}
		if out[i] = f.local(v); out[i] == nil {
			return nil, fmt.Errorf("input %d belongs to another function", i)
		}
	}
	return out, nil
}

// local returns v as a value of f, or nil if v belongs neither to f nor to an ancestor of f.
func (f *function) local(v *value) *value {
	if v.fn == f {
		return v
	}
	if f.parent == nil {
		return nil
	}
	outer := f.parent.local(v)
	if outer == nil {
		return nil
	}
	for _, c := range f.captures {
		if c.outer == outer {
			return c.inner
		}
	}
	inner := f.newValue(v.shape)
	f.captures = append(f.captures, capture{outer, inner})
	return inner
}

// add adds a step. infer checks the shapes of the inputs and returns the shapes of the results and the function that
// computes them. add runs that function on arrays without values: an operation that MLX refuses is not implemented.
func (f *function) add(
	op backends.OpType, inputs []backends.Value, infer func(in []shapes.Shape) ([]shapes.Shape, runFunc, error),
) (results []backends.Value, err error) {
	defer func() {
		// GoMLX's functions for shapes panic on some wrong arguments.
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
		if err != nil {
			results, err = nil, fmt.Errorf("gomlx: %v: %w", op, err)
		}
	}()
	in, err := f.resolve(inputs)
	if err != nil {
		return nil, err
	}
	out, run, err := infer(shapesOf(in))
	if err != nil {
		return nil, err
	}
	for _, s := range out {
		if !f.builder.backend.supports(s.DType) {
			return nil, fmt.Errorf("MLX has no dtype %v on the %v: %w", s.DType, f.builder.backend.device,
				backends.ErrNotImplemented)
		}
	}
	s := &step{op: op, in: in, run: run}
	if err := f.try(s, out); err != nil {
		return nil, fmt.Errorf("%w: %w", backends.ErrNotImplemented, err)
	}
	return f.append(s, out), nil
}

// try runs a step on arrays of zeros, which are not computed.
func (f *function) try(s *step, out []shapes.Shape) error {
	return f.builder.backend.outsideScopes(func() error {
		in := make([]*mlxc.Array, len(s.in))
		for i, v := range s.in {
			in[i] = mlxc.Zeros(mlxDType(v.shape.DType), v.shape.Dimensions...)
		}
		_, err := s.compute(in, out)
		return err
	})
}

func (f *function) append(s *step, out []shapes.Shape) []backends.Value {
	results := make([]backends.Value, len(out))
	for i, shape := range out {
		v := f.newValue(shape.Clone())
		s.out = append(s.out, v)
		results[i] = v
	}
	f.steps = append(f.steps, s)
	return results
}

// compute runs the step and converts its results to the dtypes of out. MLX promotes some dtypes, such as int8 in sums.
func (s *step) compute(in []*mlxc.Array, out []shapes.Shape) ([]*mlxc.Array, error) {
	results, err := s.run(in)
	if err != nil {
		return nil, err
	}
	if len(results) != len(out) {
		return nil, fmt.Errorf("%v has %d results; it must have %d", s.op, len(results), len(out))
	}
	for i, r := range results {
		if err := r.Err(); err != nil {
			return nil, err
		}
		if d := mlxDType(out[i].DType); r.DType() != d {
			results[i] = r.AsType(d)
		}
		if !slices.Equal(r.Shape(), out[i].Dimensions) {
			return nil, fmt.Errorf("result %d of %v has the shape %v; it must have %v", i, s.op, r.Shape(), out[i].Dimensions)
		}
	}
	return results, nil
}

// add1 is add for an operation with one result.
func (f *function) add1(
	op backends.OpType, inputs []backends.Value,
	infer func(in []shapes.Shape) (shapes.Shape, func(in []*mlxc.Array) *mlxc.Array, error),
) (backends.Value, error) {
	results, err := f.add(op, inputs, func(in []shapes.Shape) ([]shapes.Shape, runFunc, error) {
		out, run, err := infer(in)
		return []shapes.Shape{out}, func(in []*mlxc.Array) ([]*mlxc.Array, error) {
			return []*mlxc.Array{run(in)}, nil
		}, err
	})
	if err != nil {
		return nil, err
	}
	return results[0], nil
}

func shapesOf(values []*value) []shapes.Shape {
	out := make([]shapes.Shape, len(values))
	for i, v := range values {
		out[i] = v.shape
	}
	return out
}

// Parameter adds a parameter. Shardings are not implemented.
func (f *function) Parameter(name string, shape shapes.Shape, sharding *backends.ShardingSpec) (backends.Value, error) {
	if err := f.checkOpen(); err != nil {
		return nil, err
	}
	if sharding != nil {
		return nil, notImplemented("Parameter %q with a sharding", name)
	}
	if err := f.builder.backend.checkShape("Parameter", shape); err != nil {
		return nil, err
	}
	v := f.newValue(shape.Clone())
	f.parameters = append(f.parameters, v)
	f.parameterNames = append(f.parameterNames, name)
	return v, nil
}

// Constant adds an array with a copy of flat.
func (f *function) Constant(flat any, dims ...int) (backends.Value, error) {
	if err := f.checkOpen(); err != nil {
		return nil, err
	}
	t := reflect.TypeOf(flat)
	if t == nil || t.Kind() != reflect.Slice {
		return nil, fmt.Errorf("gomlx: Constant: the flat data is a %T; it must be a slice", flat)
	}
	shape := shapes.Shape{DType: dtypes.FromGoType(t.Elem()), Dimensions: slices.Clone(dims)}
	b, err := f.builder.backend.BufferFromFlatData(0, flat, shape)
	if err != nil {
		return nil, err
	}
	array := b.(*buffer).array
	f.constants = append(f.constants, array)
	s := &step{op: backends.OpTypeConstant, run: func([]*mlxc.Array) ([]*mlxc.Array, error) {
		return []*mlxc.Array{array}, nil
	}}
	return f.append(s, []shapes.Shape{shape})[0], nil
}

// Return ends the function. Shardings are not implemented.
func (f *function) Return(outputs []backends.Value, shardings []*backends.ShardingSpec) error {
	if len(outputs) == 0 {
		return errors.New("gomlx: Return: there are no outputs")
	}
	for _, s := range shardings {
		if s != nil {
			return notImplemented("Return with a sharding")
		}
	}
	out, err := f.resolve(outputs)
	if err != nil {
		return fmt.Errorf("gomlx: Return: %w", err)
	}
	f.outputs, f.returned = out, true
	needed := make([]bool, f.values)
	need := func(values []*value) {
		for _, v := range values {
			needed[v.slot] = true
		}
	}
	need(out)
	for _, s := range slices.Backward(f.steps) {
		if slices.ContainsFunc(s.out, func(v *value) bool { return needed[v.slot] }) {
			need(s.in)
			f.live = append(f.live, s)
			f.dynamic = f.dynamic || s.dynamic
		}
	}
	slices.Reverse(f.live)
	f.steps = nil
	if !f.dynamic {
		f.program = sync.OnceValue(func() *mlxc.Compiled { return mlxc.Compile(f.trace) })
	}
	return nil
}

// run computes the outputs from the parameters and the captured values.
func (f *function) run(args []*mlxc.Array) ([]*mlxc.Array, error) {
	arrays := make([]*mlxc.Array, f.values)
	for i, p := range f.parameters {
		arrays[p.slot] = args[i]
	}
	for i, c := range f.captures {
		arrays[c.inner.slot] = args[len(f.parameters)+i]
	}
	for _, s := range f.live {
		out, err := s.compute(pick(arrays, s.in), shapesOf(s.out))
		if err != nil {
			return nil, fmt.Errorf("gomlx: %v: %w", s.op, err)
		}
		for i, v := range s.out {
			arrays[v.slot] = out[i]
		}
	}
	return pick(arrays, f.outputs), nil
}

func pick(arrays []*mlxc.Array, values []*value) []*mlxc.Array {
	out := make([]*mlxc.Array, len(values))
	for i, v := range values {
		out[i] = arrays[v.slot]
	}
	return out
}

// call is run, compiled by MLX if the function is not dynamic. The results belong to the caller's scope.
func (f *function) call(args []*mlxc.Array) (results []*mlxc.Array, err error) {
	if f.dynamic {
		return f.run(args)
	}
	return f.program().Call(args...)
}

// trace is run for transforms of package mlxc.
func (f *function) trace(args []*mlxc.Array) []*mlxc.Array {
	results, err := f.run(args)
	if err != nil {
		return []*mlxc.Array{mlxc.InvalidArray(err)}
	}
	return results
}

func (f *function) free() {
	if f.program != nil {
		f.program().Close()
	}
	for _, c := range f.constants {
		c.Free()
	}
}

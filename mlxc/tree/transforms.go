package tree

import (
	"errors"
	"fmt"
	"sync"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// ValueAndGrad returns a function that computes f, a loss of shape (), and its gradient with respect to every array of
// the tree, as a tree of the same form. The arrays must have floating-point dtypes.
//
// Arrays that f captures, such as the batch, count as constants. f runs before the returned function returns, on the
// calling goroutine. Several goroutines may use the returned function, as may other transforms, such as Compile.
func ValueAndGrad[T any](f func(params T) *mlxc.Array) func(params T) (value *mlxc.Array, grads T, err error) {
	var both func(T) (*mlxc.Array, struct{})
	if f != nil {
		both = func(params T) (*mlxc.Array, struct{}) { return f(params), struct{}{} }
	}
	of := valueAndGrad("ValueAndGrad", both)
	return func(params T) (value *mlxc.Array, grads T, err error) {
		value, _, grads, err = of(params)
		return value, grads, err
	}
}

// ValueAndGradAux is ValueAndGrad for a function that also returns auxiliary results, such as logits or a count of
// hits: a tree of arrays of any dtypes and shapes, which do not contribute to the gradient.
func ValueAndGradAux[T, A any](f func(params T) (value *mlxc.Array, aux A)) func(params T) (value *mlxc.Array, aux A,
	grads T, err error) {
	return valueAndGrad("ValueAndGradAux", f)
}

func valueAndGrad[T, A any](op string, f func(params T) (*mlxc.Array, A)) func(params T) (value *mlxc.Array, aux A,
	grads T, err error) {
	return func(params T) (value *mlxc.Array, aux A, grads T, err error) {
		if f == nil {
			return nil, aux, grads, errors.New("tree: " + op + ": the function is nil")
		}
		names, arrays, err := flatten(params)
		if err != nil {
			return nil, aux, grads, err
		}
		if len(arrays) == 0 {
			return nil, aux, grads, errors.New("tree: " + op + ": the tree has no arrays to take a gradient for")
		}
		all := make([]int, len(arrays))
		for i, a := range arrays {
			if all[i] = i; a.Err() == nil && !a.DType().IsFloating() {
				return nil, aux, grads, fail(names[i],
					"it is %v, which has no gradient: exclude it from the tree, or convert it with AsType", a.DType())
			}
		}
		var like A
		values, vjps, err := mlxc.ValueAndGrad(func(args []*mlxc.Array) []*mlxc.Array {
			p, err := Unflatten(params, args)
			if err != nil {
				return []*mlxc.Array{mlxc.InvalidArray(err)}
			}
			value, more := f(p)
			if value != nil && value.Err() == nil && !value.DType().IsFloating() {
				err := fmt.Errorf("the function's value is %v, which has no gradient: return a floating-point array",
					value.DType())
				return []*mlxc.Array{mlxc.InvalidArray(mlxc.NewError("tree."+op, err))}
			}
			like = more
			_, others, err := flatten(more)
			if err != nil {
				return []*mlxc.Array{mlxc.InvalidArray(err)}
			}
			return append([]*mlxc.Array{value}, others...)
		}, all...)(arrays)
		if err != nil {
			return nil, aux, grads, err
		}
		if aux, err = Unflatten(like, values[1:]); err != nil {
			return nil, aux, grads, err
		}
		grads, err = Unflatten(params, vjps)
		return values[0], aux, grads, err
	}
}

// Compiled is a compiled function from trees to trees; see mlxc.Compiled.
type Compiled[In, Out any] struct {
	compiled *mlxc.Compiled

	mu  sync.Mutex
	in  form[In]
	out form[Out]
}

// form is the structure of a tree without its arrays, set by the first tree.
type form[T any] struct {
	known bool
	names []string
	like  T
}

// noArray is the placeholder of an array in a form. A nil array would count as an absent optional array.
var noArray = mlxc.InvalidArray(errors.New("tree: there is no array in a form"))

// fix stores the form of the first tree, and compares later trees with it. It returns the arrays of t.
func (f *form[T]) fix(mu *sync.Mutex, t T) ([]*mlxc.Array, error) {
	names, arrays, err := flatten(t)
	if err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	if f.known {
		return arrays, sameNames(f.names, names)
	}
	like, err := walk(t, func(string, *mlxc.Array) (*mlxc.Array, error) { return noArray, nil })
	if err != nil {
		return nil, err
	}
	f.known, f.names, f.like = true, names, like
	return arrays, nil
}

func (f *form[T]) unflatten(mu *sync.Mutex, arrays []*mlxc.Array) (T, error) {
	mu.Lock()
	like := f.like
	mu.Unlock()
	return Unflatten(like, arrays)
}

// Compile returns a compiled form of f; see mlxc.Compile. f runs at the first call with new shapes, dtypes or stream,
// on arrays without values, and not at later ones. An error of f is returned by the call.
//
// The first call fixes the form of the trees, that is, everything except their arrays. Later trees must have the same
// names. Fields with the tag `mlx:"-"` keep the value of the first call.
//
// A training step maps the parameters, the optimizer's state and a batch to the new parameters, the new state and the
// loss. Arrays that f captures are constants with the values that they had when f ran.
func Compile[In, Out any](f func(In) (Out, error)) *Compiled[In, Out] {
	c := &Compiled[In, Out]{}
	if f == nil {
		c.compiled = mlxc.Compile(nil)
		return c
	}
	c.compiled = mlxc.Compile(func(args []*mlxc.Array) []*mlxc.Array {
		results, err := c.run(f, args)
		if err != nil {
			return []*mlxc.Array{mlxc.InvalidArray(err)}
		}
		return results
	})
	return c
}

func (c *Compiled[In, Out]) run(f func(In) (Out, error), args []*mlxc.Array) ([]*mlxc.Array, error) {
	in, err := c.in.unflatten(&c.mu, args)
	if err != nil {
		return nil, err
	}
	out, err := f(in)
	if err != nil {
		return nil, err
	}
	return c.out.fix(&c.mu, out)
}

// Call runs the compiled function. Any goroutine may call it. Inside another transform it runs the original function.
func (c *Compiled[In, Out]) Call(in In) (out Out, err error) {
	args, err := c.in.fix(&c.mu, in)
	if err != nil {
		return out, err
	}
	results, err := c.compiled.Call(args...)
	if err != nil {
		return out, err
	}
	return c.out.unflatten(&c.mu, results)
}

// Close frees the compiled function. Running calls finish; later calls fail. An unreachable function is freed without
// Close.
func (c *Compiled[In, Out]) Close() { c.compiled.Close() }

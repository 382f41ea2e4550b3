package gomlx

import (
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/stretchr/testify/require"
)

// closure returns a closure of f with parameters of the shapes.
func closure(f backends.Function, build buildFunc, params ...shapes.Shape) (backends.Function, error) {
	c, err := f.Closure()
	if err != nil {
		return nil, err
	}
	in := make([]backends.Value, len(params))
	for i, s := range params {
		if in[i], err = c.Parameter("", s, nil); err != nil {
			return nil, err
		}
	}
	out, err := build(c, in)
	if err != nil {
		return nil, err
	}
	return c, c.Return(out, nil)
}

// double doubles the first value, count times, where count is the second.
func double(f backends.Function, in []backends.Value) ([]backends.Value, error) {
	state := []shapes.Shape{shapes.Make(dtypes.Float32, 2), shapes.Make(dtypes.Int32)}
	zero, err := f.Constant([]int32{0})
	if err != nil {
		return nil, err
	}
	one, err := f.Constant([]int32{1})
	if err != nil {
		return nil, err
	}
	cond, err := closure(f, func(f backends.Function, in []backends.Value) ([]backends.Value, error) {
		more, err := f.GreaterThan(in[1], zero)
		return []backends.Value{more}, err
	}, state...)
	if err != nil {
		return nil, err
	}
	body, err := closure(f, func(f backends.Function, in []backends.Value) ([]backends.Value, error) {
		x, err := f.Add(in[0], in[0])
		if err != nil {
			return nil, err
		}
		n, err := f.Sub(in[1], one)
		return []backends.Value{x, n}, err
	}, state...)
	if err != nil {
		return nil, err
	}
	return f.While(cond, body, in...)
}

func TestWhile(t *testing.T) {
	x := of([]float32{1, 3}, 2)
	require.Equal(t, []any{[]float32{16, 48}, []int32{0}}, compute(t, double, x, of([]int32{4})))
	require.Equal(t, []any{[]float32{1, 3}, []int32{0}}, compute(t, double, x, of([]int32{0})), "no iteration")
}

func TestIfChoosesABranchOfNestedClosures(t *testing.T) {
	build := func(f backends.Function, in []backends.Value) ([]backends.Value, error) {
		pred, err := f.GreaterThan(in[1], in[2])
		if err != nil {
			return nil, err
		}
		onTrue, err := closure(f, func(f backends.Function, _ []backends.Value) ([]backends.Value, error) {
			return double(f, in[:2]) // captures across two levels
		})
		if err != nil {
			return nil, err
		}
		onFalse, err := closure(f, func(_ backends.Function, _ []backends.Value) ([]backends.Value, error) {
			return in[:2], nil
		})
		if err != nil {
			return nil, err
		}
		return f.If(pred, onTrue, onFalse)
	}
	x := of([]float32{1, 3}, 2)
	require.Equal(t, []any{[]float32{4, 12}, []int32{0}}, compute(t, build, x, of([]int32{2}), of([]int32{1})))
	require.Equal(t, []any{[]float32{1, 3}, []int32{2}}, compute(t, build, x, of([]int32{2}), of([]int32{2})))
}

// sortBuilder sorts keys and positions along an axis by a comparator of the keys.
func sortBuilder(axis int, less func(f backends.Function, x, y backends.Value) (backends.Value, error)) buildFunc {
	return func(f backends.Function, in []backends.Value) ([]backends.Value, error) {
		key, position := shapes.Make(dtypes.Int32), shapes.Make(dtypes.Int32)
		c, err := closure(f, one(func(f backends.Function, in []backends.Value) (backends.Value, error) {
			return less(f, in[0], in[1])
		}), key, key, position, position)
		if err != nil {
			return nil, err
		}
		return f.Sort(c, axis, true, in...)
	}
}

func TestSort(t *testing.T) {
	const n = 13
	keys, positions := make([]int32, n), make([]int32, n)
	for i := range keys {
		keys[i], positions[i] = int32(i*7%5)-2, int32(i)
	}
	// All comparators order by the key, or by its square.
	direct := func(f backends.Function, x, y backends.Value) (backends.Value, error) { return f.LessThan(x, y) }
	descending := func(f backends.Function, x, y backends.Value) (backends.Value, error) { return f.LessThan(y, x) }
	square := func(f backends.Function, x, y backends.Value) (backends.Value, error) {
		x2, err := f.Mul(x, x)
		if err != nil {
			return nil, err
		}
		y2, err := f.Mul(y, y)
		if err != nil {
			return nil, err
		}
		return f.LessThan(x2, y2)
	}
	for name, c := range map[string]struct {
		less func(backends.Function, backends.Value, backends.Value) (backends.Value, error)
		key  func(int32) int32
	}{
		"ascending":  {direct, func(k int32) int32 { return k }},
		"descending": {descending, func(k int32) int32 { return -k }},
		"squares":    {square, func(k int32) int32 { return k * k }},
	} {
		t.Run(name, func(t *testing.T) {
			out := compute(t, sortBuilder(0, c.less), of(keys, n), of(positions, n))
			sorted, order := out[0].([]int32), out[1].([]int32)
			for i := range sorted {
				require.Equal(t, keys[order[i]], sorted[i])
				if i > 0 {
					a, b := c.key(sorted[i-1]), c.key(sorted[i])
					require.True(t, a < b || a == b && order[i-1] < order[i], "%v %v", sorted, order)
				}
			}
		})
	}
	// Rows of a matrix, along axis 0.
	out := compute(t, sortBuilder(0, square), of([]int32{3, -1, 2, 0, -1, 5}, 3, 2), of([]int32{0, 1, 2, 3, 4, 5}, 3, 2))
	require.Equal(t, []any{[]int32{-1, 0, 2, -1, 3, 5}, []int32{4, 3, 2, 1, 0, 5}}, out)
}

func TestCallOfANamedFunction(t *testing.T) {
	b := newBackend(t)
	builder := b.Builder("test")
	square, err := builder.NewFunction("square")
	require.NoError(t, err)
	p, err := square.Parameter("x", shapes.Make(dtypes.Float32), nil)
	require.NoError(t, err)
	y, err := square.Mul(p, p)
	require.NoError(t, err)
	require.NoError(t, square.Return([]backends.Value{y}, nil))
	main := builder.Main()
	x, err := main.Parameter("x", shapes.Make(dtypes.Float32), nil)
	require.NoError(t, err)
	once, err := main.Call(square, x)
	require.NoError(t, err)
	twice, err := main.Call(square, once...)
	require.NoError(t, err)
	require.NoError(t, main.Return(append(twice, twice[0], x), nil))
	e, err := builder.Compile()
	require.NoError(t, err)
	out, err := e.Execute(buffers(t, b, of([]float32{3})), nil, 0)
	require.NoError(t, err)
	require.Equal(t, []any{[]float32{81}, []float32{81}, []float32{3}}, read(t, b, out))
}

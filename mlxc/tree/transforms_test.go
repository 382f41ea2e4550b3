package tree_test

import (
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// loss is (w·x + b)². Its gradients are 2·(w·x + b)·x and 2·(w·x + b).
func loss(x *mlxc.Array) func(linear) *mlxc.Array {
	return func(p linear) *mlxc.Array { return p.Weight.Mul(x).Add(p.Bias).Square().Sum() }
}

func TestValueAndGradOfATree(t *testing.T) {
	value, grads, err := tree.ValueAndGrad(loss(number(3)))(linear{number(2), number(1)})
	require.NoError(t, err)
	require.Equal(t, []float32{49, 42, 14}, values(t, []*mlxc.Array{value, grads.Weight, grads.Bias}))

	many := func(p map[string][]*mlxc.Array) *mlxc.Array {
		sum := mlxc.Scalar[float32](0)
		for i, a := range p["a"] {
			sum = sum.Add(a.MulScalar(float64(i + 1)))
		}
		return sum.Mul(p["b"][0])
	}
	p := map[string][]*mlxc.Array{"b": {number(10)}}
	for range 12 { // includes names of two digits
		p["a"] = append(p["a"], number(1))
	}
	_, g, err := tree.ValueAndGrad(many)(p)
	require.NoError(t, err)
	require.Equal(t, []float32{10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 78}, flattened(t, g))
}

func TestValueAndGradErrors(t *testing.T) {
	p := linear{number(2), number(1)}
	_, _, err := tree.ValueAndGrad[linear](nil)(p)
	require.EqualError(t, err, "tree: ValueAndGrad: the function is nil")
	_, _, err = tree.ValueAndGrad(loss(number(1)))(linear{Weight: number(1)})
	require.ErrorIs(t, err, mlxc.ErrNil)
	_, _, err = tree.ValueAndGrad(func([]*mlxc.Array) *mlxc.Array { return number(1) })(nil)
	require.EqualError(t, err, "tree: ValueAndGrad: the tree has no arrays to take a gradient for")
	_, _, err = tree.ValueAndGrad(loss(number(1)))(linear{number(1), mlxc.Scalar[int32](1)})
	require.EqualError(t, err, "tree: bias: it is int32, which has no gradient: exclude it from the tree, or convert "+
		"it with AsType")
	_, _, err = tree.ValueAndGrad(func(p linear) *mlxc.Array { return p.Weight.Add(mlxc.Ones(mlxc.Float32, 2)) })(p)
	require.Error(t, err, "not a scalar")
	_, _, err = tree.ValueAndGrad(func(p linear) *mlxc.Array { return p.Weight.AsType(mlxc.Int32) })(p)
	require.ErrorContains(t, err, "the function's value is int32, which has no gradient: return a floating-point array")
	_, _, err = tree.ValueAndGrad(func(p linear) *mlxc.Array { panic("no") })(p)
	var panicked *mlxc.PanicError
	require.ErrorAs(t, err, &panicked)
	_, _, err = tree.ValueAndGrad(func(linear) *mlxc.Array { return nil })(p)
	require.ErrorIs(t, err, mlxc.ErrNil)
	freed := number(1)
	freed.Free()
	_, _, err = tree.ValueAndGrad(loss(number(1)))(linear{number(1), freed})
	require.ErrorIs(t, err, mlxc.ErrFreed)
}

// Auxiliary results do not contribute to the gradient: neither their dtype and shape nor their dependence on the
// parameters matters.
func TestValueAndGradAux(t *testing.T) {
	type more struct {
		Line, Hits, Batch, None *mlxc.Array `mlx:",omitempty"`
		Rounds                  int         `mlx:"-"`
	}
	x := mlxc.FromSlice([]float32{1, 2, 3})
	both := tree.ValueAndGradAux(func(p linear) (*mlxc.Array, more) {
		line := p.Weight.Mul(x).Add(p.Bias)
		return line.Square().Sum(), more{
			Line: line, Hits: line.Greater(number(4)).AsType(mlxc.Int32).Sum(), Batch: x,
			Rounds: 7,
		}
	})
	value, aux, grads, err := both(linear{number(2), number(1)})
	require.NoError(t, err)
	require.Equal(t, []float32{83, 68, 30}, values(t, []*mlxc.Array{value, grads.Weight, grads.Bias}))
	require.Equal(t, []float32{3, 5, 7, 1, 2, 3}, values(t, []*mlxc.Array{aux.Line, aux.Batch}))
	hits, err := mlxc.Item[int32](aux.Hits)
	require.NoError(t, err)
	require.EqualValues(t, 2, hits)
	require.Nil(t, aux.None)
	require.Equal(t, 7, aux.Rounds)

	step := tree.Compile(func(p linear) (map[string]*mlxc.Array, error) {
		value, aux, grads, err := both(p)
		return map[string]*mlxc.Array{"value": value, "line": aux.Line, "weight": grads.Weight}, err
	})
	out, err := step.Call(linear{number(2), number(1)})
	require.NoError(t, err)
	require.Equal(t, []float32{3, 5, 7, 83, 68}, values(t, []*mlxc.Array{out["line"], out["value"], out["weight"]}))

	_, _, _, err = tree.ValueAndGradAux[linear, more](nil)(linear{})
	require.EqualError(t, err, "tree: ValueAndGradAux: the function is nil")
	_, _, _, err = tree.ValueAndGradAux(func(p linear) (*mlxc.Array, []*mlxc.Array) {
		return p.Weight,
			[]*mlxc.Array{nil}
	})(linear{number(1), number(2)})
	require.ErrorIs(t, err, mlxc.ErrNil)
	_, _, _, err = tree.ValueAndGradAux(func(p linear) (*mlxc.Array, *mlxc.Array) {
		return p.Weight, p.Weight.Add(mlxc.Ones(mlxc.Float32, 2)).Add(mlxc.Ones(mlxc.Float32, 3))
	})(linear{number(1), number(2)})
	require.ErrorContains(t, err, "add")
	_, _, _, err = tree.ValueAndGradAux(func(p linear) (*mlxc.Array, *mlxc.Array) {
		return p.Weight.AsType(mlxc.Int32),
			x
	})(linear{number(1), number(2)})
	require.ErrorContains(t, err, "tree.ValueAndGradAux")
}

type input struct {
	Params linear
	X      *mlxc.Array
	Rate   float64 `mlx:"-"`
}

type output struct {
	Params linear
	Loss   *mlxc.Array
}

// descent counts its traces.
func descent(traces *int) func(in input) (output, error) {
	return func(in input) (output, error) {
		*traces++
		value, grads, err := tree.ValueAndGrad(loss(in.X))(in.Params)
		if err != nil {
			return output{}, err
		}
		p, err := tree.Map2(func(a, g *mlxc.Array) *mlxc.Array { return a.Sub(g.MulScalar(in.Rate)) }, in.Params, grads)
		return output{p, value}, err
	}
}

func TestCompile(t *testing.T) {
	traces := 0
	step := tree.Compile(descent(&traces))
	defer step.Close()
	in := input{linear{number(2), number(1)}, number(3), 0.5}
	out, err := step.Call(in)
	require.NoError(t, err)
	require.Equal(t, []float32{2 - 21, 1 - 7, 49}, flattened(t, out))

	in.Params, in.X = out.Params, number(0)
	out, err = step.Call(in)
	require.NoError(t, err)
	require.Equal(t, []float32{-19, 0, 36}, flattened(t, out))
	require.Equal(t, 1, traces)

	in.X = mlxc.FromSlice([]float32{0, 0}) // another shape
	out, err = step.Call(in)
	require.NoError(t, err)
	require.Equal(t, []float32{-19, 6, 72}, flattened(t, out))
	require.Equal(t, 2, traces)
}

func TestCompileOfTreesWithoutArrays(t *testing.T) {
	constant := tree.Compile(func(struct{}) (*mlxc.Array, error) { return number(3), nil })
	defer constant.Close()
	for range 2 {
		three, err := constant.Call(struct{}{})
		require.NoError(t, err)
		require.Equal(t, []float32{3}, values(t, []*mlxc.Array{three}))
	}
	empty := tree.Compile(func(linear) (struct{}, error) { return struct{}{}, nil })
	defer empty.Close()
	_, err := empty.Call(linear{number(1), number(2)})
	require.NoError(t, err)
}

func TestCompileErrors(t *testing.T) {
	wrong := errors.New("wrong")
	_, err := tree.Compile(func(linear) (linear, error) { return linear{}, wrong }).Call(linear{number(1), number(2)})
	require.ErrorIs(t, err, wrong)
	_, err = tree.Compile(func(p linear) (linear, error) {
		return linear{Weight: p.Weight},
			nil
	}).Call(linear{number(1), number(2)})
	require.ErrorIs(t, err, mlxc.ErrNil)
	_, err = tree.Compile[linear, linear](nil).Call(linear{number(1), number(2)})
	require.Error(t, err)
	_, err = tree.Compile(func(p linear) (linear, error) { return p, nil }).Call(linear{Weight: number(1)})
	require.ErrorIs(t, err, mlxc.ErrNil)

	first := tree.Compile(func(p []*mlxc.Array) (*mlxc.Array, error) { return p[0], nil })
	one, err := first.Call([]*mlxc.Array{number(1)})
	require.NoError(t, err)
	require.Equal(t, []float32{1}, values(t, []*mlxc.Array{one}))
	_, err = first.Call([]*mlxc.Array{number(1), number(2)})
	require.EqualError(t, err, `tree: one tree has no array where the other has array "1"`)

	first.Close()
	_, err = first.Call([]*mlxc.Array{number(1)})
	require.Error(t, err)
}

func TestCompiledFromManyGoroutines(t *testing.T) {
	traces := 0
	step := tree.Compile(descent(&traces))
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			out, err := step.Call(input{linear{number(float32(i)), number(0)}, number(1), 0.25})
			if err == nil {
				err = tree.Eval(out)
			}
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := mlxc.Item[float32](out.Params.Weight); err != nil || got != float32(i)/2 {
				t.Errorf("goroutine %d: %v, %v", i, got, err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, traces)
}

// The recorded form of the first call's trees must not hold their arrays.
func TestCompiledHoldsNoArrays(t *testing.T) {
	step := tree.Compile(func(p linear) (linear, error) { return p, nil })
	gone := make(chan bool)
	func() {
		p := linear{number(1), number(2)}
		runtime.AddCleanup(p.Weight, func(c chan bool) { close(c) }, gone)
		_, err := step.Call(p)
		require.NoError(t, err)
	}()
	for range 100 {
		runtime.GC()
		select {
		case <-gone:
			step.Close()
			return
		default:
			runtime.Gosched()
		}
	}
	t.Fatal("the array is still held")
}

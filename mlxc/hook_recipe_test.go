package mlxc_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/recipe"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A countedRecipe is a recipe with two outputs, x·y and its square, and a vjp that is 100 times too large. It counts the runs
// of its functions.
type countedRecipe struct {
	id                uint64
	forward, backward int
}

func newCountedRecipe(t *testing.T) *countedRecipe { return &countedRecipe{id: recipe.ID(t.Name())} }

func (c *countedRecipe) call(args arrays) arrays {
	return recipe.Use[*mlxc.Array]()(c.id, args, 2,
		func(a arrays) arrays {
			c.forward++
			product := a[0].Mul(a[1])
			return arrays{product, product.Square()}
		},
		func(p, cotangents, outputs arrays) arrays {
			c.backward++
			d := cotangents[0].Add(outputs[0].Mul(cotangents[1]).MulScalar(2)).MulScalar(100)
			return arrays{p[1].Mul(d), p[0].Mul(d)}
		})
}

// sum is the sum of both outputs.
func (c *countedRecipe) sum(args arrays) arrays {
	r := c.call(args)
	return arrays{r[0].Add(r[1]).Sum()}
}

func TestRecipeRunsItsFunctionsOnce(t *testing.T) {
	c := newCountedRecipe(t)
	for i := range 3 {
		x, y := mlxc.FromSlice([]float32{1, 2 + float32(i)}), mlxc.FromSlice([]float32{3, 4})
		values, grads, err := mlxc.ValueAndGrad(c.sum, 0, 1)(arrays{x, y})
		require.NoError(t, err)
		p := 4 * (2 + float32(i))
		require.Equal(t, []float32{3 + 9 + p + p*p}, mlxtest.Floats(t, values[0]))
		require.Equal(t, []float32{100 * 3 * (1 + 2*3), 100 * 4 * (1 + 2*p)}, mlxtest.Floats(t, grads[0]))
		require.Equal(t, []float32{100 * 1 * (1 + 2*3), 100 * (2 + float32(i)) * (1 + 2*p)}, mlxtest.Floats(t, grads[1]))
	}
	require.Equal(t, countedRecipe{c.id, 1, 1}, *c)
	for _, args := range []arrays{
		{mlxc.Ones(mlxc.Float32, 3), mlxc.Ones(mlxc.Float32, 3)},
		{mlxc.Ones(mlxc.Float32, 1, 2), mlxc.Ones(mlxc.Float32, 1, 2)},
		{mlxc.Ones(mlxc.Float16, 2), mlxc.Ones(mlxc.Float16, 2)},
	} {
		before := c.forward
		for range 2 {
			r := c.call(args)
			require.Equal(t, args[0].Shape(), r[1].Shape())
			require.Equal(t, args[0].DType(), r[1].DType())
		}
		require.Equal(t, before+1, c.forward, "%v", args[0].Shape())
	}
}

// The vjp is recorded for each list of arguments whose gradients are needed.
func TestRecipeOfSomeArguments(t *testing.T) {
	id, recordings := recipe.ID(t.Name()), 0
	f := func(a arrays) arrays {
		return recipe.Use[*mlxc.Array]()(id, a, 1,
			func(a arrays) arrays {
				product := a[0].Mul(a[1])
				return arrays{product.Square().Sum(), product}
			},
			func(p, cotangents, outputs arrays) arrays {
				recordings++
				d := outputs[1].Mul(cotangents[0]).MulScalar(2)
				return arrays{p[1].Mul(d), p[0].Mul(d)}
			})
	}
	x, y := mlxc.FromSlice([]float32{1}), mlxc.FromSlice([]float32{3})
	want := []float32{18, 6}
	for range 2 {
		for _, argnums := range [][]int{{0}, {1}, {0, 1}} {
			_, grads, err := mlxc.ValueAndGrad(f, argnums...)(arrays{x, y})
			require.NoError(t, err)
			for i, n := range argnums {
				require.Equal(t, want[n:n+1], mlxtest.Floats(t, grads[i]))
			}
		}
	}
	require.Equal(t, 3, recordings)
}

func TestRecipeUnderTransforms(t *testing.T) {
	c := newCountedRecipe(t)
	x, y := mlxc.FromSlice([]float32{1, 2}), mlxc.FromSlice([]float32{3, 4})
	c.call(arrays{x, y})
	gradient := func(a arrays) arrays {
		_, grads, err := mlxc.VJP(c.call, a, arrays{mlxc.OnesLike(a[0]), mlxc.ZerosLike(a[0])})
		require.NoError(t, err)
		return grads
	}
	want := []float32{300, 400}
	require.Equal(t, want, mlxtest.Floats(t, gradient(arrays{x, y})[0]))
	compiled, err := mlxc.Compile(gradient).Call(x, y)
	require.NoError(t, err)
	require.Equal(t, want, mlxtest.Floats(t, compiled[0]))

	// The rule is differentiated: d(100·y·dx)/dy = 100.
	second, err := mlxc.Grad(func(a arrays) arrays { return arrays{gradient(a)[0].Sum()} }, 1)(arrays{x, y})
	require.NoError(t, err)
	require.Equal(t, []float32{100, 100}, mlxtest.Floats(t, second[0]))

	_, tangents, err := mlxc.JVP(c.call, arrays{x, y}, arrays{mlxc.OnesLike(x), mlxc.ZerosLike(y)})
	require.NoError(t, err)
	require.Equal(t, []float32{3, 4}, mlxtest.Floats(t, tangents[0]), "derived from the nodes of the function")

	// In a batch, the function is recorded for an element's shape.
	batch := mlxc.Stack(0, x, x.MulScalar(2))
	mapped := mlxc.Vmap(func(a arrays) arrays { return gradient(arrays{a[0], y}) }, []int{0}, nil)
	require.Equal(t, []float32{300, 400, 300, 400}, mlxtest.Floats(t, mapped(arrays{batch})[0]))
	require.Equal(t, 1, c.forward)
	require.Equal(t, 1, c.backward)
}

// A recipe whose forward pass is one node becomes that node with another vjp.
func TestRecipeOfOneNode(t *testing.T) {
	id := recipe.ID(t.Name())
	f := func(a arrays) arrays {
		return recipe.Use[*mlxc.Array]()(id, a, 2,
			func(a arrays) arrays { return arrays{a[1].Sub(a[0])} },
			func(p, cotangents, outputs arrays) arrays {
				return arrays{p[0].Mul(cotangents[0]).MulScalar(100), outputs[0].Mul(cotangents[0])}
			})
	}
	x, y := mlxc.FromSlice([]float32{1, 2}), mlxc.FromSlice([]float32{5, 7})
	var graph strings.Builder
	require.NoError(t, mlxc.PrintGraph(&graph, nil, f(arrays{x, y})[0]))
	require.Contains(t, graph.String(), "Subtract")
	require.NotContains(t, graph.String(), "CustomTransforms")

	gradient := func(a arrays) arrays {
		_, grads, err := mlxc.VJP(f, a, arrays{mlxc.OnesLike(x)})
		require.NoError(t, err)
		return grads
	}
	compiled, err := mlxc.Compile(gradient).Call(x, y)
	require.NoError(t, err)
	_, again, err := mlxc.VJP(mlxc.Checkpoint(f), arrays{x, y}, arrays{mlxc.OnesLike(x)})
	require.NoError(t, err)
	for _, grads := range []arrays{gradient(arrays{x, y}), compiled, again} {
		require.Equal(t, []float32{100, 200}, mlxtest.Floats(t, grads[0]))
		require.Equal(t, []float32{4, 5}, mlxtest.Floats(t, grads[1]))
	}
	_, tangents, err := mlxc.JVP(f, arrays{x, y}, arrays{mlxc.OnesLike(x), mlxc.ZerosLike(y)})
	require.NoError(t, err)
	require.Equal(t, []float32{-1, -1}, mlxtest.Floats(t, tangents[0]))

	// The gradient of the argument without a mapped axis is a sum over the batch.
	batch := mlxc.Stack(0, x, x.MulScalar(2))
	mapped := func(a arrays) arrays { return mlxc.Vmap(f, []int{0, mlxc.Unmapped}, nil)(a) }
	require.Equal(t, []float32{4, 5, 3, 3}, mlxtest.Floats(t, mapped(arrays{batch, y})[0]))
	_, grads, err := mlxc.VJP(mapped, arrays{batch, y}, arrays{mlxc.OnesLike(batch)})
	require.NoError(t, err)
	require.Equal(t, []float32{100, 200, 200, 400}, mlxtest.Floats(t, grads[0]))
	require.Equal(t, []float32{7, 8}, mlxtest.Floats(t, grads[1]))
}

func TestRecipeOfAFailingFunction(t *testing.T) {
	id := recipe.ID(t.Name())
	failure := errors.New("no such thing")
	runs := 0
	call := func() arrays {
		return recipe.Use[*mlxc.Array]()(id, arrays{mlxc.Ones(mlxc.Float32, 2)}, 1,
			func(arrays) arrays {
				runs++
				return arrays{mlxc.InvalidArray(failure)}
			},
			func(_, _, _ arrays) arrays { return nil })
	}
	for range 2 {
		r := call()
		require.Len(t, r, 1)
		require.ErrorIs(t, r[0].Err(), failure)
	}
	require.Equal(t, 2, runs, "a failure is not recorded")
}

func TestRecipeOfAFailingRule(t *testing.T) {
	id := recipe.ID(t.Name())
	f := func(a arrays) arrays {
		return recipe.Use[*mlxc.Array]()(id, a, 2,
			func(a arrays) arrays { return arrays{a[0].Square()} },
			func(_, _, _ arrays) arrays { return arrays{mlxc.Ones(mlxc.Float32, 7)} })
	}
	x := mlxc.Ones(mlxc.Float32, 2)
	for range 2 {
		_, _, err := mlxc.VJP(f, arrays{x}, arrays{x})
		require.ErrorContains(t, err, "result 0 of the vjp must have the shape and dtype of argument 0")
	}
}

// A computed array that a recipe captures is shared, and the node that computed it is not added again.
func TestRecipeWithAComputedArray(t *testing.T) {
	id := recipe.ID(t.Name())
	base := mlxc.FromSlice([]float32{2, 3})
	var computed *mlxc.Array
	f := func(a arrays) arrays {
		return recipe.Use[*mlxc.Array]()(id, a, 2,
			func(a arrays) arrays { return arrays{a[0].Mul(base.Square())} },
			func(_, cotangents, _ arrays) arrays {
				computed = base.Square().Keep()
				require.NoError(t, mlxc.Eval(computed)) // inside a transform, it keeps its node
				return arrays{cotangents[0].Mul(computed)}
			})
	}
	x := mlxc.Ones(mlxc.Float32, 2)
	for range 2 {
		_, grads, err := mlxc.VJP(f, arrays{x}, arrays{x})
		require.NoError(t, err)
		var graph strings.Builder
		require.NoError(t, mlxc.PrintGraph(&graph, map[*mlxc.Array]string{computed: "computed"}, grads[0]))
		require.Contains(t, graph.String(), "computed")
		require.Equal(t, []float32{4, 9}, mlxtest.Floats(t, grads[0]))
	}
}

// A launch holds its constants, which are not inputs of its node. The tests of package ops compute such launches.
func TestRecipeBindsTheConstantsOfLaunches(t *testing.T) {
	id := recipe.ID(t.Name())
	notRun := new(int) // stands for a host function that never runs
	first, second := mlxc.FromSlice([]int32{1, 2, 3}), mlxc.Scalar[float32](5)
	launch := func(a arrays) arrays {
		return recipe.Use[*mlxc.Array]()(id, a, 2,
			func(a arrays) arrays {
				out, err := mlxc.HostFunction{
					Name: "my_kernel", Run: unsafe.Pointer(notRun),
					Outputs: []mlxc.Output{{Shape: []int{2}, DType: mlxc.Float32}},
				}.Apply(first, a[0], second)
				require.NoError(t, err)
				return out
			},
			func(_, cotangents, _ arrays) arrays { return cotangents })
	}
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() {
		x := mlxc.FromSlice([]float32{1, 2})
		var graph strings.Builder
		y := launch(arrays{x})[0]
		require.NoError(t, mlxc.PrintGraph(&graph, map[*mlxc.Array]string{x: "x", y: "y"}, y))
		require.Contains(t, graph.String(), "my_kernel x [(2), float32], C [(0), uint8] -> y")
		mapped := mlxc.Vmap(launch, nil, nil)(arrays{mlxc.Ones(mlxc.Float32, 3, 2)})
		require.ErrorContains(t, mapped[0].Err(), "[my_kernel] has no rule for Vmap")
	}))
}

// A function may be exported with a node that was made before.
func TestExportOfARecipesNode(t *testing.T) {
	id := recipe.ID(t.Name())
	x := mlxc.Arange(mlxc.Float32, 0, 6, 1).Reshape(2, 3)
	turned := recipe.Use[*mlxc.Array]()(id, arrays{x}, 1,
		func(a arrays) arrays { return arrays{a[0].Transpose(1, 0)} },
		func(_, cotangents, _ arrays) arrays { return arrays{cotangents[0].Transpose(1, 0)} })[0]
	file := filepath.Join(t.TempDir(), "f.mlxfn")
	y := mlxc.Ones(mlxc.Float32, 3, 2)
	require.NoError(t, mlxc.Export(file, func(a arrays) arrays { return arrays{a[0].Add(turned)} }, y))
	imported, err := mlxc.Import(file)
	require.NoError(t, err)
	defer imported.Close()
	out, err := imported.Call(y)
	require.NoError(t, err)
	require.Equal(t, []float32{1, 4, 2, 5, 3, 6}, mlxtest.Floats(t, out[0]))
}

// A call does not add the nodes of small arrays that depend on no argument.
func TestRecipeComputesSmallConstants(t *testing.T) {
	id := recipe.ID(t.Name())
	const wide = 1 << 10
	f := func(a arrays) arrays {
		return recipe.Use[*mlxc.Array]()(id, a, 2,
			func(a arrays) arrays {
				small := mlxc.Zeros(mlxc.Float32, 2).AddScalar(1).Exp()
				return arrays{a[0].Mul(small), mlxc.Ones(mlxc.Float32, wide).Neg()}
			},
			func(p, cotangents, _ arrays) arrays { return arrays{cotangents[0]} })
	}
	x := mlxc.FromSlice([]float32{1, 2})
	for range 2 {
		out := f(arrays{x})
		var graph strings.Builder
		require.NoError(t, mlxc.PrintGraph(&graph, nil, out...))
		require.NotContains(t, graph.String(), "Exp")
		require.Contains(t, graph.String(), "Negative", "4 KiB would stay allocated")
		require.InDeltaSlice(t, []float64{math.E, 2 * math.E}, mlxtest.Floats(t, out[0]), 1e-6)
	}
}

func TestRecipeOnSeveralStreams(t *testing.T) {
	c := newCountedRecipe(t)
	x := mlxc.Ones(mlxc.Float32, 2)
	s, err := mlxc.NewStream(mlxc.CPU)
	require.NoError(t, err)
	c.call(arrays{x, x})
	mlxc.WithStream(s, func() {
		for range 2 {
			require.Equal(t, []float32{1, 1}, mlxtest.Floats(t, c.call(arrays{x, x})[1]))
		}
	})
	require.Equal(t, 2, c.forward, "once for each stream")
}

// The nodes of a recipe are new at every call, so they release their arrays.
func TestRecipeReleasesMemory(t *testing.T) {
	c := newCountedRecipe(t)
	const size = 1 << 20
	run := func() {
		mlxc.WithScope(func() {
			x := mlxc.Ones(mlxc.Float32, size)
			_, grads, err := mlxc.ValueAndGrad(c.sum, 0, 1)(arrays{x, x})
			require.NoError(t, err)
			require.NoError(t, mlxc.Eval(grads...))
		})
	}
	run()
	runtime.GC()
	before := mlxc.ActiveMemory()
	for range 5 {
		run()
	}
	// A GPU frees the memory of completed work in another thread.
	require.Eventually(t, func() bool { return mlxc.ActiveMemory()-before < size }, 10*time.Second, 10*time.Millisecond)
}

func TestRecipeOnSeveralGoroutines(t *testing.T) {
	c := newCountedRecipe(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				x := mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(i)), 2)
				_, grads, err := mlxc.ValueAndGrad(c.sum, 0)(arrays{x, mlxc.OnesLike(x)})
				if err != nil || mlxtest.Floats(t, grads[0])[0] != 100*(1+2*float32(i)) {
					t.Error(i, err)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1, c.forward)
}

// A forwardPass is the shape of the forward graph of a hiddenRecipe.
type forwardPass int

const (
	oneNode  forwardPass = iota
	operand              // the hidden output is an operand of the visible one
	separate             // nothing of the visible output refers to the hidden one
)

// A hiddenRecipe has the output x·y and a hidden one, y·x², which its vjp reads: the gradient of x is 100 times the
// hidden output. If its forward pass is one node, the only argument has x and y as its elements.
func hiddenRecipe(t *testing.T, pass forwardPass) mlxc.Func {
	id := recipe.ID(fmt.Sprint(t.Name(), pass))
	return func(args arrays) arrays {
		return recipe.Use[*mlxc.Array]()(id, args, 1,
			func(a arrays) arrays {
				if pass == oneNode {
					return a[0].Split(2, 0)
				}
				product := a[0].Mul(a[1])
				hidden := product.Mul(a[0])
				if pass == operand {
					product = hidden.Div(a[0])
				}
				return arrays{product, hidden}
			},
			func(p, cotangents, outputs arrays) arrays {
				require.Len(t, cotangents, 1)
				require.Len(t, outputs, 2)
				d := outputs[1].Mul(cotangents[0]).MulScalar(100)
				if pass == oneNode {
					return arrays{mlxc.Concatenate(0, d, d)}
				}
				return arrays{d, mlxc.ZerosLike(p[1])}
			})
	}
}

func TestRecipeWithAHiddenOutput(t *testing.T) {
	for _, pass := range []forwardPass{oneNode, operand, separate} {
		f := hiddenRecipe(t, pass)
		args, want, wantValue := arrays{mlxc.FromSlice([]float32{2}), mlxc.FromSlice([]float32{3})}, []float32{1200}, float32(6)
		if pass == oneNode {
			args, want, wantValue = arrays{mlxc.FromSlice([]float32{2, 3})}, []float32{300, 300}, 2
		}
		one := mlxc.Ones(mlxc.Float32, 1)
		gradient := func(a arrays) arrays {
			values, grads, err := mlxc.VJP(f, a, arrays{one})
			require.NoError(t, err)
			require.Len(t, values, 1)
			return grads
		}
		for range 2 {
			require.Equal(t, []float32{wantValue}, mlxtest.Floats(t, f(args)[0]), "without a gradient")
			require.Equal(t, want, mlxtest.Floats(t, gradient(args)[0]))
		}
		compiled, err := mlxc.Compile(gradient).Call(args...)
		require.NoError(t, err)
		require.Equal(t, want, mlxtest.Floats(t, compiled[0]))
		_, grads, err := mlxc.VJP(mlxc.Checkpoint(f), args, arrays{one})
		require.NoError(t, err)
		require.Equal(t, want, mlxtest.Floats(t, grads[0]))

		batch := make(arrays, len(args))
		tangents := make(arrays, len(args))
		for i, a := range args {
			batch[i], tangents[i] = mlxc.Stack(0, a, a), mlxc.OnesLike(a)
		}
		mapped := mlxc.Vmap(gradient, nil, nil)(batch)
		require.Equal(t, slices.Concat(want, want), mlxtest.Floats(t, mapped[0]))
		values, grads, err := mlxc.VJP(mlxc.Vmap(f, nil, nil), batch, arrays{mlxc.Ones(mlxc.Float32, 2, 1)})
		require.NoError(t, err)
		require.Equal(t, []float32{wantValue, wantValue}, mlxtest.Floats(t, values[0]))
		require.Equal(t, slices.Concat(want, want), mlxtest.Floats(t, grads[0]))

		_, tangent, err := mlxc.JVP(f, args, tangents)
		require.NoError(t, err)
		require.Equal(t, []float32{[]float32{1, 5, 5}[pass]}, mlxtest.Floats(t, tangent[0]))

		// The nodes can be exported, also from inside a gradient.
		file := filepath.Join(t.TempDir(), "f.mlxfn")
		_, _, err = mlxc.VJP(func(a arrays) arrays {
			r := f(a)
			require.NoError(t, mlxc.Export(file, func(b arrays) arrays { return arrays{b[0].Add(r[0])} }, one))
			return r
		}, args, arrays{one})
		require.NoError(t, err)
		imported, err := mlxc.Import(file)
		require.NoError(t, err)
		out, err := imported.Call(one)
		require.NoError(t, err)
		imported.Close()
		require.Equal(t, []float32{1 + wantValue}, mlxtest.Floats(t, out[0]))
	}
}

// MLX makes no zeros for the cotangent of a hidden output, which are not part of the gradient's graph either. The result of
// the gradient does not pass through the node that carries its rule.
func TestRecipeHidesItsOutputFromMLX(t *testing.T) {
	for _, pass := range []forwardPass{oneNode, operand} {
		f := hiddenRecipe(t, pass)
		args := arrays{mlxc.FromSlice([]float32{2}), mlxc.FromSlice([]float32{3})}
		if pass == oneNode {
			args = arrays{mlxc.FromSlice([]float32{2, 3})}
		}
		values, _, err := mlxc.VJP(func(a arrays) arrays {
			r := f(a)
			var graph strings.Builder
			require.NoError(t, mlxc.PrintGraph(&graph, map[*mlxc.Array]string{r[0]: "r"}, r[0]))
			require.Contains(t, graph.String(), "Forward")
			require.Contains(t, graph.String(), "-> r [(1), float32]\n", "one output")
			require.NotContains(t, graph.String(), "CustomTransforms")
			return r
		}, args, arrays{mlxc.Ones(mlxc.Float32, 1)})
		require.NoError(t, err)
		var graph strings.Builder
		require.NoError(t, mlxc.PrintGraph(&graph, nil, values[0]))
		require.NotContains(t, graph.String(), "Forward")
	}
}

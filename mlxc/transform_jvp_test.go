package mlxc_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestJVP(t *testing.T) {
	x, w := mlxc.FromSlice([]float32{1, 2, 3}), mlxc.FromSlice([]float32{4, 5, 6})
	dx, dw := mlxc.FromSlice([]float32{1, 0, 10}), mlxc.FromSlice([]float32{0, 1, 1})
	out, jvps, err := mlxc.JVP(weighted, arrays{x, w}, arrays{dx, dw})
	require.NoError(t, err)
	require.Equal(t, []float32{78}, floats(t, out[0]))
	// 2·x·w·dx + x²·dw
	require.Equal(t, []float32{8 + 360 + 4 + 9}, floats(t, jvps[0]))

	// A constant output, an output that is an argument, and a repeated output.
	_, jvps, err = mlxc.JVP(func(a arrays) arrays {
		y := a[0].Square()
		return arrays{w.Square(), a[0], y, y, y.StopGradient()}
	}, arrays{x}, arrays{dx})
	require.NoError(t, err)
	for i, want := range [][]float32{{0, 0, 0}, {1, 0, 10}, {2, 0, 60}, {2, 0, 60}, {0, 0, 0}} {
		require.Equal(t, want, floats(t, jvps[i]), "output %d", i)
	}
}

// u·(J·v) = (Jᵀ·u)·v, and J·v is the change of the outputs for a small step along v.
func TestJVPAgreesWithVJPAndDifferences(t *testing.T) {
	testdevice.CPUOnly(t, "computes float64, or an operation that MLX has for CPUs only")
	positive := normal(1, 3, 4).Abs().AddScalar(0.5)
	x, y, square := normal(2, 3, 4), normal(3, 4, 3), normal(4, 4, 4)
	ids, pairs := mlxc.FromSlice([]int32{2, 0, 1, 1}), mlxc.FromSlice([]int32{2, 0, 1, 1, 0, 2}, 3, 2)
	one := single
	for _, c := range []struct {
		name string
		f    mlxc.Func
		args arrays
	}{
		{
			"arithmetic", func(a arrays) arrays { return arrays{a[0].Add(a[1]).Mul(a[0]).Sub(a[1].Div(a[0]))} },
			arrays{positive, x},
		},
		{"broadcast", func(a arrays) arrays { return arrays{a[0].Mul(a[1])} }, arrays{x, normal(5, 4)}},
		{"matmul", func(a arrays) arrays { return arrays{a[0].MatMul(a[1])} }, arrays{x, y}},
		{
			"several outputs", func(a arrays) arrays { return arrays{a[0].Exp(), a[0].Sum(0), a[1].Mul(a[0]).Sum()} },
			arrays{x, positive},
		},
		{"exp", one((*mlxc.Array).Exp), arrays{x}},
		{"log", one((*mlxc.Array).Log), arrays{positive}},
		{"tanh", one((*mlxc.Array).Tanh), arrays{x}},
		{"sqrt", one((*mlxc.Array).Sqrt), arrays{positive}},
		{"sigmoid", one((*mlxc.Array).Sigmoid), arrays{x}},
		{"softmax", one(func(a *mlxc.Array) *mlxc.Array { return a.Softmax(-1) }), arrays{x}},
		{"logsumexp", one(func(a *mlxc.Array) *mlxc.Array { return a.LogSumExp(1) }), arrays{x}},
		{"mean", one(func(a *mlxc.Array) *mlxc.Array { return a.Mean(0).Square() }), arrays{x}},
		{"max", one(func(a *mlxc.Array) *mlxc.Array { return a.Max(1) }), arrays{x}},
		{
			"reshape and transpose", one(func(a *mlxc.Array) *mlxc.Array { return a.Reshape(2, 6).Transpose().Square() }),
			arrays{x},
		},
		{"take", one(func(a *mlxc.Array) *mlxc.Array { return a.Take(ids, 0).Square() }), arrays{x}},
		{
			"concatenate", func(a arrays) arrays { return arrays{mlxc.Concatenate(0, a[0], a[1].Square(), a[0])} },
			arrays{x, positive},
		},
		{
			"where", func(a arrays) arrays { return arrays{mlxc.Where(x.Less(positive), a[0].Square(), a[1])} },
			arrays{x, positive},
		},
		{"slice", one(func(a *mlxc.Array) *mlxc.Array {
			return a.Slice([]int{1, 0}, []int{3, 4},
				[]int{1, 2}).Square()
		}), arrays{x}},
		{"slice update", func(a arrays) arrays {
			return arrays{a[0].SliceUpdate(a[1], []int{0, 0}, []int{1, 4}, nil).Square()}
		}, arrays{x, normal(5, 1, 4)}},
		{
			"take along axis", one(func(a *mlxc.Array) *mlxc.Array { return a.TakeAlongAxis(pairs, 1).Square() }),
			arrays{x},
		},
		{"scatter along axis", func(a arrays) arrays {
			return arrays{a[0].ScatterAddAlongAxis(pairs, a[1],
				1).Square()}
		}, arrays{x, normal(5, 3, 2)}},
		{"sort", one(func(a *mlxc.Array) *mlxc.Array { return a.Sort(1).Square() }), arrays{x}},
		{"cumsum", one(func(a *mlxc.Array) *mlxc.Array { return a.CumSum(1).Square() }), arrays{x}},
		{"prod", one(func(a *mlxc.Array) *mlxc.Array { return a.Prod(1) }), arrays{x}},
		{"erf", one((*mlxc.Array).Erf), arrays{x}},
		{"sin and cos", one(func(a *mlxc.Array) *mlxc.Array { return a.Sin().Mul(a.Cos()) }), arrays{x}},
		{"pow", func(a arrays) arrays { return arrays{a[0].Pow(a[1])} }, arrays{positive, x}},
		{
			"maximum", func(a arrays) arrays { return arrays{a[0].Maximum(a[1]).Mul(a[0].Minimum(a[1]))} },
			arrays{positive, x},
		},
		{"tril", one(func(a *mlxc.Array) *mlxc.Array { return a.Tril(0).Square() }), arrays{x}},
		{
			"repeat and tile", one(func(a *mlxc.Array) *mlxc.Array { return a.Repeat(2, 0).Tile(1, 2).Square() }),
			arrays{x},
		},
		{"split", func(a arrays) arrays { return a[0].Square().Split(2, 1) }, arrays{x}},
		{"float64", one(func(a *mlxc.Array) *mlxc.Array { return a.AsType(mlxc.Float64).Square().AsType(mlxc.Float32) }), arrays{x}},
		{
			"layer norm", func(a arrays) arrays { return arrays{mlxc.LayerNorm(a[0], a[1], a[2], 1e-5)} },
			arrays{x, normal(6, 4), normal(7, 4)},
		},
		{"attention", one(func(a *mlxc.Array) *mlxc.Array {
			return mlxc.ScaledDotProductAttention(a, a, a, mlxc.AttentionConfig{Scale: 1})
		}), arrays{normal(8, 1, 2, 3, 4)}},
		{
			"rms norm", func(a arrays) arrays { return arrays{mlxc.RMSNorm(a[0], a[1], 1e-5)} },
			arrays{square, normal(6, 4)},
		},
		{"custom vjp", mlxc.CustomVJP(one((*mlxc.Array).Tanh), func(p, c, o arrays) arrays {
			return arrays{c[0].Sub(c[0].Mul(o[0]).Mul(o[0]))}
		}), arrays{x}},
		{"checkpoint", mlxc.Checkpoint(one((*mlxc.Array).Tanh)), arrays{x}},
		{"vmap", mlxc.Vmap(one(func(a *mlxc.Array) *mlxc.Array { return a.Softmax(0) }), nil, nil), arrays{x}},
		{"vmap of a custom vjp", mlxc.Vmap(mlxc.CustomVJP(one((*mlxc.Array).Square), func(p, c, _ arrays) arrays {
			return arrays{p[0].MulScalar(2).Mul(c[0])}
		}), nil, nil), arrays{x}},
		{"vmap of a checkpoint", mlxc.Vmap(mlxc.Checkpoint(one((*mlxc.Array).Square)), []int{1}, nil), arrays{x}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tangents := make(arrays, len(c.args))
			for i, a := range c.args {
				tangents[i] = normal(uint64(20+i), a.Shape()...)
			}
			out, jvps, err := mlxc.JVP(c.f, c.args, tangents)
			require.NoError(t, err)
			cotangents := make(arrays, len(out))
			for i, o := range out {
				require.Equal(t, o.Shape(), jvps[i].Shape())
				require.Equal(t, o.DType(), jvps[i].DType())
				cotangents[i] = normal(uint64(30+i), o.Shape()...)
			}
			_, vjps, err := mlxc.VJP(c.f, c.args, cotangents)
			require.NoError(t, err)
			require.InDelta(t, dot(t, cotangents, jvps), dot(t, vjps, tangents), 2e-4)

			const step = 1.0 / 128
			moved := func(h float64) arrays {
				args := make(arrays, len(c.args))
				for i, a := range c.args {
					args[i] = a.Add(tangents[i].MulScalar(h))
				}
				return c.f(args)
			}
			difference := dot(t, cotangents, moved(step)) - dot(t, cotangents, moved(-step))
			got := dot(t, cotangents, jvps)
			require.InDelta(t, got, difference/(2*step), 0.02*(1+math.Abs(got)))
		})
	}
}

// dot is the sum over the arrays of the products of their elements.
func dot(t *testing.T, a, b arrays) float64 {
	t.Helper()
	sum := 0.0
	for i := range a {
		v := read[float64](t, a[i].AsType(mlxc.Float64).Mul(b[i].AsType(mlxc.Float64)).Sum())
		sum += v[0]
	}
	return sum
}

// f(x) = Σ x³ has the Hessian 6·diag(x). It is computed forward over reverse, reverse over forward, and forward over
// forward.
func TestNestedJVP(t *testing.T) {
	cubes := single(func(a *mlxc.Array) *mlxc.Array { return a.Square().Mul(a).Sum() })
	x, v := mlxc.FromSlice([]float32{1, 2, 3}), mlxc.FromSlice([]float32{1, -1, 2})
	gradient := func(a arrays) arrays {
		g, err := mlxc.Grad(cubes)(a)
		if err != nil {
			return arrays{mlxc.InvalidArray(err)}
		}
		return g
	}
	_, product, err := mlxc.JVP(gradient, arrays{x}, arrays{v})
	require.NoError(t, err)
	require.Equal(t, []float32{6, -12, 36}, floats(t, product[0]))

	along := func(a arrays) arrays {
		_, j, err := mlxc.JVP(cubes, a, arrays{v})
		if err != nil {
			return arrays{mlxc.InvalidArray(err)}
		}
		return j
	}
	grads, err := mlxc.Grad(along)(arrays{x})
	require.NoError(t, err)
	require.Equal(t, []float32{6, -12, 36}, floats(t, grads[0]))
	_, twice, err := mlxc.JVP(along, arrays{x}, arrays{v})
	require.NoError(t, err)
	require.Equal(t, []float32{6 + 12 + 72}, floats(t, twice[0]))

	// The nested derivatives under Vmap and Compile.
	whole := mlxc.Vmap(func(a arrays) arrays {
		_, p, err := mlxc.JVP(gradient, a[:1], a[1:])
		if err != nil {
			return arrays{mlxc.InvalidArray(err)}
		}
		return p
	}, []int{mlxc.Unmapped, 0}, nil)
	hessian, err := mlxc.Compile(whole).Call(x, mlxc.FromSlice([]float32{1, 0, 0, 0, 1, 0, 0, 0, 1}, 3, 3))
	require.NoError(t, err)
	require.Equal(t, []float32{6, 0, 0, 0, 12, 0, 0, 0, 18}, floats(t, hessian[0]))
}

func TestWrongJVP(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2, 3})
	same := func(a arrays) arrays { return a }
	freed := mlxc.Ones(mlxc.Float32, 3)
	freed.Free()
	boom := errors.New("boom")
	for want, call := range map[string]func() (arrays, arrays, error){
		"the function is nil": func() (arrays, arrays, error) { return mlxc.JVP(nil, arrays{x}, arrays{x}) },
		"there are 1 primals, but 2 tangents": func() (arrays, arrays, error) {
			return mlxc.JVP(same, arrays{x},
				arrays{x, x})
		},
		"float32(3), float32(1): tangent 0 is float32(1), its primal float32(3)": func() (arrays, arrays,
			error,
		) {
			return mlxc.JVP(same, arrays{x}, arrays{mlxc.Ones(mlxc.Float32, 1)})
		},
		"float32(3), int32(3): tangent 0 is int32(3), its primal float32(3)": func() (arrays, arrays,
			error,
		) {
			return mlxc.JVP(same, arrays{x}, arrays{x.AsType(mlxc.Int32)})
		},
		"the array was freed": func() (arrays, arrays, error) { return mlxc.JVP(same, arrays{freed}, arrays{x}) },
		"the array is nil":    func() (arrays, arrays, error) { return mlxc.JVP(same, arrays{x}, arrays{nil}) },
		"boom": func() (arrays, arrays, error) {
			return mlxc.JVP(func(arrays) arrays { panic(boom) }, arrays{x}, arrays{x})
		},
		"cannot be broadcast": func() (arrays, arrays, error) {
			return mlxc.JVP(func(a arrays) arrays { return arrays{a[0].Add(mlxc.Ones(mlxc.Float32, 2))} }, arrays{x},
				arrays{x})
		},
		"Not implemented for Depends": func() (arrays, arrays, error) {
			return mlxc.JVP(func(a arrays) arrays { return arrays{a[0].After(a[0])} }, arrays{x}, arrays{x})
		},
		"[scatter] JVP not yet implemented": func() (arrays, arrays, error) {
			return mlxc.JVP(func(a arrays) arrays {
				return arrays{mlxc.Zeros(mlxc.Float32, 4).ScatterAdd(mlxc.FromSlice([]int32{0, 1, 2}), a[0], 0)}
			}, arrays{x}, arrays{x})
		},
		"output 0 is float32(3), but its cotangent is int32(3)": func() (arrays, arrays, error) {
			return mlxc.VJP(same, arrays{x}, arrays{x.AsType(mlxc.Int32)})
		},
		"output 0 is float32(3), but its cotangent is float32(1)": func() (arrays, arrays, error) {
			return mlxc.VJP(same, arrays{x}, arrays{mlxc.Ones(mlxc.Float32, 1)})
		},
	} {
		out, jvps, err := call()
		require.ErrorContains(t, err, want)
		require.Nil(t, out)
		require.Nil(t, jvps)
		usable(t)
	}
	// An empty list of primals is not an error.
	out, jvps, err := mlxc.JVP(func(arrays) arrays { return nil }, arrays{x}, arrays{x})
	require.NoError(t, err)
	require.Empty(t, out)
	require.Empty(t, jvps)
	out, jvps, err = mlxc.JVP(func(arrays) arrays { return arrays{x} }, nil, nil)
	require.NoError(t, err)
	require.Equal(t, floats(t, x), floats(t, out[0]))
	require.Equal(t, []float32{0, 0, 0}, floats(t, jvps[0]))
}

func TestGrad(t *testing.T) {
	x, w := mlxc.FromSlice([]float32{1, 2, 3}), mlxc.FromSlice([]float32{4, 5, 6})
	grads, err := mlxc.Grad(weighted, 1, 0)(arrays{x, w})
	require.NoError(t, err)
	require.Equal(t, []float32{1, 4, 9}, floats(t, grads[0]))
	require.Equal(t, []float32{8, 20, 36}, floats(t, grads[1]))
	_, err = mlxc.Grad(weighted, 2)(arrays{x, w})
	require.ErrorContains(t, err, "argnums are [2]")
}

func ExampleJVP() {
	f := func(args []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{args[0].Square()} }
	x, direction := mlxc.FromSlice([]float32{1, 2, 3}), mlxc.FromSlice([]float32{1, 0, 1})
	outputs, tangents, err := mlxc.JVP(f, []*mlxc.Array{x}, []*mlxc.Array{direction})
	fmt.Println(outputs[0], tangents[0], err)
	// Output: array([1, 4, 9], dtype=float32) array([2, 0, 6], dtype=float32) <nil>
}

func ExampleGrad() {
	norm := func(args []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{args[0].Square().Sum()} }
	grads, err := mlxc.Grad(norm)([]*mlxc.Array{mlxc.FromSlice([]float32{1, 2})})
	fmt.Println(grads[0], err)
	// Output: array([2, 4], dtype=float32) <nil>
}

// The products of boolean outputs are 0 in the output's shape.
func TestJVPOfBooleans(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2})
	for name, f := range map[string]func(a *mlxc.Array) *mlxc.Array{
		"less":     func(a *mlxc.Array) *mlxc.Array { return a.LessScalar(1.5) },
		"infinite": (*mlxc.Array).IsPosInf,
		"close":    func(a *mlxc.Array) *mlxc.Array { return a.AllClose(x, mlxc.Tolerance{}) },
	} {
		out, tangents, err := mlxc.JVP(single(f), arrays{x}, arrays{mlxc.OnesLike(x)})
		require.NoError(t, err, name)
		require.Equal(t, out[0].Shape(), tangents[0].Shape(), name)
		for _, v := range wide(t, tangents[0]) {
			require.Zero(t, v, name)
		}
	}
}

package mlxc_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// single returns a Func of one argument and one result.
func single(f func(a *mlxc.Array) *mlxc.Array) mlxc.Func {
	return func(args arrays) arrays { return arrays{f(args[0])} }
}

// at returns element i along an axis, without the axis.
func at(a *mlxc.Array, i, axis int) *mlxc.Array {
	return a.Take(mlxc.Scalar(int32(i)), axis)
}

var normal = mlxtest.Normal

// requireMapped compares Vmap with the function called once per element.
func requireMapped(t *testing.T, f mlxc.Func, args arrays, in []int, out int) {
	t.Helper()
	n := 0
	for i, a := range args {
		if in[i] != mlxc.Unmapped {
			n = a.Dim(in[i])
		}
	}
	var each arrays
	for k := range n {
		one := make(arrays, len(args))
		for i, a := range args {
			one[i] = a
			if in[i] != mlxc.Unmapped {
				one[i] = at(a, k, in[i])
			}
		}
		each = append(each, f(one)[0])
	}
	want := mlxc.Stack(out, each...)
	require.NoError(t, mlxc.Eval(want))
	got := mlxc.Vmap(f, in, []int{out})(args)[0]
	require.NoError(t, mlxc.Eval(got))
	require.Equal(t, want.DType(), got.DType())
	requireClose(t, want, got)
}

// requireClose compares all elements, as float64.
func requireClose(t *testing.T, want, got *mlxc.Array) {
	t.Helper()
	require.Equal(t, want.Shape(), got.Shape())
	require.InDeltaSlice(t, wide(t, want), wide(t, got), 1e-5)
}

func TestVmapAxes(t *testing.T) {
	x, w := counting(2, 3, 4), counting(3)
	// Scaled sums along the last axis of a matrix; and w, which is not mapped.
	f := func(a arrays) arrays { return arrays{a[0].Sum(-1).Mul(a[1]), a[1].Square()} }
	for _, c := range []struct {
		in, out []int
		shapes  [][]int
	}{
		{[]int{0, mlxc.Unmapped}, nil, [][]int{{2, 3}, {2, 3}}},
		{[]int{-3, mlxc.Unmapped}, []int{1, mlxc.Unmapped}, [][]int{{3, 2}, {3}}},
		{[]int{0, mlxc.Unmapped}, []int{-1, -1}, [][]int{{3, 2}, {3, 2}}},
	} {
		out := mlxc.Vmap(f, c.in, c.out)(arrays{x, w})
		require.Len(t, out, 2)
		for i, o := range out {
			require.Equal(t, c.shapes[i], o.Shape(), "%v", c)
		}
		sums, squares := floats(t, out[0]), floats(t, out[1])
		for i := range 2 {
			for j := range 3 {
				// Row (i,j) of x holds 12i+4j … 12i+4j+3.
				at := i*3 + j
				if c.shapes[0][0] == 3 {
					at = j*2 + i
				}
				require.Equal(t, float32(4*(12*i+4*j)+6)*float32(j), sums[at])
				if len(c.shapes[1]) == 1 {
					at = j
				}
				require.Equal(t, float32(j*j), squares[at])
			}
		}
	}
	// Both mapped, along different axes; and the argument itself as an output, twice.
	g := func(a arrays) arrays { return arrays{a[0].MatMul(a[1]), a[0], a[0]} }
	out := mlxc.Vmap(g, []int{2, 0}, []int{0, 0, 2})(arrays{x, counting(4, 3)})
	require.Equal(t, [][]int{{4, 2}, {4, 2, 3}, {2, 3, 4}}, [][]int{out[0].Shape(), out[1].Shape(), out[2].Shape()})
	require.Equal(t, floats(t, x), floats(t, out[2]))
	require.Equal(t, floats(t, x.Transpose(2, 0, 1)), floats(t, out[1]))
	dots := floats(t, out[0])
	for k := range 4 {
		for i := range 2 {
			want := float32(0)
			for j := range 3 {
				want += float32((12*i + 4*j + k) * (3*k + j))
			}
			require.Equal(t, want, dots[k*2+i])
		}
	}
}

func TestWrongVmap(t *testing.T) {
	x, y := counting(2, 3), counting(3, 2)
	same := func(a arrays) arrays { return a }
	run := func(f mlxc.Func, in, out []int, args ...*mlxc.Array) arrays { return mlxc.Vmap(f, in, out)(args) }
	for want, out := range map[string]arrays{
		"the function is nil":                     run(nil, nil, nil, x),
		"no argument is mapped":                   run(same, []int{mlxc.Unmapped}, []int{mlxc.Unmapped}, x),
		"Vmap: no argument is mapped":             run(same, nil, nil),
		"there are 2 arguments, but 1 input axes": run(same, []int{0}, nil, x, y),
		"the mapped axis of argument 0 has size 2, but the mapped axis of argument 1 has size 3": run(same, nil, nil, x,
			y),
		"argument 1: there is no axis 2: the array has 2":         run(same, []int{0, 2}, nil, x, x),
		"argument 0: there is no axis 0: the array has 0":         run(same, nil, nil, mlxc.Scalar[float32](1)),
		"the mapped axis of argument 0 has size 0":                run(same, nil, nil, counting(0, 3)),
		"the function has 1 outputs, but there are 2 output axes": run(same, nil, []int{0, 0}, x),
		"there is no axis 2: output 0 has 2":                      run(same, nil, []int{2}, x),
		"there is no axis -3: output 0 has 2":                     run(same, nil, []int{-3}, x),
		"32 bits":                                                 run(same, nil, []int{1 << 40}, x),
		"output 0 depends on a mapped argument":                   run(same, nil, []int{mlxc.Unmapped}, x),
		"no arrays":                                               run(func(arrays) arrays { return nil }, nil, nil, x),
		"the array is nil":                                        run(same, nil, nil, x, nil),
		"mlxc: add float32(2,3), float32(3,2)":                    run(same, nil, nil, x, x.Add(y)),
		"mlxc: Vmap float32(2,3): add float32(3), float32(5)":     run(func(a arrays) arrays { return arrays{a[0].Add(counting(5))} }, nil, nil, x),
	} {
		require.NotEmpty(t, out)
		for _, o := range out {
			require.ErrorContains(t, o.Err(), want)
		}
		usable(t)
	}
	require.Len(t, run(same, nil, []int{0, 0}, x), 2)
}

// Placeholders have no value: reading one is an error, and the transform continues.
func TestReadingInsideVmap(t *testing.T) {
	out := mlxc.Vmap(func(a arrays) arrays {
		_, err := mlxc.ToSlice[float32](a[0].Square())
		require.ErrorContains(t, err, "not allowed")
		require.Error(t, mlxc.Eval(a[0]))
		require.Contains(t, a[0].String(), "without a value")
		require.Equal(t, []float32{0, 1, 4}, floats(t, counting(3).Square()))
		return arrays{a[0].Square()}
	}, nil, nil)(arrays{counting(2, 2)})
	require.Equal(t, []float32{0, 1, 4, 9}, floats(t, out[0]))
	usable(t)
}

// hundred is x² with the recognizable gradient 100·x·cotangent.
func hundred() mlxc.Func {
	return mlxc.CustomVJP(
		func(a arrays) arrays { return arrays{a[0].Square()} },
		func(p, c, _ arrays) arrays { return arrays{p[0].MulScalar(100).Mul(c[0])} })
}

func TestVmapKeepsCustomGradients(t *testing.T) {
	x, ones := counting(2, 3), mlxc.Ones(mlxc.Float32, 2, 3)
	want := []float32{0, 100, 200, 300, 400, 500}
	f := hundred()
	gradient := func(t *testing.T, f mlxc.Func, args, cotangents arrays) arrays {
		t.Helper()
		_, grads, err := mlxc.VJP(f, args, cotangents)
		require.NoError(t, err)
		return grads
	}
	mapped := mlxc.Vmap(f, []int{1}, []int{1})
	require.Equal(t, []float32{0, 1, 4, 9, 16, 25}, floats(t, mapped(arrays{x})[0]))
	require.Equal(t, want, floats(t, gradient(t, mapped, arrays{x}, arrays{ones})[0]))
	require.Equal(t, want, floats(t, gradient(t, mlxc.Vmap(mlxc.Vmap(f, nil, nil), []int{1}, []int{1}), arrays{x},
		arrays{ones})[0]))
	inside := mlxc.Vmap(func(a arrays) arrays { return gradient(t, f, a, arrays{mlxc.Ones(mlxc.Float32, 3)}) }, nil,
		nil)
	require.Equal(t, want, floats(t, inside(arrays{x})[0]))
	compiled, err := mlxc.Compile(func(a arrays) arrays { return gradient(t, mapped, a, arrays{ones}) }).Call(x)
	require.NoError(t, err)
	require.Equal(t, want, floats(t, compiled[0]))

	// x·w with recognizable gradients; w is shared, so its gradients add up.
	product := mlxc.CustomVJP(
		func(a arrays) arrays { return arrays{a[0].Mul(a[1]).Sum()} },
		func(p, c, _ arrays) arrays {
			return arrays{p[1].Mul(c[0]).MulScalar(10), p[0].Mul(c[0]).MulScalar(100)}
		})
	w := mlxc.FromSlice([]float32{1, 2, 3})
	grads := gradient(t, mlxc.Vmap(product, []int{0, mlxc.Unmapped}, nil), arrays{x, w},
		arrays{mlxc.FromSlice([]float32{1, 2})})
	require.Equal(t, []float32{10, 20, 30, 20, 40, 60}, floats(t, grads[0]))
	require.Equal(t, []float32{600, 900, 1200}, floats(t, grads[1]))
}

func TestVmapOfCheckpoint(t *testing.T) {
	runs := 0
	f := mlxc.Checkpoint(func(a arrays) arrays {
		runs++
		return arrays{a[0].StopGradient(), a[0].Square().Mul(a[1])}
	})
	x, w := counting(2, 3), mlxc.FromSlice([]float32{1, 2, 3})
	ones := arrays{mlxc.Ones(mlxc.Float32, 2, 3), mlxc.Ones(mlxc.Float32, 2, 3)}
	_, grads, err := mlxc.VJP(mlxc.Vmap(f, []int{0, mlxc.Unmapped}, nil), arrays{x, w}, ones)
	require.NoError(t, err)
	require.Equal(t, []float32{0, 4, 12, 6, 16, 30}, floats(t, grads[0]))
	require.Equal(t, []float32{9, 17, 29}, floats(t, grads[1]))
	require.Equal(t, 2, runs)

	inside := mlxc.Vmap(func(a arrays) arrays {
		_, grads, err := mlxc.VJP(f, a, arrays{counting(3), mlxc.Ones(mlxc.Float32, 3)})
		require.NoError(t, err)
		return grads
	}, []int{0, mlxc.Unmapped}, nil)(arrays{x, w})
	require.Equal(t, []float32{0, 4, 12, 6, 16, 30}, floats(t, inside[0]))
	require.Equal(t, []float32{0, 1, 4, 9, 16, 25}, floats(t, inside[1]))
}

// An inner function captures a placeholder instead of taking it as an argument.
func TestVmapWithCapturedPlaceholders(t *testing.T) {
	x, shared := counting(2, 3), counting(3)
	capturing := func(inner func(mlxc.Func) mlxc.Func) mlxc.Func {
		return mlxc.Vmap(func(a arrays) arrays {
			return inner(func(b arrays) arrays { return arrays{b[0].Add(a[0])} })(arrays{shared})
		}, nil, nil)
	}
	for name, inner := range map[string]func(mlxc.Func) mlxc.Func{
		"CustomVJP":  func(f mlxc.Func) mlxc.Func { return mlxc.CustomVJP(f, func(_, c, _ arrays) arrays { return c }) },
		"Checkpoint": mlxc.Checkpoint,
	} {
		require.Equal(t, []float32{0, 2, 4, 3, 5, 7}, floats(t, capturing(inner)(arrays{x})[0]), name)
	}
	_, _, err := mlxc.VJP(func(a arrays) arrays {
		return mlxc.Vmap(func(b arrays) arrays {
			return mlxc.Checkpoint(func(c arrays) arrays { return arrays{c[0].Add(b[0])} })(arrays{a[0]})
		}, nil, nil)(arrays{x})
	}, arrays{shared}, arrays{x})
	require.ErrorContains(t, err, "captures mapped arrays")
	usable(t)
}

func TestVmapOfKernels(t *testing.T) {
	x := counting(2, 3)
	output := []mlxc.Output{{Shape: []int{3}, DType: mlxc.Float32}}
	notRun := new(int) // stands for a host function that never runs
	host := func(a arrays) arrays {
		out, err := mlxc.HostFunction{
			Name: "my_kernel", Run: unsafe.Pointer(notRun),
			Outputs: output,
		}.Apply(a[0])
		require.NoError(t, err)
		return out
	}
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() {
		require.ErrorContains(t, mlxc.Vmap(host, nil, nil)(arrays{x})[0].Err(), "[my_kernel] has no rule for Vmap")
		// The kernel is allowed if it does not depend on mapped arguments.
		require.NoError(t, mlxc.Vmap(func(a arrays) arrays {
			return arrays{a[0].Add(host(arrays{counting(3)})[0])}
		}, nil, nil)(arrays{x})[0].Err())
	}))

	kernel, err := mlxc.NewMetalKernel(mlxc.MetalKernelSource{
		Name: "my_metal", Inputs: []string{"x"}, Outputs: []string{"y"},
		Body: "y[thread_position_in_grid.x] = x[thread_position_in_grid.x];",
	})
	require.NoError(t, err)
	_, err = mlxc.Trace(func(a arrays) (out arrays) {
		mlxc.WithPlaceholderGPU(func() {
			out = mlxc.Vmap(func(b arrays) arrays {
				y, err := kernel.Apply(mlxc.KernelLaunch{
					Outputs: output, Grid: [3]int{3, 1, 1},
					Threadgroup: [3]int{1, 1, 1},
				}, b[0])
				require.NoError(t, err)
				return y
			}, nil, nil)(a)
		})
		return out
	}, arrays{x})
	require.ErrorContains(t, err, "my_metal")
	require.ErrorContains(t, err, "has no rule for Vmap")
	usable(t)
}

func TestVmapWithCompile(t *testing.T) {
	x := counting(2, 3)
	c := mlxc.Compile(func(a arrays) arrays { return arrays{a[0].Square().Sum()} })
	inner := mlxc.Vmap(func(a arrays) arrays {
		out, err := c.Call(a...)
		require.NoError(t, err)
		return out
	}, nil, nil)
	require.Equal(t, []float32{5, 50}, floats(t, inner(arrays{x})[0]))
	outer := mlxc.Compile(inner)
	for range 2 {
		out, err := outer.Call(x)
		require.NoError(t, err)
		require.Equal(t, []float32{5, 50}, floats(t, out[0]))
	}
}

// The same key gives the same numbers, mapped or not.
func TestVmapOfRandomKeys(t *testing.T) {
	keys := mlxc.Stack(0, mlxc.RandomKey(1), mlxc.RandomKey(2))
	requireMapped(t, single(func(key *mlxc.Array) *mlxc.Array { return mlxc.RandomNormal(key, mlxc.Float32, 2, 3) }),
		arrays{keys}, []int{0}, 0)
}

func TestVmapOfALongGraph(t *testing.T) {
	x := mlxc.Ones(mlxc.Float32, 2, 1)
	out := mlxc.Vmap(func(a arrays) arrays {
		y := a[0]
		for range 20_000 {
			y = y.Neg()
		}
		return arrays{y}
	}, nil, nil)(arrays{x})
	require.Equal(t, []float32{1, 1}, floats(t, out[0]))
}

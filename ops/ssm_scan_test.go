package ops

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// given returns the arrays that are not nil, without starts, and a function that replaces them.
func (in ssmInputs) given() (list arrays, with func(arrays) ssmInputs) {
	var at []int
	for i, v := range in.list()[:7] {
		if v != nil {
			list, at = append(list, v), append(at, i)
		}
	}
	return list, func(a arrays) ssmInputs {
		all := in.list()
		for i, v := range a {
			all[at[i]] = v
		}
		return ssmInputsFrom(all)
	}
}

func (in ssmInputs) scan() []*mlxc.Array {
	y, state := SSMScan(in.x, in.dt, in.a, in.b, in.c, SSMScanConfig{D: in.d, InitialState: in.state, Starts: in.starts})
	return []*mlxc.Array{y, state}
}

// reference is scan composed of MLX's operations.
func (in ssmInputs) reference() []*mlxc.Array {
	in.dt, in.a, in.d, in.state = inFloat32(in.dt), inFloat32(in.a), inFloat32(in.d), inFloat32(in.state)
	return in.composed()
}

// cotangents returns random cotangents of y and the state.
func (in ssmInputs) cotangents() arrays {
	return arrays{
		normal(11, in.x.DType(), in.x.Shape()...), normal(12, mlxc.Float32, in.stateShape(in.sequences())...),
	}
}

// The kernels in the geometry of every backend compute the composition's values and gradients.
func TestSSMScanOfEveryGeometry(t *testing.T) {
	for n, c := range ssmShapes(RaggedCases) {
		in := c.inputs(mlxc.Float32)
		args, with := in.given()
		values, grads, err := mlxc.VJP(func(a arrays) arrays { return with(a).composed() }, args, in.cotangents())
		require.NoError(t, err)
		for i, b := range backends {
			if !inSample(n+i, mlxc.Float32) && b != mlxc.BackendCPU {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", c.name, b), func(t *testing.T) {
				on := target{backend: b}
				outputs := ssmForward(on, in)
				closeTo(t, values[0], outputs[0])
				closeTo(t, values[1], outputs[1])
				dy := in.cotangents()
				next := 0
				for i, g := range ssmBackward(on, in, outputs, dy[0], dy[1])[:7] {
					if in.list()[i] != nil {
						requireClose(t, fmt.Sprint("gradient ", i), grads[next], g, 1e-5)
						next++
					}
				}
			})
		}
	}
}

// requireClose fails if an element of got differs from want by more than tolerance times the largest element.
func requireClose(t *testing.T, name string, want, got *mlxc.Array, tolerance float64) {
	t.Helper()
	require.Equal(t, want.Shape(), got.Shape(), name)
	w, g := mlxtest.Floats(t, want), mlxtest.Floats(t, got)
	largest := float32(1e-30)
	for _, v := range w {
		largest = max(largest, v, -v)
	}
	for i := range w {
		require.InDelta(t, w[i], g[i], tolerance*float64(largest), "%s, element %d", name, i)
	}
}

// The value and the gradients equal the composition's under every transform.
func TestSSMScanUnderTransforms(t *testing.T) {
	for _, dtype := range gradientDTypes {
		for n, c := range []ssmLaunch{
			{name: "plain", shape: [6]int{2, 7, 2, 1, 8, 16}},
			{name: "D, state", shape: [6]int{2, 7, 4, 2, 16, 8}, d: true, state: true},
			{name: "sequences", shape: [6]int{1, 7, 2, 1, 8, 8}, state: true, starts: []int32{0, 2, 2, 7}},
		} {
			if !inSample(n, dtype) {
				continue
			}
			in := c.inputs(dtype)
			args, with := in.given()
			ours := func(a arrays) arrays { return with(a).scan() }
			theirs := func(a arrays) arrays { return with(a).reference() }
			for i, output := range []string{"y", "state"} {
				t.Run(fmt.Sprintf("%v/%s/%s", dtype, c.name, output), func(t *testing.T) {
					testUnderTransforms(t, only(i, ours), only(i, theirs), args, in.cotangents()[i])
				})
			}
		}
	}
}

// Steps one by one compute the values of the whole, and have its gradient.
func TestSSMStep(t *testing.T) {
	in := ssmLaunch{shape: [6]int{2, 4, 4, 2, 8, 16}, d: true, state: true}.inputs(mlxc.Float32)
	args, with := in.given()
	steps := func(a arrays) arrays {
		in := with(a)
		state, ys := in.state, arrays{}
		at := func(v *mlxc.Array, i int) *mlxc.Array { return v.Unstack(1)[i] }
		for i := range in.x.Dim(1) {
			var y *mlxc.Array
			y, state = SSMStep(at(in.x, i), at(in.dt, i), in.a, at(in.b, i), at(in.c, i), in.d, state)
			ys = append(ys, y)
		}
		return arrays{mlxc.Stack(1, ys...), state}
	}
	values, grads, err := mlxc.VJP(steps, args, in.cotangents())
	require.NoError(t, err)
	scanned, ofScan, err := mlxc.VJP(func(a arrays) arrays { return with(a).scan() }, args, in.cotangents())
	require.NoError(t, err)
	for i, want := range append(scanned, ofScan...) {
		requireClose(t, fmt.Sprint("result ", i), want, append(values, grads...)[i], 1e-5)
	}
}

var _ = testdevice.AlsoOnGPU(TestSSMStep)

// Decays of 0 forget the state and pass no gradient, also if dt·a is −∞.
func TestSSMScanForgets(t *testing.T) {
	in := ssmLaunch{shape: [6]int{1, 70, 1, 1, 8, 8}, state: true}.inputs(mlxc.Float32)
	in.a = mlxc.FromSlice([]float32{float32(math.Inf(-1))}, 1)
	args, with := in.given()
	values, grads, err := mlxc.VJP(func(a arrays) arrays { return with(a).scan() }, args, in.cotangents())
	require.NoError(t, err)
	for _, x := range append(values, grads...) {
		for _, v := range mlxtest.Floats(t, x) {
			require.False(t, math.IsNaN(float64(v)) || math.IsInf(float64(v), 0))
		}
	}
	for _, i := range []int{2, 5} { // a and the initial state
		for _, v := range mlxtest.Floats(t, grads[i]) {
			require.Zero(t, v)
		}
	}
	// Each step writes into an empty state.
	product := in.b.Mul(in.c).Sum(-1).Mul(in.dt).ExpandDims(-1)
	requireClose(t, "y", product.Mul(in.x), values[0], 1e-6)
}

// One strong decay among weak ones loses no accuracy: neither of the steps after it, nor of the gradient of a.
func TestSSMScanAfterStrongDecay(t *testing.T) {
	in := ssmLaunch{shape: [6]int{1, 64, 1, 1, 8, 8}}.inputs(mlxc.Float32)
	dt := make([]float32, 64)
	for i := range dt {
		dt[i] = 0.01
	}
	dt[3], dt[30] = 3000, 1000
	in.dt, in.a = mlxc.FromSlice(dt, 1, 64, 1), mlxc.FromSlice([]float32{-0.03}, 1)
	args, with := in.given()
	values, grads, err := mlxc.VJP(func(a arrays) arrays { return with(a).scan() }, args, in.cotangents())
	require.NoError(t, err)
	want, ofWant, err := mlxc.VJP(func(a arrays) arrays { return with(a).composed() }, args, in.cotangents())
	require.NoError(t, err)
	for i, got := range append(values, grads...) {
		requireClose(t, fmt.Sprint("result ", i), append(want, ofWant...)[i], got, 2e-6)
	}
}

// Sequences without steps keep their states, and so does a whole without steps.
func TestSSMScanWithoutSteps(t *testing.T) {
	in := ssmLaunch{shape: [6]int{2, 0, 2, 1, 8, 8}, state: true}.inputs(mlxc.Float16)
	results := in.scan()
	require.NoError(t, mlxc.Eval(results...))
	require.Equal(t, []int{2, 0, 2, 8}, results[0].Shape())
	require.Equal(t, mlxc.Float16, results[0].DType())
	require.Equal(t, mlxtest.Floats(t, in.state), mlxtest.Floats(t, results[1]))

	in = ssmLaunch{shape: [6]int{1, 3, 2, 1, 8, 8}, state: true, starts: []int32{0, 0, 3}}.inputs(mlxc.Float32)
	require.Equal(t, mlxtest.Floats(t, in.state)[:128], mlxtest.Floats(t, in.scan()[1])[:128])
}

// Repeated gradients have the same bits.
func TestSSMScanGradientsHaveTheSameBits(t *testing.T) {
	in := ssmLaunch{shape: [6]int{1, 200, 8, 1, 16, 16}, d: true, state: true}.inputs(mlxc.Float32)
	args, with := in.given()
	require.NoError(t, mlxc.Eval(args...))
	requireSameBits(t, 4, func(a arrays) arrays { return with(a).scan() }, args, in.cotangents())
}

var _ = testdevice.AlsoOnGPU(TestSSMScanGradientsHaveTheSameBits)

func TestSSMScanArgumentErrors(t *testing.T) {
	zeros := func(shape ...int) *mlxc.Array { return mlxc.Zeros(mlxc.Float32, shape...) }
	x, dt, a, b := zeros(1, 5, 4, 8), zeros(1, 5, 4), zeros(4), zeros(1, 5, 2, 16)
	starts := func(values ...int32) SSMScanConfig { return SSMScanConfig{Starts: mlxc.FromSlice(values)} }
	none := SSMScanConfig{}
	for _, c := range []struct {
		want           string
		x, dt, a, b, c *mlxc.Array
		cfg            SSMScanConfig
	}{
		{"x: ", nil, dt, a, b, b, none},
		{"c: ", x, dt, a, b, nil, none},
		{"x has the shape [5 4 8]; it must be [batch, length, heads, P]", x.Squeeze(0), dt, a, b, b, none},
		{"x is int32; it must be float32, float16 or bfloat16", x.AsType(mlxc.Int32), dt, a, b, b, none},
		{"heads and P must be at least 1", zeros(1, 5, 0, 8), dt, a, b, b, none},
		{"dt has the shape [1 5]; it must be [1 5 4]", x, zeros(1, 5), a, b, b, none},
		{"dt is int32", x, dt.AsType(mlxc.Int32), a, b, b, none},
		{"a has the shape [3]; it must be [4]", x, dt, zeros(3), b, b, none},
		{"b has the shape [1 6 2 16]; it must be [1 5], groups and N", x, dt, a, zeros(1, 6, 2, 16), b, none},
		{"a multiple of the 3 groups", x, dt, a, zeros(1, 5, 3, 16), zeros(1, 5, 3, 16), none},
		{"c is float32 [1 5 1 16]; it must be float32 [1 5 2 16]", x, dt, a, b, zeros(1, 5, 1, 16), none},
		{"x is float16 and b is float32", x.AsType(mlxc.Float16), dt, a, b, b, none},
		{"P, the last axis of x, is 12; it must be a multiple of 8 from 8 to 256", zeros(1, 5, 4, 12), dt, a, b, b, none},
		{"N, the last axis of b, is 264", x, dt, a, zeros(1, 5, 2, 264), zeros(1, 5, 2, 264), none},
		{"D has the shape [2]; it must be [4]", x, dt, a, b, b, SSMScanConfig{D: zeros(2)}},
		{"InitialState has the shape [1 4 16 8]; it must be [1 4 8 16]", x, dt, a, b, b, SSMScanConfig{InitialState: zeros(1, 4, 16, 8)}},
		{"InitialState is int32", x, dt, a, b, b, SSMScanConfig{InitialState: mlxc.Zeros(mlxc.Int32, 1, 4, 8, 16)}},
		{"Starts goes from 0 to 4", x, dt, a, b, b, starts(0, 4)},
		{"Starts descends", x, dt, a, b, b, starts(0, 3, 2, 5)},
		{"at least two elements", x, dt, a, b, b, starts(0)},
		{
			"x has 2 batches; packed sequences need exactly 1", zeros(2, 5, 4, 8), zeros(2, 5, 4), a, zeros(2, 5, 2, 16),
			zeros(2, 5, 2, 16), starts(0, 5),
		},
	} {
		y, state := SSMScan(c.x, c.dt, c.a, c.b, c.c, c.cfg)
		require.ErrorContains(t, y.Err(), c.want)
		require.ErrorContains(t, y.Err(), "ops.SSMScan")
		require.ErrorContains(t, state.Err(), c.want)
	}
	y, _ := SSMStep(x, dt, a, b, b, nil, zeros(1, 4, 8, 16))
	require.ErrorContains(t, y.Err(), "it must be [batch, heads, P]")
	x, dt, b = zeros(1, 4, 3), zeros(1, 4), zeros(1, 2, 5)
	_, state := SSMStep(x, dt, a, b, b, nil, zeros(1, 4, 5, 3))
	require.ErrorContains(t, state.Err(), "ops.SSMStep")
	require.ErrorContains(t, state.Err(), "state has the shape [1 4 5 3]; it must be [1 4 3 5]")
	_, state = SSMStep(x, dt, a, b, b, nil, nil)
	require.ErrorContains(t, state.Err(), "state: ")
}

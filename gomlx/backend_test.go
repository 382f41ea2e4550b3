package gomlx

import (
	"math"
	"runtime"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestGoMLXFindsTheBackend(t *testing.T) {
	t.Setenv(backends.ConfigEnvVar, "mlx:cpu")
	b, err := backends.New()
	require.NoError(t, err)
	require.Equal(t, "mlx", b.Name())
	e := graph.MustNewExec(b, func(x *graph.Node) *graph.Node { return graph.ReduceAllSum(graph.Mul(x, x)) })
	out, err := e.Exec([]float32{1, 2, 3})
	require.NoError(t, err)
	require.Equal(t, float32(14), out[0].Value())

	_, err = New("tpu")
	require.ErrorContains(t, err, `"tpu"`)
	b.Finalize()
	require.True(t, b.IsFinalized())
	_, err = b.BufferFromFlatData(0, []float32{1}, shapes.Make(dtypes.Float32))
	require.ErrorIs(t, err, errFinalized)
}

func add(f backends.Function, in []backends.Value) (backends.Value, error) {
	return f.Add(in[0], in[1])
}

// The types of GoMLX's dtypes have the memory layout of the types of package mlxc.
func TestBuffersKeepElements(t *testing.T) {
	b := newBackend(t)
	for d := range b.Capabilities().DTypes {
		if d.IsPacked() || d == dtypes.Bool { // the bytes of Bool are 0 and 1
			continue
		}
		in := of([]uint8{1, 0, 1, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1}, 16)
		there := compute(t, one(func(f backends.Function, in []backends.Value) (backends.Value, error) {
			n := d.Size()
			x, err := f.Reshape(in[0], 16/n, n)
			if err != nil {
				return nil, err
			}
			return f.Bitcast(x, d)
		}), in)[0]
		dims := 16 / d.Size()
		back := compute(t, one(func(f backends.Function, in []backends.Value) (backends.Value, error) {
			return f.Bitcast(in[0], dtypes.Uint8)
		}), array{there, []int{dims}})[0]
		require.Equal(t, in.flat, back, "%v", d)
	}
}

// TestMemory runs a training step's pattern: parameters are donated, and results replace them.
func TestMemory(t *testing.T) {
	b := newBackend(t)
	const n = 1 << 16
	x := of(make([]float32, n), n)
	e := compile(t, b, one(add), x, x)
	loop := compile(t, b, double, of([]float32{1, 3}, 2), of([]int32{3}))
	state := buffers(t, b, x, x)
	var before int
	for i := range 1000 {
		out, err := e.Execute(state, []bool{true, false}, 0)
		require.NoError(t, err)
		state[0] = out[0]
		if i%50 == 0 {
			in := buffers(t, b, of([]float32{1, 3}, 2), of([]int32{3}))
			out, err := loop.Execute(in, nil, 0)
			require.NoError(t, err)
			read(t, b, append(out, in...))
		}
		if i == 100 {
			before = mlxc.ActiveMemory()
		}
	}
	require.LessOrEqual(t, mlxc.ActiveMemory(), before)

	// Finalized buffers are freed at once, and forgotten ones by the garbage collector.
	full := mlxc.ActiveMemory()
	require.NoError(t, b.BufferFinalize(state[0]))
	require.LessOrEqual(t, mlxc.ActiveMemory(), full-4*n)
	clear(state)
	e.Finalize()
	loop.Finalize()
	require.Eventually(t, func() bool {
		runtime.GC()
		_ = mlxc.Synchronize() // frees the arrays that the collector has found
		return mlxc.ActiveMemory() <= full-8*n
	}, 1e10, 1e7)
}

func TestDonation(t *testing.T) {
	b := newBackend(t)
	x := of([]float32{1, 2}, 2)
	identity := compile(t, b, func(_ backends.Function, in []backends.Value) ([]backends.Value, error) { return in, nil }, x, x)
	in := buffers(t, b, x, x)
	out, err := identity.Execute(in, []bool{true, false}, 0)
	require.NoError(t, err)
	_, err = identity.Execute(in, nil, 0)
	require.ErrorContains(t, err, "input 0")
	require.ErrorContains(t, b.BufferFinalize(in[0]), "donated")
	require.NoError(t, b.BufferFinalize(in[1]))
	require.Equal(t, []any{[]float32{1, 2}, []float32{1, 2}}, read(t, b, out))
}

func TestGoroutinesShareAnExecutable(t *testing.T) {
	b := newBackend(t)
	x := of([]float32{1, 2}, 2)
	e := compile(t, b, one(add), x, x)
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			y := of([]float32{float32(i), 0}, 2)
			for range 20 {
				in := buffers(t, b, x, y)
				out, err := e.Execute(in, []bool{true, true}, 0)
				if err != nil {
					t.Error(err)
					return
				}
				if got := read(t, b, out)[0].([]float32)[0]; got != 1+float32(i) {
					t.Errorf("got %v", got)
				}
			}
		})
	}
	group.Wait()
}

// Wrong calls return errors that are not ErrNotImplemented, and do not panic.
func TestWrongCalls(t *testing.T) {
	b := newBackend(t)
	builder := b.Builder("test")
	f := builder.Main()
	param := func(f backends.Function, s shapes.Shape) backends.Value {
		v, err := f.Parameter("p", s, nil)
		require.NoError(t, err)
		return v
	}
	x := param(f, shapes.Make(dtypes.Float32, 2, 3))
	n := param(f, shapes.Make(dtypes.Int32, 2))
	other := param(b.Builder("other").Main(), shapes.Make(dtypes.Float32, 2, 3))
	inner, err := closure(f, func(f backends.Function, _ []backends.Value) ([]backends.Value, error) {
		return []backends.Value{x}, nil
	})
	require.NoError(t, err)
	for name, call := range map[string]func() (any, error){
		"nil":            func() (any, error) { return f.Abs(nil) },
		"foreign value":  func() (any, error) { return f.Add(x, other) },
		"not a value":    func() (any, error) { return f.Abs(3) },
		"dtypes":         func() (any, error) { return f.Add(x, n) },
		"bits of floats": func() (any, error) { return f.BitwiseNot(x) },
		"size":           func() (any, error) { return f.Reshape(x, 5) },
		"negative size":  func() (any, error) { return f.Reshape(x, -2, -3) },
		"axes":           func() (any, error) { return f.Transpose(x, 0, 7) },
		"axis":           func() (any, error) { return f.ReduceSum(x, 2) },
		"reversed axis":  func() (any, error) { return f.Reverse(x, 4) },
		"iota":           func() (any, error) { return f.Iota(shapes.Make(dtypes.Float32), 0) },
		"broadcast":      func() (any, error) { return f.BroadcastInDim(x, shapes.Make(dtypes.Float32, 3, 3), []int{0, 1}) },
		"slice":          func() (any, error) { return f.Slice(x, []int{0}, []int{1}, nil) },
		"fill":           func() (any, error) { return f.Pad(x, n) },
		"bitcast":        func() (any, error) { return f.Bitcast(x, dtypes.Float64) },
		"invalid dtype":  func() (any, error) { return f.Bitcast(x, dtypes.InvalidDType) },
		"gather":         func() (any, error) { return f.Gather(x, n, 0, nil, nil, []int{9}, nil, false) },
		"scatter":        func() (any, error) { return f.ScatterSum(x, n, x, 5, nil, nil, nil, false, false) },
		"dynamic slice":  func() (any, error) { return f.DynamicSlice(x, []backends.Value{n}, []int{3, 3}) },
		"window":         func() (any, error) { return f.ReduceWindow(x, backends.ReduceOpSum, []int{1}, nil, nil, nil, nil) },
		"no reduction":   func() (any, error) { return f.ReduceWindow(x, 0, nil, nil, nil, nil, nil) },
		"source":         func() (any, error) { return f.SelectAndScatterMax(x, x, []int{2, 1}, nil, nil) },
		"product": func() (any, error) {
			return f.DotGeneral(x, []int{0}, nil, x, []int{1}, nil, backends.DotGeneralConfig{})
		},
		"repeated axis": func() (any, error) {
			return f.DotGeneral(x, []int{0, 0}, nil, x, []int{0, 1}, nil, backends.DotGeneralConfig{})
		},
		"convolution":          func() (any, error) { return convolve(nil, 1)(f, []backends.Value{x, x}) },
		"lengths":              func() (any, error) { return f.FFT(x, backends.FFTForwardReal, []int{7}) },
		"no lengths":           func() (any, error) { return f.FFT(x, backends.FFTForwardReal, nil) },
		"state":                func() (any, error) { _, _, err := f.RNGBitGenerator(x, shapes.Make(dtypes.Uint8, 1)); return nil, err },
		"softmax":              func() (any, error) { return f.FusedSoftmax(x, 2) },
		"dense":                func() (any, error) { return f.FusedDense(x, x, nil, backends.ActivationNone) },
		"attention":            func() (any, error) { return f.FusedScaledDotProductAttention(x, x, x, nil, 1, 1, 0, 1, false, nil) },
		"predicate":            func() (any, error) { return f.If(x, inner, inner) },
		"no closure":           func() (any, error) { return f.If(x, f, nil) },
		"closure as function":  func() (any, error) { return f.Call(inner) },
		"no state":             func() (any, error) { return f.While(inner, inner) },
		"condition":            func() (any, error) { return f.While(inner, inner, x) },
		"comparator":           func() (any, error) { return f.Sort(inner, 0, false, x) },
		"nothing to sort":      func() (any, error) { return f.Sort(inner, 0, false) },
		"constant":             func() (any, error) { return f.Constant(3.0) },
		"nil constant":         func() (any, error) { return f.Constant(nil) },
		"constant of strings":  func() (any, error) { return f.Constant([]string{"a"}, 1) },
		"constant's size":      func() (any, error) { return f.Constant([]float32{1, 2}, 3) },
		"no outputs":           func() (any, error) { return nil, f.Return(nil, nil) },
		"foreign output":       func() (any, error) { return nil, f.Return([]backends.Value{other}, nil) },
		"shape of another":     func() (any, error) { return builder.OpShape(other) },
		"compiled too early":   func() (any, error) { return builder.Compile() },
		"a second main":        func() (any, error) { return builder.NewFunction("main") },
		"device":               func() (any, error) { return nil, builder.DeviceAssignment(3) },
		"flat data":            func() (any, error) { return b.BufferFromFlatData(0, []float64{1}, shapes.Make(dtypes.Float32)) },
		"flat data's size":     func() (any, error) { return b.BufferFromFlatData(0, []float32{1}, shapes.Make(dtypes.Float32, 2)) },
		"flat data's type":     func() (any, error) { return b.BufferFromFlatData(0, 1, shapes.Make(dtypes.Float32)) },
		"device of the buffer": func() (any, error) { return b.BufferFromFlatData(1, []float32{1}, shapes.Make(dtypes.Float32)) },
		"no buffer":            func() (any, error) { return b.BufferShape(nil) },
	} {
		_, err := call()
		assert.Error(t, err, name)
		assert.False(t, backends.IsNotImplemented(err), "%s: %v", name, err)
	}
	require.NoError(t, f.Return([]backends.Value{x}, nil))
	_, err = f.Abs(x)
	require.ErrorContains(t, err, "has returned")
	e, err := builder.Compile()
	require.NoError(t, err)
	_, err = f.Closure()
	require.ErrorIs(t, err, errCompiled)

	in := buffers(t, b, of(seq(6), 2, 3), of([]int32{1, 2}, 2))
	_, err = e.Execute(in[:1], nil, 0)
	require.ErrorContains(t, err, "1 inputs")
	_, err = e.Execute(in, []bool{true}, 0)
	require.ErrorContains(t, err, "1 donations")
	_, err = e.Execute([]backends.Buffer{in[1], in[0]}, nil, 0)
	require.ErrorContains(t, err, "input 0")
	_, err = e.Execute(in, nil, 2)
	require.ErrorContains(t, err, "device 0")
	e.Finalize()
	e.Finalize()
	_, err = e.Execute(in, nil, 0)
	require.ErrorContains(t, err, "finalized")
	require.ErrorContains(t, b.BufferToFlatData(in[0], make([]float32, 5)), "5 elements")
}

func TestWhatMLXLacksIsNotImplemented(t *testing.T) {
	b := newBackend(t)
	f := b.Builder("test").Main()
	x, err := f.Parameter("x", shapes.Make(dtypes.Float64, 2, 2), nil)
	require.NoError(t, err)
	for name, call := range map[string]func() (any, error){
		"complex128 parameter": func() (any, error) { return f.Parameter("c", shapes.Make(dtypes.Complex128), nil) },
		"complex128 constant":  func() (any, error) { return f.Constant([]complex128{1}) },
		"conversion":           func() (any, error) { return f.ConvertDType(x, dtypes.Complex128) },
		"complex":              func() (any, error) { return f.Complex(x, x) },
		"softmax of float64":   func() (any, error) { return f.FusedSoftmax(x, 1) },
		"quantized dense":      func() (any, error) { return f.FusedQuantizedDense(x, x, nil, nil, 0) },
		"embedding":            func() (any, error) { return f.QuantizedEmbeddingLookup(x, x, nil) },
		"sharding":             func() (any, error) { return f.Parameter("s", shapes.Make(dtypes.Float32), &backends.ShardingSpec{}) },
		"all-reduce":           func() (any, error) { return f.AllReduce([]backends.Value{x}, backends.ReduceOpSum, nil) },
		"shared buffers":       func() (any, error) { _, _, err := b.NewSharedBuffer(0, shapes.Make(dtypes.Float32)); return nil, err },
	} {
		_, err := call()
		require.True(t, backends.IsNotImplemented(err), "%s: %v", name, err)
	}
	require.False(t, b.Capabilities().DTypes[dtypes.Complex128])
	gpu := &backend{device: mlxc.GPU}
	require.False(t, gpu.Capabilities().DTypes[dtypes.Float64])
}

// Fused operations agree with their definitions; the suites compare them with GoMLX's compositions.
func TestFusedOperations(t *testing.T) {
	x := of([]float32{0, 1, 2, -1}, 2, 2)
	softmax := compute(t, one(func(f backends.Function, in []backends.Value) (backends.Value, error) {
		return f.FusedSoftmax(in[0], 0)
	}), x)[0].([]float32)
	require.InDelta(t, 1/(1+math.Exp(2)), softmax[0], 1e-6)
	require.InDelta(t, 1, softmax[1]+softmax[3], 1e-6)

	parts := compute(t, func(f backends.Function, in []backends.Value) ([]backends.Value, error) {
		q, k, v, err := f.FusedAttentionQKVProjection(in[0], in[1], nil, in[2], nil, 2, 1)
		return []backends.Value{q, k, v}, err
	}, x, of(seq(8), 2, 4), of([]float32{100}, 1))
	require.Equal(t, []any{[]float32{4, 5, -4, -3}, []float32{106, 98}, []float32{7, -1}}, parts)
}

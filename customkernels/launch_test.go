package customkernels

import (
	"os"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

type arrays = []*mlxc.Array

func kernel(t testing.TB, file, name string) *Kernel {
	t.Helper()
	lib, err := Load(os.DirFS("testdata"), file)
	require.NoError(t, err)
	k, err := lib.Kernel(name)
	require.NoError(t, err)
	return k
}

// inline returns the only kernel of a shader text.
func inline(t testing.TB, text string) *Kernel {
	t.Helper()
	lib, err := Load(fstest.MapFS{"inline.metal": {Data: []byte(text)}}, "inline.metal")
	require.NoError(t, err)
	k, err := lib.Kernel("")
	require.NoError(t, err)
	return k
}

// perElement returns a launch with one thread for each element of x, and one output like x.
func perElement(x *mlxc.Array, template ...mlxc.TemplateArg) Launch {
	return Launch{
		Grid: [3]int{x.Size()}, Threadgroup: [3]int{32}, Template: template,
		Outputs: []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}},
	}
}

func TestScaleInEveryDTypeAndSizeClass(t *testing.T) {
	k := kernel(t, "scale.metal", "scale")
	for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16} {
		for _, n := range []int{1, 7, 8, 100} {
			x := mlxc.Arange(d, 0, float64(n), 1)
			y := k.Launch(perElement(x, mlxc.TemplateArg{Name: "T", Value: d}), x, mlxc.Scalar[float32](3))[0]
			require.Equal(t, mlxtest.Floats(t, x.MulScalar(3)), mlxtest.Floats(t, y))
			require.Equal(t, d, y.DType())
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestScaleInEveryDTypeAndSizeClass)

func TestLaunchIsLazyAndTakesStridedInputs(t *testing.T) {
	k := kernel(t, "scale.metal", "scale")
	x := mlxc.Arange(mlxc.Float32, 0, 24, 1).Reshape(4, 6)
	template := mlxc.TemplateArg{Name: "T", Value: mlxc.Float32}
	views := arrays{x.Transpose(), x.Slice([]int{1, 0}, []int{4, 6}, []int{2, 3}), mlxc.Ones(mlxc.Float32, 1, 9).BroadcastTo(3, 9)}
	for _, v := range views {
		y := k.Launch(perElement(v, template), v, mlxc.Scalar[float32](2))[0]
		require.Equal(t, mlxtest.Floats(t, v.MulScalar(2)), mlxtest.Floats(t, y))
	}
}

var _ = testdevice.AlsoOnGPU(TestLaunchIsLazyAndTakesStridedInputs)

func TestSeveralOutputsAndTables(t *testing.T) {
	k := kernel(t, "scale.metal", "lookup")
	index := mlxc.FromSlice([]uint32{3, 0, 1})
	out := k.Launch(Launch{
		Grid: [3]int{3}, Threadgroup: [3]int{2},
		Outputs: []mlxc.Output{{Shape: []int{3}, DType: mlxc.Float32}, {Shape: []int{3}, DType: mlxc.Int32}},
	}, index, mlxc.FromSlice([]float32{10, 11, 12, 13}))
	require.Equal(t, []float32{13, 10, 11}, mlxtest.Floats(t, out[0]))
	require.Equal(t, []float32{6, 0, 2}, mlxtest.Floats(t, out[1]))
}

var _ = testdevice.AlsoOnGPU(TestSeveralOutputsAndTables)

func TestInitialValue(t *testing.T) {
	k := kernel(t, "scale.metal", "accumulate")
	x := mlxc.FromSlice([]float32{1, 2, 3})
	l := perElement(x)
	start := float32(10)
	l.InitValue = &start
	require.Equal(t, []float32{11, 12, 13}, mlxtest.Floats(t, k.Launch(l, x)[0]))
}

var _ = testdevice.AlsoOnGPU(TestInitialValue)

func TestOutputsCarrySyntaxError(t *testing.T) {
	k := inline(t, `#include <metal_stdlib>
using namespace metal;
kernel void broken(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                   uint i [[thread_position_in_grid]]) {
  y[i] = x[i] +* undeclared;
}
`)
	x := mlxc.FromSlice([]float32{1, 2, 3})
	y := k.Launch(perElement(x), x)[0]
	dependent := y.Add(x).Sum()
	for _, err := range []error{y.Err(), mlxc.Eval(y), mlxc.AsyncEval(dependent), dependent.Err()} {
		require.ErrorContains(t, err, "broken float32(3)")
		require.ErrorContains(t, err, "inline.metal:5:")
		require.ErrorContains(t, err, "undeclared")
	}
	require.Equal(t, []float32{2, 4, 6}, mlxtest.Floats(t, x.Add(x)))
}

// Local variables that do not fit a thread's stack are an error, with and without fibers.
func TestLargeLocalVariables(t *testing.T) {
	for _, barrier := range []string{"", "threadgroup_barrier(mem_flags::mem_threadgroup);"} {
		k := inline(t, `#include <metal_stdlib>
using namespace metal;
kernel void large(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
  float sums[36 * 1024];
  for (int j = 0; j < 36 * 1024; j++) sums[j] = x[(i + j) % 3];
  `+barrier+`
  y[i] = sums[int(x[i]) * 4097 % (36 * 1024)];
}
`)
		x := mlxc.FromSlice([]float32{1, 2, 3})
		l := perElement(x)
		err := mlxc.WithDevice(mlxc.CPU, func() {
			require.ErrorContains(t, k.Launch(l, x)[0].Err(), "the local variables of a thread take 147")
		})
		require.NoError(t, err)
	}
}

// If a launch cannot allocate its output, the output and all arrays that depend on it keep the error. Other arrays are
// unaffected. Eval and AsyncEval behave alike.
func TestFailedLaunchPoisonsItsOutputsOnly(t *testing.T) {
	if mlxc.CUDAAvailable() {
		skip.Platform(t, "CUDA reserves memory that does not exist, and all later kernels fail")
	}
	k := kernel(t, "scale.metal", "scale")
	x := mlxc.FromSlice([]float32{1, 2, 3})
	l := perElement(x, mlxc.TemplateArg{Name: "T", Value: mlxc.Float32})
	l.Outputs[0].Shape = []int{1 << 30, 1 << 14} // 64 TiB
	before, after := x.Square(), x.MulScalar(5)
	for name, eval := range map[string]func(...*mlxc.Array) error{"Eval": mlxc.Eval, "AsyncEval": mlxc.AsyncEval} {
		t.Run(name, func(t *testing.T) {
			y := k.Launch(l, before, mlxc.Scalar[float32](2))[0]
			dependent := y.Slice([]int{0, 0}, []int{1, 3}, nil).Add(after)
			require.NoError(t, y.Err(), "it fails when it is evaluated")
			require.ErrorContains(t, eval(dependent), "scale")
			for range 3 {
				require.ErrorContains(t, eval(y), "scale")
				require.ErrorContains(t, eval(dependent, after), "scale")
				_, err := mlxc.ToSlice[float32](dependent)
				require.ErrorContains(t, err, "scale")
				_, err = mlxc.ToSlice[float32](dependent.Add(x).Sum())
				require.ErrorContains(t, err, "scale")
			}
			// The launch's inputs, unrelated arrays and later launches are valid.
			require.Equal(t, []float32{1, 4, 9}, mlxtest.Floats(t, before))
			require.Equal(t, []float32{5, 10, 15}, mlxtest.Floats(t, after))
			require.NoError(t, mlxc.Eval(x.Add(x)))
			require.NoError(t, mlxc.AsyncEval(x.Mul(x)))
		})
	}
	// A compiled function that failed succeeds later with smaller outputs.
	rows := 1 << 30
	c := mlxc.Compile(func(args arrays) arrays {
		l.Outputs[0].Shape = []int{rows, args[0].Size()}
		return k.Launch(l, args[0], mlxc.Scalar[float32](2))
	})
	defer c.Close()
	out, err := c.Call(mlxc.Ones(mlxc.Float32, 1<<14))
	require.NoError(t, err)
	require.ErrorContains(t, mlxc.Eval(out...), "scale")
	rows = 1
	out, err = c.Call(x)
	require.NoError(t, err)
	require.Equal(t, []float32{2, 4, 6}, mlxtest.Floats(t, out[0]))
}

func TestWrongLaunches(t *testing.T) {
	k := kernel(t, "scale.metal", "scale")
	x, two := mlxc.FromSlice([]float32{1, 2, 3}), mlxc.Scalar[float32](2)
	freed := mlxc.FromSlice([]float32{1})
	freed.Free()
	float := mlxc.TemplateArg{Name: "T", Value: mlxc.Float32}
	with := func(change func(l *Launch)) Launch {
		l := perElement(x, float)
		change(&l)
		return l
	}
	same := func(*Launch) {}
	for _, c := range []struct {
		name   string
		launch Launch
		inputs arrays
		part   string
	}{
		{"no threads for outputs", with(func(l *Launch) { l.Grid = [3]int{} }), arrays{x, two}, "a grid of no threads leaves the outputs undefined: set Launch.Grid"},
		{"inputs missing", with(same), arrays{x}, "1 inputs, want 2: [x factor]"},
		{"an invalid input", with(same), arrays{x.Add(mlxc.Ones(mlxc.Float32, 7)), two}, "add"},
		{"a freed input", with(same), arrays{freed, two}, "freed"},
		{"a nil input", with(same), arrays{nil, two}, "nil"},
		{"a dtype that is not the template's", with(same), arrays{x.AsType(mlxc.Float16), two}, "the input x is declared T and must be float32, not float16"},
		{"a dtype that is not the declaration's", with(same), arrays{x, mlxc.Scalar[int32](2)}, "the input factor is declared float"},
		{"a scalar for a pointer", with(same), arrays{two, two}, "the input x is a pointer"},
		{"an array for a reference", with(same), arrays{x, x}, "the input factor is a reference"},
		{"outputs missing", with(func(l *Launch) { l.Outputs = nil }), arrays{x, two}, "0 outputs, want 1: [y]"},
		{"an output's dtype", with(func(l *Launch) { l.Outputs[0].DType = mlxc.Int32 }), arrays{x, two}, "the output y is declared T"},
		{"an output without dtype", with(func(l *Launch) { l.Outputs[0].DType = mlxc.Invalid }), arrays{x, two}, "y"},
		{"an output shape that overflows", with(func(l *Launch) { l.Outputs[0].Shape = []int{1 << 30, 1 << 30, 1 << 10} }), arrays{x, two}, "exceeds the address space"},
		{"a negative output shape", with(func(l *Launch) { l.Outputs[0].Shape = []int{-1} }), arrays{x, two}, "negative axis"},
		{"threads", with(func(l *Launch) { l.Threadgroup = [3]int{64, 32} }), arrays{x, two}, "at most 1024"},
		{"threads that overflow", with(func(l *Launch) { l.Threadgroup = [3]int{1 << 31, 1 << 31, 1 << 31} }), arrays{x, two}, "at most 1024"},
		{"a negative grid", with(func(l *Launch) { l.Grid[1] = -1 }), arrays{x, two}, "negative"},
		{"a huge grid", with(func(l *Launch) { l.Grid[0] = 1 << 31 }), arrays{x, two}, "2³¹−1"},
		{"products below the least", with(func(l *Launch) { l.Products = -1 }), arrays{x, two}, "Launch.Products is -1; it must be DefaultProducts, SplitProducts, FullSplitProducts or FMAProducts"},
		{"products above the greatest", with(func(l *Launch) { l.Products = FMAProducts + 1 }), arrays{x, two}, "Launch.Products is 4; it must be"},
		{"template argument missing", with(func(l *Launch) { l.Template = nil }), arrays{x, two}, "template argument T is missing"},
		{"template argument of another kind", with(func(l *Launch) { l.Template = []mlxc.TemplateArg{{Name: "T", Value: 3}} }), arrays{x, two}, "does not fit the parameter typename T"},
		{"too many template arguments", with(func(l *Launch) { l.Template = append(l.Template, mlxc.TemplateArg{Name: "U", Value: 3}) }), arrays{x, two}, "2 template arguments, want 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := k.Launch(c.launch, c.inputs...)
			require.Len(t, out, 1)
			err := mlxc.Eval(out...)
			require.ErrorContains(t, err, c.part)
			require.Equal(t, []float32{2, 4, 6}, mlxtest.Floats(t, k.Launch(with(same), x, two)[0]))
		})
	}
}

var _ = testdevice.AlsoOnGPU(TestWrongLaunches)

func TestLoadErrors(t *testing.T) {
	_, err := Load(os.DirFS("testdata"), "absent.metal")
	require.ErrorIs(t, err, os.ErrNotExist)
	load := func(text string) (*Kernel, error) {
		lib, err := Load(fstest.MapFS{"f.metal": {Data: []byte(text)}}, "f.metal")
		if err != nil {
			return nil, err
		}
		return lib.Kernel("")
	}
	for text, part := range map[string]string{
		"":               "kernel",
		"kernel void f(": "f.metal:1",
		"kernel void f(texture2d<float> t [[texture(0)]], device float* y [[buffer(0)]]) {}": "f.metal:1",
		"kernel void f(device const float* x [[buffer(0)]]) {}":                              "has no output",
	} {
		_, err := load(text)
		require.ErrorContains(t, err, part, text)
	}
	lib, err := Load(os.DirFS("testdata"), "scale.metal")
	require.NoError(t, err)
	require.Equal(t, []string{"scale", "lookup", "accumulate"}, lib.Names())
	_, err = lib.Kernel("absent")
	require.ErrorContains(t, err, "scale, lookup, accumulate")
	_, err = lib.Kernel("")
	require.ErrorContains(t, err, "several")
}

// 64 goroutines launch one kernel that has no compiled program yet.
func TestLaunchesFromManyGoroutines(t *testing.T) {
	k := kernel(t, "scale.metal", "scale")
	var wg sync.WaitGroup
	errs := make(chan string, 64)
	for id := range 64 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 10 {
				x := mlxc.FromSlice([]float32{float32(id), 1, 2, 3, 4, 5, 6, 7, 8})
				y := k.Launch(perElement(x, mlxc.TemplateArg{Name: "T", Value: mlxc.Float32}), x, mlxc.Scalar[float32](2))[0]
				got, err := mlxc.ToSlice[float32](y)
				if err != nil {
					errs <- err.Error()
				} else if got[0] != float32(2*id) || got[8] != 16 {
					errs <- "wrong value"
				}
			}
		}()
	}
	wg.Wait()
	close(errs)
	for e := range errs {
		t.Error(e)
	}
}

var _ = testdevice.AlsoOnGPU(TestLaunchesFromManyGoroutines)

func TestMetalSourceNamesTheKernel(t *testing.T) {
	k := kernel(t, "scale.metal", "scale")
	x := mlxc.Ones(mlxc.Float16, 9)
	text, err := k.MetalSource(perElement(x, mlxc.TemplateArg{Name: "T", Value: mlxc.Float16}), x, mlxc.Scalar[float32](1))
	require.NoError(t, err)
	require.Contains(t, text, "[[kernel]] void custom_kernel_scale_")
	require.Contains(t, text, "const device float16_t* x [[buffer(0)]]")
	require.Contains(t, text, "const constant float& factor [[buffer(1)]]")
	require.True(t, strings.Contains(text, "y[i] = T(float(x[i]) * factor);"))
}

// One goroutine launches inside a transform, which holds the graph lock, while another launches outside. Both build the
// same program without a deadlock.
func TestColdLaunchesInsideAndOutsideATransform(t *testing.T) {
	for range 20 {
		k := kernel(t, "scale.metal", "scale")
		x := mlxc.FromSlice([]float32{1, 2, 3})
		launch := func(a *mlxc.Array) *mlxc.Array {
			return k.Launch(perElement(a, mlxc.TemplateArg{Name: "T", Value: mlxc.Float32}), a, mlxc.Scalar[float32](2))[0]
		}
		inside, done := make(chan bool), make(chan error)
		go func() {
			_, _, err := mlxc.VJP(func(a arrays) arrays {
				close(inside)
				return arrays{launch(x).Add(a[0])}
			}, arrays{x}, arrays{x})
			done <- err
		}()
		<-inside
		require.Equal(t, []float32{2, 4, 6}, mlxtest.Floats(t, launch(x)))
		require.NoError(t, <-done)
	}
}

var _ = testdevice.AlsoOnGPU(TestColdLaunchesInsideAndOutsideATransform)

func TestEmptyLaunches(t *testing.T) {
	k := kernel(t, "scale.metal", "scale")
	template := mlxc.TemplateArg{Name: "T", Value: mlxc.Float32}
	empty := mlxc.Zeros(mlxc.Float32, 0, 4096)
	l := Launch{
		Grid: [3]int{empty.Dim(0), empty.Dim(1)}, Threadgroup: [3]int{1, 64}, Template: []mlxc.TemplateArg{template},
		Outputs: []mlxc.Output{{Shape: empty.Shape(), DType: mlxc.Float32}},
	}
	y := k.Launch(l, empty, mlxc.Scalar[float32](2))[0]
	require.Empty(t, mlxtest.Floats(t, y))
	require.Equal(t, []int{0, 4096}, y.Shape())
	l.Grid = [3]int{64, 64} // threads, but no output elements
	require.Empty(t, mlxtest.Floats(t, k.Launch(l, empty, mlxc.Scalar[float32](2))[0]))
	l.Grid, l.Outputs[0].Shape = [3]int{0}, []int{2}
	seven := float32(7)
	l.InitValue = &seven
	require.Equal(t, []float32{7, 7}, mlxtest.Floats(t, k.Launch(l, empty, mlxc.Scalar[float32](2))[0]))
	text, err := k.MetalSource(l, empty, mlxc.Scalar[float32](2))
	require.NoError(t, err)
	require.Contains(t, text, "[[kernel]]")
}

var _ = testdevice.AlsoOnGPU(TestEmptyLaunches)

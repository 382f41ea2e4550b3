package ops

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// unary returns f as a function of a list of one array.
func unary(f func(x *mlxc.Array) *mlxc.Array) mlxc.Func {
	return func(args arrays) arrays { return arrays{f(args[0])} }
}

// vjpOf returns a function of (dy, x…) that computes f(x…) and the gradients of all x for the cotangent dy.
func vjpOf(f mlxc.Func) mlxc.Func {
	return func(args arrays) arrays {
		y, grads, err := mlxc.VJP(f, args[1:], args[:1])
		if err != nil {
			return arrays{mlxc.InvalidArray(err)}
		}
		return append(y, grads...)
	}
}

// testUnaryUnderTransforms checks that an operation of one array has MLX's value and gradient under every transform,
// and that this package's kernels run.
func testUnaryUnderTransforms(t *testing.T, ours, theirs func(x *mlxc.Array) *mlxc.Array, x, dy *mlxc.Array) {
	testUnderTransforms(t, unary(ours), unary(theirs), arrays{x}, dy)
}

// testUnderTransforms makes the checks of testUnaryUnderTransforms for an operation of several arrays. All have a
// gradient.
func testUnderTransforms(t *testing.T, ours, theirs mlxc.Func, args arrays, dy *mlxc.Array) {
	wantY, want, err := mlxc.VJP(theirs, args, arrays{dy})
	require.NoError(t, err)
	sameGradients := func(t *testing.T, got arrays) {
		t.Helper()
		require.Len(t, got, len(want))
		for i := range want {
			closeTo(t, want[i], got[i])
		}
	}
	same := func(t *testing.T, y *mlxc.Array, got arrays) {
		t.Helper()
		closeTo(t, wantY[0], y)
		sameGradients(t, got)
	}
	t.Run("VJP", func(t *testing.T) {
		before := customkernels.LaunchCount()
		y, got, err := mlxc.VJP(ours, args, arrays{dy})
		require.NoError(t, err)
		require.Greater(t, customkernels.LaunchCount(), before, "the kernels must run")
		same(t, y[0], got)
	})
	t.Run("ValueAndGrad", func(t *testing.T) {
		loss := func(args arrays) arrays { return arrays{ours(args)[0].Mul(dy).AsType(mlxc.Float32).Sum()} }
		all := make([]int, len(args))
		for i := range all {
			all[i] = i
		}
		_, got, err := mlxc.ValueAndGrad(loss, all...)(args)
		require.NoError(t, err)
		sameGradients(t, got)
	})
	t.Run("Checkpoint", func(t *testing.T) {
		y, got, err := mlxc.VJP(mlxc.Checkpoint(ours), args, arrays{dy})
		require.NoError(t, err)
		same(t, y[0], got)
	})
	t.Run("Compile", func(t *testing.T) {
		c := mlxc.Compile(vjpOf(ours))
		defer c.Close()
		for range 2 {
			out, err := c.Call(append(arrays{dy}, args...)...)
			require.NoError(t, err)
			same(t, out[0], out[1:])
		}
	})
	t.Run("Compile without shapes is refused", func(t *testing.T) {
		c := mlxc.CompileShapeless(vjpOf(ours))
		defer c.Close()
		_, err := c.Call(append(arrays{dy}, args...)...)
		require.ErrorContains(t, err, "use Compile")
	})
}

// testUnaryOfLayouts checks inputs and cotangents of several memory layouts.
func testUnaryOfLayouts(t *testing.T, ours, theirs func(x *mlxc.Array) *mlxc.Array) {
	base := normal(1, mlxc.Float32, 66, 62)
	for name, x := range map[string]*mlxc.Array{
		"transposed":     base.Transpose(),
		"strided":        base.Slice([]int{1, 0}, []int{66, 60}, []int{2, 3}),
		"offset":         base.Reshape(66*62).Slice([]int{1}, []int{1 + 56*72}, nil).Reshape(56, 72),
		"broadcast":      normal(2, mlxc.Float32, 1, 40).BroadcastTo(7, 40),
		"several axes":   normal(3, mlxc.Float32, 2, 3, 5, 33),
		"axes exchanged": normal(4, mlxc.Float32, 2, 5, 3, 33).Transpose(0, 2, 1, 3),
	} {
		t.Run(name, func(t *testing.T) {
			shape := theirs(x).Shape()
			n := len(shape)
			shape[n-2], shape[n-1] = shape[n-1], shape[n-2]
			dy := normal(5, mlxc.Float32, shape...).SwapAxes(-1, -2)
			wantY, want, err := mlxc.VJP(unary(theirs), arrays{x}, arrays{dy})
			require.NoError(t, err)
			y, got, err := mlxc.VJP(unary(ours), arrays{x}, arrays{dy})
			require.NoError(t, err)
			closeTo(t, wantY[0], y[0])
			closeTo(t, want[0], got[0])
		})
	}
}

// exportedKernels returns the names of the kernels in a gradient that is exported for a Mac.
func exportedKernels(t *testing.T, f func(x *mlxc.Array) *mlxc.Array, x *mlxc.Array) []string {
	return exportedKernelsOf(t, unary(f), x)
}

// exportedKernelsOf returns the names of the kernels in the gradients of f for all args, exported for a Mac.
func exportedKernelsOf(t *testing.T, f mlxc.Func, args ...*mlxc.Array) []string {
	step := func(args arrays) (results arrays) {
		mlxc.WithPlaceholderGPU(func() { results = vjpOf(f)(args) })
		return results
	}
	dy := f(args)[0]
	require.NoError(t, mlxc.Eval(dy))
	all := append(arrays{dy}, args...)
	nodes, err := mlxc.Trace(step, all)
	require.NoError(t, err)
	var kernels []string
	for _, n := range nodes {
		if n.Primitive == "CustomKernel" {
			require.Contains(t, n.Strings[1], "[[kernel]] void "+n.Strings[0])
			kernels = append(kernels, n.Strings[0])
		}
	}
	file := filepath.Join(t.TempDir(), "step.mlxfn")
	require.NoError(t, mlxc.Export(file, step, all...))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, k := range kernels {
		require.Contains(t, string(text), k)
	}
	return kernels
}

// testUnaryWithoutCompiler checks that an operation uses MLX's value and gradient without a C++ compiler.
func testUnaryWithoutCompiler(t *testing.T, ours, theirs func(x *mlxc.Array) *mlxc.Array) {
	withoutCompiler(t)
	x := normal(1, mlxc.Float32, 3, 50)
	dy := theirs(normal(2, mlxc.Float32, 3, 50))
	wantY, want, err := mlxc.VJP(unary(theirs), arrays{x}, arrays{dy})
	require.NoError(t, err)
	before := customkernels.LaunchCount()
	y, got, err := mlxc.VJP(unary(ours), arrays{x}, arrays{dy})
	require.NoError(t, err)
	require.Equal(t, mlxtest.Floats(t, wantY[0]), mlxtest.Floats(t, y[0]))
	require.Equal(t, mlxtest.Floats(t, want[0]), mlxtest.Floats(t, got[0]))
	require.Equal(t, before, customkernels.LaunchCount())
}

package ops

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Any machine exports a loss with its gradient as a function for a Mac. The export contains the complete Metal source
// of the kernels.
func TestRMSNormGradientIsExportedForMetal(t *testing.T) {
	step := func(args arrays) (results arrays) {
		mlxc.WithPlaceholderGPU(func() {
			loss := func(args arrays) arrays { return arrays{RMSNorm(args[0], args[1], 1e-5).Square().Sum()} }
			values, grads, err := mlxc.ValueAndGrad(loss, 0, 1)(args)
			if err != nil {
				results = arrays{mlxc.InvalidArray(err)}
				return
			}
			results = slices.Concat(values, grads)
		})
		return results
	}
	for _, dtype := range gradientDTypes {
		x, w := normal(1, dtype, 8, 100), normal(2, dtype, 100)
		nodes, err := mlxc.Trace(step, arrays{x, w})
		require.NoError(t, err)
		var kernels []string
		for _, n := range nodes {
			if n.Primitive == "CustomKernel" {
				require.Contains(t, n.Strings[1], "[[kernel]] void "+n.Strings[0])
				kernels = append(kernels, n.Strings[0])
			}
		}
		require.Len(t, kernels, 2)
		for i, name := range []string{"rms_norm_backward", "column_sum"} {
			require.True(t, strings.Contains(strings.Join(kernels, " "), name), "kernel %d: %s in %v", i, name, kernels)
		}
		file := filepath.Join(t.TempDir(), "step.mlxfn")
		require.NoError(t, mlxc.Export(file, step, x, w))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, k := range kernels {
			require.Contains(t, string(text), k)
		}
	}
}

// The host executor's functions cannot be exported. Export writes no file, and its error names WithPlaceholderGPU.
func TestExportOnACPU(t *testing.T) {
	x := normal(1, mlxc.Float32, 3, 8)
	softmax := func(a arrays) arrays { return arrays{Softmax(a[0])} }
	file := filepath.Join(t.TempDir(), "f.mlxfn")
	err := mlxc.Export(file, softmax, x)
	require.ErrorContains(t, err, "WithPlaceholderGPU")
	require.NoFileExists(t, file)
	_, err = mlxc.Trace(softmax, arrays{x})
	require.ErrorContains(t, err, "WithPlaceholderGPU")
}

// An export for CUDA contains the complete source of the kernels, so that other processes can compile them.
func TestGradientIsExportedForCUDA(t *testing.T) {
	if mlxc.CurrentBackend() != mlxc.BackendCUDA {
		skip.Missing(t, skip.CUDA, "MLX builds CUDA kernels with a CUDA device only")
	}
	step := mlxc.Grad(func(args arrays) arrays { return arrays{RMSNorm(args[0], args[1], 1e-5).Square().Sum()} }, 0, 1)
	f := func(args arrays) arrays {
		grads, err := step(args)
		if err != nil {
			return arrays{mlxc.InvalidArray(err)}
		}
		return grads
	}
	x, w := normal(1, mlxc.Float32, 8, 100), normal(2, mlxc.Float32, 100)
	file := filepath.Join(t.TempDir(), "step.mlxfn")
	require.NoError(t, mlxc.Export(file, f, x, w))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "struct thread_position")
	require.NotContains(t, string(text), "/proc/self")

	imported, err := mlxc.Import(file)
	require.NoError(t, err)
	defer imported.Close()
	got, err := imported.Call(x, w)
	require.NoError(t, err)
	for i, want := range f(arrays{x, w}) {
		closeTo(t, want, got[i])
	}
}

var _ = testdevice.AlsoOnGPU(TestGradientIsExportedForCUDA)

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// direct returns the losses of steps without files.
func direct(t *testing.T, o operations, steps int) (losses []float32) {
	t.Helper()
	s, err := start()
	require.NoError(t, err)
	for range steps {
		out, err := o.step(input{s, quadrants(256)})
		require.NoError(t, err)
		loss, err := mlxc.Item[float32](out.Loss)
		require.NoError(t, err)
		losses, s = append(losses, loss), out.state
	}
	return losses
}

// A Mac gets the step with the complete Metal source of each kernel.
func TestExportForMac(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	require.NoError(t, run([]string{"-dir", dir}, &out))
	require.Contains(t, out.String(), "with 4 kernels\n")
	step, err := os.ReadFile(filepath.Join(dir, stepFile))
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dir, "*.metal"))
	require.NoError(t, err)
	names := []string{"column_sum", "cross_entropy_fwd_bwd", "cross_entropy_reduce", "rms_norm_backward"}
	require.Len(t, files, len(names))
	for i, name := range names {
		text, err := os.ReadFile(files[i])
		require.NoError(t, err)
		require.Contains(t, filepath.Base(files[i]), name)
		require.Contains(t, string(text), "[[kernel]] void custom_kernel_"+name)
		require.Contains(t, string(step), string(text), "the file of the step has the kernel's source")
	}
	if mlxc.CurrentBackend() == mlxc.BackendMetal {
		requireCurve(t, dir, withKernels)
		return
	}
	err = run([]string{"-dir", dir, "-run", "1"}, &out)
	require.ErrorContains(t, err, "without gpu backend")
}

// requireCurve requires the files and the step in Go to have the same losses.
func requireCurve(t *testing.T, dir string, o operations) {
	t.Helper()
	const steps = 60
	losses, err := resume(dir, steps)
	require.NoError(t, err)
	require.InDeltaSlice(t, direct(t, o, steps), losses, 1e-4)
	require.Less(t, losses[steps-1], losses[0]/2)
}

// An exported step without kernels runs on a CPU and has the losses of the step in Go.
func TestExportedStepRuns(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, run([]string{"-dir", dir, "-target", "here", "-gradients", "mlx"}, &bytes.Buffer{}))
	requireCurve(t, dir, builtIn)
	var out bytes.Buffer
	require.NoError(t, run([]string{"-dir", dir, "-run", "2"}, &out))
	require.True(t, strings.HasPrefix(out.String(), "loss "), out.String())
}

// On an NVIDIA GPU the step runs with its kernels.
func TestExportedStepRunsWithKernels(t *testing.T) {
	if mlxc.CurrentBackend() != mlxc.BackendCUDA {
		skip.Missing(t, skip.CUDA, "MLX builds CUDA kernels with a CUDA device only")
	}
	dir := t.TempDir()
	require.NoError(t, run([]string{"-dir", dir, "-target", "here"}, &bytes.Buffer{}))
	requireCurve(t, dir, withKernels)
}

func TestErrors(t *testing.T) {
	var out bytes.Buffer
	dir := t.TempDir()
	for message, args := range map[string][]string{
		`-gradients is "x"; it must be ours or mlx`: {"-gradients", "x"},
		`-target is "x"; it must be mac or here`:    {"-target", "x"},
		"-run is -1; it must be positive":           {"-run", "-1"},
	} {
		require.EqualError(t, run(args, &out), message)
	}
	require.ErrorIs(t, run([]string{"-dir", dir, "-run", "1"}, &out), os.ErrNotExist)
	if mlxc.DefaultDevice() == mlxc.CPU {
		require.ErrorContains(t, run([]string{"-dir", dir, "-target", "here"}, &out), "WithPlaceholderGPU")
		require.NoFileExists(t, filepath.Join(dir, stepFile))
	}
}

package customkernels

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/nvrtc"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/internal/ahead"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// cudaChild is set in processes that launch a kernel and print one line about it.
const cudaChild = "CUDA_TEST_CHILD"

// A first process compiles all programs in parallel. A second one compiles nothing and has the same results.
func TestCUDAProgramsAreCompiledOncePerMachine(t *testing.T) {
	if mlxc.CurrentBackend() != mlxc.BackendCUDA {
		skip.Missing(t, skip.CUDA, "the current backend is not CUDA")
	}
	if os.Getenv(cudaChild) != "" {
		runScale(t)
		return
	}
	t.Setenv("MLXGRAD_CACHE", t.TempDir())
	var lines []string
	for range 2 {
		cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), cudaChild+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		_, line, found := strings.Cut(string(out), cudaChild)
		require.True(t, found, "%s", out)
		line, _, _ = strings.Cut(line, "\n")
		lines = append(lines, line)
		t.Log(line)
	}
	var programs, compiled, again int
	var first, second string
	const format = "%d programs, %d compiled, results %s"
	_, err := fmt.Sscanf(lines[0], format, &programs, &compiled, &first)
	require.NoError(t, err)
	_, err = fmt.Sscanf(lines[1], format, &programs, &again, &second)
	require.NoError(t, err)
	require.Positive(t, programs)
	require.Equal(t, programs, compiled)
	require.Zero(t, again)
	require.Equal(t, first, second)
}

var _ = testdevice.AlsoOnGPU(TestCUDAProgramsAreCompiledOncePerMachine)

// runScale compiles the programs of a kernel in parallel, launches them, and prints a hash of the results.
func runScale(t *testing.T) {
	k := kernel(t, "scale.metal", "scale")
	var results []string
	launch := func() {
		results = nil
		for _, d := range mlxtest.FloatDTypes {
			for _, n := range []int{7, 64, 85} {
				x := mlxc.Arange(d, 0, float64(n), 1)
				y := k.Launch(perElement(x, mlxc.TemplateArg{Name: "T", Value: d}), x, mlxc.Scalar[float32](3))[0]
				results = append(results, fmt.Sprint(mlxtest.Floats(t, y.AsType(mlxc.Float32))))
			}
		}
	}
	known := map[string]bool{}
	var workers sync.WaitGroup
	start := time.Now()
	for _, p := range ahead.Collect(launch) {
		if known[p.Signature] {
			continue
		}
		known[p.Signature] = true
		workers.Go(func() {
			if err := p.Compile(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	workers.Wait()
	elapsed, compiled := time.Since(start), nvrtc.Compilations()
	launch()
	require.Equal(t, compiled, nvrtc.Compilations(), "the launches compile nothing")
	for i, text := range results {
		n := []int{7, 64, 85}[i%3]
		require.Equal(t, fmt.Sprint(mlxtest.Floats(t, mlxc.Arange(mlxc.Float32, 0, float64(n), 1).MulScalar(3))), text)
	}
	fmt.Printf("%s%d programs, %d compiled, results %s in %v\n", cudaChild, len(known), compiled,
		shader.Digest(results...), elapsed)
}

package mlxc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestDeviceInfo(t *testing.T) {
	n, err := mlxc.CPU.Count()
	require.NoError(t, err)
	require.Equal(t, 1, n)
	info, err := mlxc.CPU.Info(0)
	require.NoError(t, err)
	require.NotEmpty(t, info["device_name"])
	architectures := map[string][]string{"amd64": {"x86_64"}, "arm64": {"arm64", "aarch64"}}
	require.Contains(t, architectures[runtime.GOARCH], info["architecture"])
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil && runtime.GOARCH == "amd64" {
		require.Contains(t, string(text), strings.TrimSpace(info["device_name"].(string)))
	}
	_, err = mlxc.CPU.Info(1)
	require.ErrorContains(t, err, "there is no cpu 1")
	_, err = mlxc.CPU.Info(-1)
	require.ErrorContains(t, err, "there is no cpu -1")
	_, err = mlxc.Device(7).Info(0)
	require.ErrorContains(t, err, "there is no device Device(7)")

	n, err = mlxc.GPU.Count()
	require.NoError(t, err)
	require.Equal(t, mlxc.GPU.Available(), n > 0)
	for i := range n {
		info, err := mlxc.GPU.Info(i)
		require.NoError(t, err)
		require.NotEmpty(t, info["device_name"])
	}
	_, err = mlxc.GPU.Info(n)
	require.ErrorContains(t, err, fmt.Sprintf("has %d", n))
}

func TestStreams(t *testing.T) {
	s, err := mlxc.NewStream(mlxc.CPU)
	require.NoError(t, err)
	require.Equal(t, mlxc.CPU, s.Device())
	name := fmt.Sprintf("Stream(Device(cpu, 0), %d)", s.Index())
	require.Equal(t, name, s.String())
	names, err := mlxc.Streams()
	require.NoError(t, err)
	require.Contains(t, names, name)
	other, err := mlxc.NewStream(mlxc.CPU)
	require.NoError(t, err)
	require.NotEqual(t, s.Index(), other.Index())
	var none *mlxc.Stream
	mlxc.WithStream(s, func() {
		require.Equal(t, name, none.String())
		require.Equal(t, s.Index(), none.Index())
	})
	require.NotEqual(t, name, none.String())
	require.Equal(t, mlxc.CurrentDevice(), none.Device())
}

func TestSynchronize(t *testing.T) {
	s, err := mlxc.NewStream(mlxc.CPU)
	require.NoError(t, err)
	var y *mlxc.Array
	mlxc.WithStream(s, func() {
		x := mlxc.Full(mlxc.Float32, mlxc.Scalar[float32](0.01), 400, 400)
		y = x
		for range 20 {
			y = y.MatMul(x)
		}
		y = y.Sum()
	})
	require.NoError(t, mlxc.AsyncEval(y))
	require.NoError(t, s.Synchronize())
	if mlxc.CUDAAvailable() { // the events of its CPU streams come a moment later
		require.NoError(t, mlxc.Eval(y))
	}
	require.True(t, y.Available())
	require.NoError(t, mlxc.Synchronize())
	mlxc.WithStream(s, func() { require.NoError(t, mlxc.Synchronize()) })
	// Inside a transform, and on a stream on which nothing runs.
	_, _, err = mlxc.VJP(func(a arrays) arrays {
		require.NoError(t, s.Synchronize())
		mlxc.WithPlaceholderGPU(func() { require.NoError(t, mlxc.Synchronize()) })
		return a
	}, arrays{y}, arrays{y})
	require.NoError(t, err)
}

func TestMemoryLimits(t *testing.T) {
	testdevice.CPUOnly(t, "a GPU queues all operations before it finishes the first, and keeps their inputs until then")
	before := mlxc.MemoryLimit()
	require.Positive(t, before)
	previous, err := mlxc.SetMemoryLimit(1 << 30)
	require.NoError(t, err)
	require.Equal(t, before, previous)
	require.Equal(t, 1<<30, mlxc.MemoryLimit())
	// It is no hard bound.
	_, err = mlxc.SetMemoryLimit(1 << 10)
	require.NoError(t, err)
	require.Equal(t, []float32{1 << 20}, floats(t, mlxc.Ones(mlxc.Float32, 1<<20).Sum()))
	previous, err = mlxc.SetMemoryLimit(before)
	require.NoError(t, err)
	require.Equal(t, 1<<10, previous)

	// Freed memory is kept up to the limit.
	fill := func() {
		x := mlxc.Ones(mlxc.Float32, 1<<20)
		require.NoError(t, mlxc.Eval(x))
		x.Free()
	}
	mlxc.ClearCache()
	kept, err := mlxc.SetCacheLimit(16 << 20)
	require.NoError(t, err)
	fill()
	require.GreaterOrEqual(t, mlxc.CacheMemory(), 4<<20)
	previous, err = mlxc.SetCacheLimit(0)
	require.NoError(t, err)
	require.Equal(t, 16<<20, previous)
	mlxc.ClearCache()
	fill()
	require.Zero(t, mlxc.CacheMemory())
	previous, err = mlxc.SetCacheLimit(kept)
	require.NoError(t, err)
	require.Zero(t, previous)
	wired, err := mlxc.SetWiredLimit(0)
	require.NoError(t, err)
	require.Zero(t, wired)

	for _, set := range []func(int) (int, error){mlxc.SetMemoryLimit, mlxc.SetCacheLimit, mlxc.SetWiredLimit} {
		_, err := set(-1)
		require.ErrorContains(t, err, "the limit -1 is negative")
	}
}

func TestGPUBackends(t *testing.T) {
	require.Equal(t, mlxc.GPU.Available(), mlxc.MetalAvailable() || mlxc.CUDAAvailable())
	require.False(t, mlxc.MetalAvailable() && mlxc.CUDAAvailable())
	path, err := mlxc.MetalLibrary()
	if mlxc.MetalAvailable() {
		require.NoError(t, err)
		require.FileExists(t, path)
		return
	}
	for name, err := range map[string]error{
		"MetalLibrary":      err,
		"SetMetalLibrary":   mlxc.SetMetalLibrary(path),
		"StartMetalCapture": mlxc.StartMetalCapture(filepath.Join(t.TempDir(), "x.gputrace")),
		"StopMetalCapture":  mlxc.StopMetalCapture(),
	} {
		require.ErrorContains(t, err, name+": this machine or this build of MLX has no Metal")
	}
}

func ExampleDevice_Info() {
	info, err := mlxc.CPU.Info(0)
	_, named := info["device_name"].(string)
	fmt.Println(named, err)
	// Output: true <nil>
}

func ExampleStream_Synchronize() {
	s, err := mlxc.NewStream(mlxc.CPU)
	if err != nil {
		fmt.Println(err)
		return
	}
	var y *mlxc.Array
	mlxc.WithStream(s, func() { y = mlxc.Ones(mlxc.Float32, 3).Sum() })
	err = mlxc.AsyncEval(y)
	fmt.Println(err, s.Synchronize(), y)
	// Output: <nil> <nil> array(3, dtype=float32)
}

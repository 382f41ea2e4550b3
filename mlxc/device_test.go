package mlxc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
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
	require.ErrorContains(t, err, fmt.Sprintf("count is %d", n))
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

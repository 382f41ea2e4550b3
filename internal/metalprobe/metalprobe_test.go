package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// The test binary also runs as the process of one check.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == checkVerb {
		switch os.Args[2] {
		case "crashes":
			panic("on purpose")
		case "hangs":
			time.Sleep(time.Hour)
		}
		main()
		return
	}
	testdevice.Main(m)
}

// The Metal source that MLX generates for each kernel computes the expected values on the host executor.
func TestKernelsOnHost(t *testing.T) {
	if err := customkernels.CheckExecutor(); errors.Is(err, customkernels.ErrNoCompiler) {
		skip.Missing(t, skip.CXX, err)
	}
	for _, k := range kernels() {
		t.Run(k.source.Name, func(t *testing.T) {
			require.GreaterOrEqual(t, len(k.input), 8)
			require.NoError(t, k.check(applyHost))
			wrong := k
			wrong.want = append([]float32{k.want[0] + 1}, k.want[1:]...)
			require.ErrorContains(t, wrong.check(applyHost), "element 0 is ")
			wrong.want = k.want[:1]
			require.ErrorContains(t, wrong.check(applyHost), "elements; there must be 1")
		})
	}
}

// applyHost runs the Metal source that MLX generates on the host executor.
func applyHost(k kernel, x *mlxc.Array) (*mlxc.Array, error) {
	nodes, err := mlxc.Trace(func(args []*mlxc.Array) []*mlxc.Array {
		var y *mlxc.Array
		var err error
		mlxc.WithPlaceholderGPU(func() { y, err = applyMetal(k, args[0]) })
		if err != nil {
			y = mlxc.InvalidArray(err)
		}
		return []*mlxc.Array{y}
	}, []*mlxc.Array{x})
	if err != nil {
		return nil, err
	}
	library, err := customkernels.Load(fstest.MapFS{"probe.metal": {Data: []byte(nodes[0].Strings[1])}}, "probe.metal")
	if err != nil {
		return nil, err
	}
	host, err := library.Kernel("")
	if err != nil {
		return nil, err
	}
	l := k.launch()
	return host.Launch(customkernels.Launch{Grid: l.Grid, Threadgroup: l.Threadgroup, Outputs: l.Outputs}, x)[0], nil
}

// On a machine with Metal every check passes.
func TestKernelsOnMetal(t *testing.T) {
	if !mlxc.MetalAvailable() {
		skip.Missing(t, skip.Metal, "MLX finds no Metal device")
	}
	for _, name := range checkNames()[1:] {
		require.Equal(t, "ok", inProcess(limit)(name), name)
	}
}

func TestTable(t *testing.T) {
	var table strings.Builder
	require.NoError(t, writeTable(&table, []string{"a", "b"}, func(name string) string {
		return map[string]string{"a": "ok", "b": "failed: x|y\nmore"}[name]
	}))
	require.Equal(t, "| check | verdict |\n|---|---|\n| a | ok |\n| b | failed: x\\|y<br>more |\n", table.String())
	require.Error(t, writeTable(closed{}, nil, nil))
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestProcess(t *testing.T) {
	crash := inProcess(limit)("crashes")
	require.Contains(t, crash, "process failed: exit status 2\npanic: on purpose")
	require.LessOrEqual(t, strings.Count(crash, "\n"), 5)
	require.Equal(t, "no end within 500ms", inProcess(500*time.Millisecond)("hangs"))
	if !mlxc.MetalAvailable() {
		require.Equal(t, "MLX finds no Metal device", inProcess(limit)("add_one"))
		return
	}
	require.Equal(t, "there is no check subtract", verdict("subtract"))
	require.Contains(t, verdict(deviceCheck), "device_name: ")
}

func TestDevice(t *testing.T) {
	info := map[string]any{"memory_size": 7, "architecture": "applegpu"}
	require.Equal(t, "architecture: applegpu\nmemory_size: 7", device(info, nil))
	require.Equal(t, "failed: gone", device(nil, errors.New("gone")))
}

// Package testdevice chooses the device of tests. Tests run on the CPU on every machine: most of them
// speak of the host executor, of float64, or of results as exact as a CPU's. Those that hold on a GPU too run
// there once more where there is one, in a process of their own. Whether gradients are right on a GPU is what
// mlxgrad parity shows. Benchmarks run on MLX's default device.
package testdevice

import (
	"flag"
	"os"
	"os/exec"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// variable is set in processes whose tests run on the GPU.
const variable = "MLXGRAD_TESTS_ON_GPU"

// Main is a package's TestMain.
func Main(m *testing.M) {
	flag.Parse()
	benchmarks := flag.Lookup("test.bench").Value.String() != ""
	if os.Getenv(variable) == "" && !benchmarks && mlxc.GPU.Available() {
		if err := mlxc.SetDefaultDevice(mlxc.CPU); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// RunOnGPU runs the tests of the calling package that flags choose, such as -test.run=^TestThis$, on the GPU.
func RunOnGPU(t *testing.T, flags ...string) {
	t.Helper()
	switch {
	case os.Getenv(variable) != "":
		skip.Platform(t, "this is the process that runs on the GPU")
	case !mlxc.GPU.Available():
		skip.Missing(t, skip.GPU, "MLX finds none")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if long := flag.Lookup("long"); long != nil {
		flags = append(flags, "-long="+long.Value.String())
	}
	cmd := exec.CommandContext(t.Context(), program, flags...)
	cmd.Env = append(os.Environ(), variable+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v of\n%v\n%s", err, cmd, out)
	}
}

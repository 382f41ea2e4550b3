package testdevice

import (
	"bytes"
	"flag"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestMain(m *testing.M) { Main(m) }

var _ = AlsoOnGPU(TestRegistered)

func TestRegistered(t *testing.T) {
	require.Equal(t, 3, mlxc.Ones(mlxc.Float32, 3).Size())
	t.Log("parallel", flag.Lookup("test.parallel").Value)
}

var _ = AlsoOnGPU(TestCPUOnly)

func TestCPUOnly(t *testing.T) {
	CPUOnly(t, "it is for the CPU")
	require.Empty(t, os.Getenv(variable))
}

// A registered test that does not run is an error. The check is independent of the device.
func TestEveryRegisteredTestRuns(t *testing.T) {
	names, err := chosen(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"TestRegistered", "TestCPUOnly"}, names)
	parallel := flag.Lookup("test.parallel").Value
	before := parallel.String()
	require.NoError(t, parallel.Set("77"))
	var out bytes.Buffer
	summary, err := run(t.Context(), names, &out)
	require.NoError(t, parallel.Set(before))
	require.NoError(t, err, out.String())
	require.Contains(t, out.String(), "parallel 77", "the tests on the GPU have the -parallel of this process")
	require.Contains(t, out.String(), "--- SKIP: TestCPUOnly")
	require.NotContains(t, out.String(), "\x16")
	require.Equal(t, "2 tests and subtests ran on the GPU; 1 of them were skipped", summary)

	_, err = run(t.Context(), append(names, "TestThatWasRenamed"), io.Discard)
	require.EqualError(t, err, `1 of 3 registered tests did not run on the GPU: ["TestThatWasRenamed"]`)

	all = true
	defer func() { all = false }()
	names, err = chosen(t.Context())
	require.NoError(t, err)
	want := []string{"TestRegistered", "TestCPUOnly", "TestEveryRegisteredTestRuns", "TestFlag"}
	require.ElementsMatch(t, want, names)
}

func TestFlag(t *testing.T) {
	out, err := command(t.Context(), "-gpu", "-test.list=.").Output()
	require.NoError(t, err)
	require.Equal(t, "TestRegistered\nTestCPUOnly\n", string(out))
	text, err := command(t.Context(), "-gpu", "-test.run=^TestGone$").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(text), "no test that matches -test.run is registered for a GPU")
	text, err = command(t.Context(), "-gpu").CombinedOutput()
	if mlxc.GPU.Available() {
		require.NoError(t, err, "%s", text)
	} else {
		require.Error(t, err)
		require.Contains(t, string(text), "MLX finds no GPU for the 2 registered tests")
	}
}

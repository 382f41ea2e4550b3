package customkernels

import (
	"fmt"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/launchspec"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func ExampleKernel_Arguments() {
	source := `
// launch: grid=4 threadgroup=4 y=out:float32[4] x=float32[4]:1,2,3,4 n=uint32:10
kernel void f(device const float* x [[buffer(0)]], constant uint& n [[buffer(1)]],
              device float* y [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  y[i] = x[i] * float(n);
}
`
	lib, err := Load(fstest.MapFS{"f.metal": {Data: []byte(source)}}, "f.metal")
	if err != nil {
		fmt.Println(err)
		return
	}
	k, err := lib.Kernel("")
	if err != nil {
		fmt.Println(err)
		return
	}
	specs, err := launchspec.Parse([]byte(source))
	if err != nil {
		fmt.Println(err)
		return
	}
	launch, inputs, err := k.Arguments(specs[0], 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(mlxc.ToSlice[float32](k.Launch(launch, inputs...)[0]))
	// Output: [10 20 30 40] <nil>
}

// oneLaunch parses a description that has exactly one launch.
func oneLaunch(t *testing.T, text string) launchspec.Spec {
	t.Helper()
	specs, err := launchspec.Parse([]byte("// launch: " + text))
	require.NoError(t, err)
	require.Len(t, specs, 1)
	return specs[0]
}

// Arguments returns inputs and outputs in the kernel's order, even if the description has another.
func TestArgumentsAreInTheOrderOfTheKernel(t *testing.T) {
	lib, err := Load(os.DirFS("testdata"), "scale.metal")
	require.NoError(t, err)
	k, err := lib.Kernel("scale")
	require.NoError(t, err)
	l, inputs, err := k.Arguments(oneLaunch(t, "scale grid=8 threadgroup=8 T=float32 y=out:float32[8] factor=float32:2 x=float32[8]:iota"), 1)
	require.NoError(t, err)
	require.Equal(t, []float32{0, 2, 4, 6, 8, 10, 12, 14}, mlxtest.Floats(t, k.Launch(l, inputs...)[0]))
}

// A description also sets the sizes of threadgroup arguments and the values of function constants.
func TestOptionsOfDescriptions(t *testing.T) {
	lib, err := Load(os.DirFS("testdata"), "pipeline.metal")
	require.NoError(t, err)
	s := oneLaunch(t, "grid=40 threadgroup=32 x=float32[40]:iota y=out:float32[2] shared=threadgroup:32 factor=0.5 negate=true")
	k, err := lib.Kernel("group_sum", s.Options()...)
	require.NoError(t, err)
	l, inputs, err := k.Arguments(s, 1)
	require.NoError(t, err)
	require.Empty(t, l.Template)
	require.Equal(t, []float32{-248, -142}, mlxtest.Floats(t, k.Launch(l, inputs...)[0]))

	for text, part := range map[string]string{
		"factor=0.5 negate=true":                                  "the threadgroup argument shared has no size: give it one with ThreadgroupSize, or as shared=threadgroup:ELEMENTS",
		"shared=threadgroup:32 factor=0.5":                        "the function constant negate has no value: give it one with FunctionConstant, or as negate=VALUE",
		"shared=threadgroup:32 factor=float32 negate=true":        "the function constant factor cannot be float32",
		"shared=threadgroup:32 x=threadgroup:8 factor=1 negate=0": "there is no threadgroup argument x to size",
	} {
		_, err := lib.Kernel("group_sum", oneLaunch(t, "grid=40 threadgroup=32 y=out:float32[2] "+text).Options()...)
		require.ErrorContains(t, err, part)
	}
}

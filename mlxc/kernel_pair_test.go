package mlxc_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/recipe"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

const (
	waitForInputs = "griddepcontrol.wait;"
	letNextStart  = "griddepcontrol.launch_dependents;"
	wait200Micros = `mov.u64 %start, %globaltimer;
wait:
  mov.u64 %now, %globaltimer;
  sub.u64 %now, %now, %start;
  setp.lt.u64 %early, %now, 200000;
  @%early bra wait;`
	copyOf32Numbers = `.version 8.0
.target sm_90
.address_size 64
.visible .entry copy(.param .u64 in, .param .u64 out) {
  .reg .u64 %%from, %%to, %%offset, %%start, %%now;
  .reg .u32 %%thread;
  .reg .f32 %%value;
  .reg .pred %%early;
  %s
  mov.u32 %%thread, %%tid.x;
  mul.wide.u32 %%offset, %%thread, 4;
  ld.param.u64 %%from, [in];
  ld.param.u64 %%to, [out];
  add.u64 %%from, %%from, %%offset;
  add.u64 %%to, %%to, %%offset;
  ld.global.f32 %%value, [%%from];
  st.global.f32 [%%to], %%value;
  ret;
}
`
)

// launchCopy copies 32 numbers after the statements of PTX. Until then, the result has the value init, or
// is undefined if init is nil.
func launchCopy(t *testing.T, x *mlxc.Array, init *float32, startsEarly bool, before string) *mlxc.Array {
	k, err := mlxc.NewCUDAKernel(mlxc.CUDAKernelSource{
		Name: "copy", Inputs: []string{"in"}, Outputs: []string{"out"}, Body: "out[threadIdx.x] = in[threadIdx.x];",
		Code: fmt.Appendf(nil, copyOf32Numbers, before), Function: "copy", StartsEarly: startsEarly,
	})
	require.NoError(t, err)
	out, err := k.Apply(mlxc.KernelLaunch{
		Outputs: []mlxc.Output{{Shape: []int{32}, DType: mlxc.Float32}}, InitValue: init,
		Grid: [3]int{32, 1, 1}, Threadgroup: [3]int{32, 1, 1},
	}, x)
	require.NoError(t, err)
	return out[0]
}

// requireEarlyStarts skips a test on devices on which kernels do not start early.
func requireEarlyStarts(t *testing.T) {
	if mlxc.CurrentBackend() != mlxc.BackendCUDA {
		skip.Missing(t, skip.CUDA, "the current backend is not CUDA")
	}
	info, err := mlxc.GPU.Info(0)
	require.NoError(t, err)
	major := info["compute_capability_major"].(int)
	graphs, set := os.LookupEnv("MLX_USE_CUDA_GRAPHS")
	if n, _ := strconv.Atoi(graphs); major < 9 || mlxc.Version() != "0.32.4" || set && n == 0 {
		skip.Platform(t, "kernels start early from compute capability 9.0 on, in CUDA graphs of MLX 0.32.4")
	}
}

// In a recorded graph, a kernel with StartsEarly starts while the kernel runs whose results it reads. Without a wait it
// reads the values from before. Other work on the GPU may delay it, so one of many runs suffices.
func TestKernelsThatStartEarly(t *testing.T) {
	requireEarlyStarts(t)
	x := mlxc.Arange(mlxc.Float32, 1, 33, 1)
	copied, zeros := mlxtest.Floats(t, x), make([]float32, 32)
	for name, c := range map[string]struct {
		startsEarly bool
		before      string
		want        []float32
	}{
		"early, waits":             {true, waitForInputs, copied},
		"early, does not wait":     {true, "", zeros},
		"not early, waits":         {false, waitForInputs, copied},
		"not early, does not wait": {false, "", copied},
	} {
		both := func(a arrays) arrays {
			first := launchCopy(t, a[0], new(float32), false, letNextStart+wait200Micros)
			return arrays{first, launchCopy(t, first, nil, c.startsEarly, c.before)}
		}
		id := recipe.ID([2]string{t.Name(), name})
		seen := map[string]bool{}
		for range 20 {
			out := recipe.Use[*mlxc.Array]()(id, arrays{x}, 2, both, nil)
			third := out[0].AddScalar(0)
			seen[fmt.Sprint(mlxtest.Floats(t, out[1]))] = true
			require.Equal(t, copied, mlxtest.Floats(t, third), "a third kernel reads the results of the first")
		}
		require.Contains(t, seen, fmt.Sprint(c.want), name)
		if c.before != "" || !c.startsEarly {
			require.Len(t, seen, 1, name)
		}
		require.Equal(t, copied, mlxtest.Floats(t, both(arrays{x})[1]), "%s, outside a recorded graph", name)
	}
}

// Another operation does not take the memory that a kernel with StartsEarly still reads.
func TestMemoryOfKernelsThatStartEarly(t *testing.T) {
	requireEarlyStarts(t)
	x := mlxc.Arange(mlxc.Float32, 1, 33, 1)
	id := recipe.ID(t.Name())
	for range 20 {
		out := recipe.Use[*mlxc.Array]()(id, arrays{x}, 2, func(a arrays) arrays {
			first := launchCopy(t, a[0], nil, false, "")
			return arrays{first, launchCopy(t, first, nil, true, waitForInputs+wait200Micros)}
		}, nil)
		negated := out[0].Neg()
		out[0].Free()
		require.NoError(t, mlxc.Eval(negated, out[1]))
		require.Equal(t, mlxtest.Floats(t, x), mlxtest.Floats(t, out[1]))
		require.Equal(t, mlxtest.Floats(t, x.Neg()), mlxtest.Floats(t, negated))
	}
}

// An exported function contains the elements of a captured launch of compiled code, which a file cannot hold.
func TestExportOfACapturedLaunch(t *testing.T) {
	requireEarlyStarts(t)
	x := mlxc.Arange(mlxc.Float32, 1, 33, 1)
	captured := launchCopy(t, x, nil, false, "")
	file := filepath.Join(t.TempDir(), "f.mlxfn")
	require.NoError(t, mlxc.Export(file, func(a arrays) arrays { return arrays{a[0].Add(captured)} }, x))
	imported, err := mlxc.Import(file)
	require.NoError(t, err)
	defer imported.Close()
	out, err := imported.Call(x)
	require.NoError(t, err)
	require.Equal(t, mlxtest.Floats(t, x.Add(x)), mlxtest.Floats(t, out[0]))
}

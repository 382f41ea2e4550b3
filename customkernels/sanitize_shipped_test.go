package customkernels

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// requireClean runs a launch under many schedules, which must find nothing at all.
func requireClean(t *testing.T, k *Kernel, l Launch, schedules int, inputs ...*mlxc.Array) *SanitizeReport {
	t.Helper()
	r, err := k.Sanitize(t.Context(), l, SanitizeConfig{Schedules: schedules, Seed: 7}, inputs...)
	require.NoError(t, err)
	require.Empty(t, r.Findings)
	require.True(t, r.SameBits, r.Difference)
	require.Equal(t, schedules, r.Schedules)
	return r
}

// The kernels of RMSNorm's gradient as a GPU runs them, 256 threads to a row, on shapes that
// fill neither rows nor vectors nor threadgroups.
func TestShippedRMSNormIsClean(t *testing.T) {
	lib, err := Load(Shaders(), "rms_norm_backward.metal")
	require.NoError(t, err)
	load := func(name string) *Kernel {
		k, err := lib.Kernel(name)
		require.NoError(t, err)
		return k
	}
	inverse, dx, dw := load("rms_norm_compute_rms_inv"), load("rms_norm_backward_dx"), load("rms_norm_backward_dw")
	const c, threads = 4, 256
	for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16} {
		for _, shape := range [][2]int{{1, 8}, {3, 33}, {5, 300}, {7, 1030}} {
			rows, width := shape[0], shape[1]
			t.Run(fmt.Sprintf("%v/%dx%d", d, rows, width), func(t *testing.T) {
				x := mlxc.Arange(mlxc.Float32, 0, float64(rows*width), 1).MulScalar(0.01).Sin().Reshape(rows, width).AsType(d)
				dy := mlxc.Arange(mlxc.Float32, 0, float64(rows*width), 1).MulScalar(0.02).Cos().Reshape(rows, width).AsType(d)
				w := mlxc.Arange(mlxc.Float32, 0, float64(width), 1).MulScalar(0.03).Cos().AsType(d)
				n, m := mlxc.Scalar(uint32(rows)), mlxc.Scalar(uint32(width))
				template := []mlxc.TemplateArg{{Name: "T", Value: d}, {Name: "C", Value: c}}
				const schedules = 50

				r := requireClean(t, inverse, Launch{
					Grid: [3]int{threads * max(rows-1, 1)}, Threadgroup: [3]int{threads}, Template: template,
					Outputs: []mlxc.Output{{Shape: []int{rows}, DType: mlxc.Float32}},
				}, schedules, x, n, m, mlxc.Scalar[float32](1e-5))
				inv := r.Outputs[0]
				if inv.Size() < 8 {
					inv = mlxc.FromSlice(append(floats(t, inv), make([]float32, 8-inv.Size())...))
				}

				r = requireClean(t, dx, Launch{
					Grid: [3]int{threads * rows}, Threadgroup: [3]int{threads},
					Template: append(template[:2:2], mlxc.TemplateArg{Name: "HAS_WEIGHT", Value: true}),
					Outputs:  []mlxc.Output{{Shape: []int{rows, width}, DType: d}},
				}, schedules, x, w, dy, inv, n, m)
				for _, b := range r.Traffic.Buffers {
					if b.Name == "dx" {
						require.EqualValues(t, rows*width*d.Size(), b.UniqueWritten)
						require.Equal(t, b.UniqueWritten, b.Written)
					}
				}

				groups := (width + 32*c - 1) / (32 * c)
				requireClean(t, dw, Launch{
					Grid: [3]int{threads * groups}, Threadgroup: [3]int{threads}, Template: template,
					Outputs: []mlxc.Output{{Shape: []int{width}, DType: d}},
				}, schedules, x, dy, inv, n, m)
			})
		}
	}
}

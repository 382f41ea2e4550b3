package customkernels

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// The thin path: two lanes of different simdgroups at one element.
func TestSanitizeRace(t *testing.T) {
	k := inline(t, `
kernel void f(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  y[i] = tile[63 - i];
}
`)
	x := mlxc.Arange(mlxc.Float32, 0, 64, 1)
	r, err := k.Sanitize(t.Context(), Launch{
		Grid: [3]int{64}, Threadgroup: [3]int{64}, Outputs: []mlxc.Output{{Shape: []int{64}, DType: mlxc.Float32}},
	}, SanitizeConfig{}, x)
	require.NoError(t, err)
	for _, f := range r.Findings {
		t.Log(f)
	}
	t.Logf("%+v", r.Traffic)
}

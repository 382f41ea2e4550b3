package ops

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// given returns the arrays of in that are not nil, without starts, and a function that replaces them.
func (in ssmInputs) given() (list arrays, with func(arrays) ssmInputs) {
	var at []int
	for i, v := range in.list()[:7] {
		if v != nil {
			list, at = append(list, v), append(at, i)
		}
	}
	return list, func(a arrays) ssmInputs {
		all := in.list()
		for i, v := range a {
			all[at[i]] = v
		}
		return ssmInputsFrom(all)
	}
}

func (in ssmInputs) scan() []*mlxc.Array {
	y, state := SSMScan(in.x, in.dt, in.a, in.b, in.c, SSMScanConfig{D: in.d, InitialState: in.state, Starts: in.starts})
	return []*mlxc.Array{y, state}
}

// The kernels and the composition of MLX's operations agree in values and gradients.
func TestSSMScanAgreesWithComposition(t *testing.T) {
	for _, c := range ssmShapes(RaggedCases) {
		t.Run(c.name, func(t *testing.T) {
			in := c.inputs(mlxc.Float32)
			primals, with := in.given()
			cotangents := arrays{normal(11, mlxc.Float32, in.x.Shape()...), normal(12, mlxc.Float32, in.stateShape(in.sequences())...)}
			results := map[bool]arrays{}
			for _, composed := range []bool{false, true} {
				values, grads, err := mlxc.VJP(func(a []*mlxc.Array) []*mlxc.Array {
					if composed {
						return with(a).composed()
					}
					return with(a).scan()
				}, primals, cotangents)
				require.NoError(t, err)
				results[composed] = append(values, grads...)
			}
			for i, want := range results[true] {
				requireClose(t, fmt.Sprint("result ", i), want, results[false][i], 2e-5)
			}
		})
	}
}

// requireClose fails if an element of got differs from want by more than tolerance times the largest element.
func requireClose(t *testing.T, name string, want, got *mlxc.Array, tolerance float64) {
	t.Helper()
	require.Equal(t, want.Shape(), got.Shape(), name)
	w, g := mlxtest.Floats(t, want), mlxtest.Floats(t, got)
	largest := float32(1e-30)
	for _, v := range w {
		largest = max(largest, max(v, -v))
	}
	for i := range w {
		require.InDelta(t, w[i], g[i], tolerance*float64(largest), "%s, element %d", name, i)
	}
}

package compare

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// composedRMSNorm is RMSNorm in MLX's basic operations.
func composedRMSNorm(in []*mlxc.Array) []*mlxc.Array {
	x, w := in[0], in[1]
	return []*mlxc.Array{x.Mul(x.Square().MeanKeepDims(-1).AddScalar(1e-5).Rsqrt()).Mul(w)}
}

// A composition of MLX operations alone is a truth: nearly the oracle's, and as strict.
func TestRunByACompositionAlone(t *testing.T) {
	exact := rmsNormCase(37, 33)
	composed := exact
	composed.Reference = Reference{Composed: composedRMSNorm}
	draws, err := makeDraws("rmsnorm", exact, mlxc.Float16)
	require.NoError(t, err)
	want, err := exact.truth(draws)
	require.NoError(t, err)
	got, err := composed.truth(draws)
	require.NoError(t, err)
	for i := range want {
		for j, v := range want[i] {
			require.InDelta(t, v, got[i][j], 1e-12*(1+math.Abs(v)), "in float64")
		}
	}

	onlyComposed := func(ours mlxc.Func) []Op {
		return altered(func(c *Case) { c.MLX, c.Reference, c.Ours = nil, Reference{Composed: composedRMSNorm}, ours })
	}
	requireParity(t, onlyComposed(exact.Ours), Options{})
	wrong := onlyComposed(mlxtest.Scaled(exact.Ours, 1.02))
	require.Zero(t, Run(t.Context(), wrong, Options{}).Passed)

	refusing := onlyComposed(exact.Ours)
	refusing[0].Cases[0].Composed = func([]*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{mlxc.InvalidArray(errors.New("not in float64"))}
	}
	for _, row := range Run(t.Context(), refusing, Options{}).Rows {
		require.False(t, row.Pass)
		require.Regexp(t, "^the oracle failed: .*not in float64", row.Message)
	}
}

// Without another implementation the allowed errors grow with the condition of the problem, and no further.
func TestRoundingErrorsAreAllowed(t *testing.T) {
	// The variance of far values loses digits in float32: 100² / 1.
	far := Case{
		Name:    "far",
		Inputs:  []Input{{Name: "x", Shape: []int{64, 32}, Values: Far, Kind: Constant}},
		Outputs: []Output{{Name: "y", Shape: []int{64, 32}}},
		Reference: Reference{Forward: func(in []oracle.Tensor) []oracle.Tensor {
			return []oracle.Tensor{oracle.LayerNorm(in[0], nil, nil, 1e-5)}
		}},
	}
	largest := func(c Case) float64 {
		draws, err := makeDraws("far", c, mlxc.Float32)
		require.NoError(t, err)
		truth, err := c.truth(draws)
		require.NoError(t, err)
		peers := peersOf(c, draws, mlxc.Float32, truth)
		require.Equal(t, "no MLX gradient to compare with; ours is judged by the oracle with float32 rounding errors", peers[0].message)
		return peers[0].reference.Max / 0x1p-23
	}
	require.InDelta(t, 10000, largest(far), 9000)
	far.Inputs[0].Values = nil
	require.InDelta(t, 200, largest(far), 150)
}

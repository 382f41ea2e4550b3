package compare

import (
	"context"
	"math"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestParityRMSNorm(t *testing.T) {
	r := requireParity(t, []Op{rmsNorm()}, Options{})
	require.GreaterOrEqual(t, len(r.Cases), 60)

	// What the suite must cover, whatever else it does.
	outputs, dtypes, layouts := map[string]bool{}, map[string]bool{}, map[string]bool{}
	ranks, rows, widths := map[int]bool{}, map[int]bool{}, map[int]bool{}
	for _, c := range r.Cases {
		outputs[c.Output], dtypes[c.DType], layouts[c.Layout] = true, true, true
		rank := len(c.Shape)
		ranks[rank], widths[c.Shape[rank-1]] = true, true
		if rank == 2 {
			rows[c.Shape[0]] = true
		}
		require.Positive(t, c.Launches, c.Name)
	}
	requireKeys(t, outputs, "dx", "dw")
	requireKeys(t, dtypes, "float32", "float16", "bfloat16")
	requireKeys(t, layouts, "contiguous", "transposed", "strided", "sliced", "offset", "reversed", "broadcast")
	requireKeys(t, ranks, 1, 2, 3, 4)
	requireKeys(t, rows, 1, 3, 37, 199)
	requireKeys(t, widths, 1, 7, 31, 32, 33, 127, 128, 129, 1024, 4096, 4099)
}

func TestRMSNormIsReproducible(t *testing.T) {
	requireParity(t, []Op{rmsNorm()}, Options{
		Repeat: 20,
		Case:   regexp.MustCompile(`^(1x1|37x33|199x127|199x1024|3x4099|37x128, no weight|2x3x4x31|37x33, x transposed)$`),
	})
}

// requireParity runs ops, and fails with the message of every case that failed.
func requireParity(t *testing.T, ops []Op, opt Options) *report.Report {
	t.Helper()
	r := Run(context.Background(), ops, opt)
	for _, c := range r.Cases {
		if !c.Pass {
			t.Errorf("%s %s %s %s: %s", c.Op, c.Name, c.DType, c.Output, c.Message)
		}
	}
	for _, s := range r.Suites {
		t.Logf("%s %s: ours is %.4f times as far from the truth as MLX", s.Op, s.DType, float64(s.Ratio))
		if !s.Pass {
			t.Errorf("%s %s: MLX is the more accurate on average", s.Op, s.DType)
		}
	}
	require.True(t, r.Succeeded())
	return r
}

func requireKeys[K comparable](t *testing.T, got map[K]bool, want ...K) {
	t.Helper()
	for _, k := range want {
		require.True(t, got[k], "nothing covers %v", k)
	}
}

// An error that the oracle and a kernel share would not show in a comparison of the two. So each
// oracle's gradient is held against its own forward function, at every case's inputs.
func TestOraclesAreGradients(t *testing.T) {
	for _, op := range Ops() {
		for _, c := range op.Cases {
			data, err := drawOperands(rngFor(op.Name, c.Name), c, mlxc.Float32)
			require.NoError(t, err)
			in := tensors(data.inputs)
			if !allFinite(in) {
				continue // NaN and infinity have no differences.
			}
			fixed := map[int]bool{}
			for i := range c.Inputs {
				fixed[i] = c.Inputs[i].Kind != Real
			}
			err = oracle.CheckDirectional(c.Forward, c.Gradient, in, fixed, rngFor(op.Name, c.Name))
			require.NoError(t, err, "%s %s", op.Name, c.Name)
		}
	}
}

func allFinite(ts []oracle.Tensor) bool {
	for _, t := range ts {
		for _, v := range t.Data {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return false
			}
		}
	}
	return true
}

// Names select cases and seed their data.
func TestCaseNamesDiffer(t *testing.T) {
	for _, op := range Ops() {
		seen := map[string]bool{}
		for _, c := range op.Cases {
			require.False(t, seen[c.Name], "%s %s", op.Name, c.Name)
			seen[c.Name] = true
			require.LessOrEqual(t, len(c.Name), 42, "%q makes the table wider than 120 columns", c.Name)
		}
	}
}

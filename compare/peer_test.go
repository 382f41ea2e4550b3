package compare

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

// If MLX must not run on the current device, its errors on the CPU are the reference.
func TestPeersFromTheCPU(t *testing.T) {
	c := rmsNormCase(3, 1030)
	draws, err := makeDraws("rmsnorm", c, mlxc.Float32)
	require.NoError(t, err)
	truth, err := c.truth(draws)
	require.NoError(t, err)
	valid := measurePeers(c.MLX, c, draws, mlxc.Float32, truth)
	for i, p := range peersOnCPU("it would read out of bounds", c, draws, mlxc.Float32, truth) {
		require.Equal(t, report.MLXUnsafe, p.verdict)
		require.True(t, p.substituted)
		require.True(t, math.IsNaN(p.errors.Max))
		require.Positive(t, p.reference.Max)
		require.Equal(t, valid[i].errors, p.reference)
		require.Equal(t, "it would read out of bounds; ours is judged by MLX's gradient on the CPU", p.message)
	}

	c.MLX = nil
	for _, p := range peersOnCPU("it would read out of bounds", c, draws, mlxc.Float32, truth) {
		require.False(t, p.substituted)
		require.Equal(t, "it would read out of bounds", p.message)
	}
}

func TestRunSurvivesFaultsOfMLX(t *testing.T) {
	tests := map[string]struct {
		mlx     func(mlx mlxc.Func) mlxc.Func
		message string
	}{
		"invalid": {
			func(mlxc.Func) mlxc.Func {
				return func([]*mlxc.Array) []*mlxc.Array {
					return []*mlxc.Array{mlxc.InvalidArray(errors.New("not implemented"))}
				}
			},
			"not implemented",
		},
		"not a number": {
			func(mlx mlxc.Func) mlxc.Func { return mlxtest.Scaled(mlx, math.Inf(1)) },
			"NaN or infinity out of place in",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := Run(context.Background(), altered(func(c *Case) { c.MLX = test.mlx(c.MLX) }), Options{})
			require.Len(t, r.Rows, 6)
			for _, c := range r.Rows {
				require.True(t, c.Pass, c.Message)
				require.Contains(t, c.MLXMessage, test.message)
				require.True(t, math.IsNaN(float64(c.Ratio)))
			}
			for _, s := range r.Suites {
				require.False(t, s.Judged)
			}

			// An error of MLX does not excuse the same error of ours.
			wrong := altered(func(c *Case) { c.MLX, c.Ours = test.mlx(c.MLX), mlxtest.Scaled(c.Ours, 1.05) })
			require.Zero(t, Run(context.Background(), wrong, Options{}).Passed)
		})
	}
}

var _ = testdevice.AlsoOnGPU(TestRunSurvivesFaultsOfMLX)

// If MLX's gradient is useless in a narrow dtype only, its float32 gradient is the reference.
func TestRunJudgesByFloat32WhereMLXCancels(t *testing.T) {
	op := altered(func(c *Case) {
		mlx := c.MLX
		c.MLX = func(in []*mlxc.Array) []*mlxc.Array {
			if in[0].DType() == mlxc.Float32 {
				return mlx(in)
			}
			return mlxtest.Scaled(mlx, -1)(in)
		}
	})
	r := Run(context.Background(), op, Options{})
	require.True(t, r.Succeeded())
	for _, c := range r.Rows {
		if c.DType == "float32" {
			require.Empty(t, c.MLXMessage)
			continue
		}
		require.Equal(t, "no better than zeros; ours is judged by MLX's gradient in float32", c.MLXMessage)
		require.Greater(t, c.MLXMaxErr, c.MaxErr)
	}
}

var _ = testdevice.AlsoOnGPU(TestRunJudgesByFloat32WhereMLXCancels)

// If MLX's function for the whole operation fails, a composition of basic operations is the reference, first in the
// same dtype.
func TestRunJudgesByAComposition(t *testing.T) {
	refusing := func([]*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{mlxc.InvalidArray(errors.New("not implemented"))}
	}
	inFloat32 := func(f, otherwise mlxc.Func) mlxc.Func {
		return func(in []*mlxc.Array) []*mlxc.Array {
			if in[0].DType() == mlxc.Float32 {
				return f(in)
			}
			return otherwise(in)
		}
	}
	tests := map[string]struct {
		mlx, composed func(mlx mlxc.Func) mlxc.Func
		verdict       report.MLXVerdict
		message       string // in float16
	}{
		"refused": {
			func(mlxc.Func) mlxc.Func { return refusing },
			func(mlx mlxc.Func) mlxc.Func { return mlx },
			report.MLXRefuses,
			`not implemented \(at arrays/vjp\.go:\d+\); ours is judged by a composition of MLX's functions`,
		},
		"another function": {
			func(mlx mlxc.Func) mlxc.Func { return mlxtest.Scaled(mlx, 1.05) },
			func(mlx mlxc.Func) mlxc.Func { return mlx },
			report.MLXWrong,
			"MLX computes another function: off by more than rounding in float32; ours is judged by a composition of MLX's functions",
		},
		"another function, composition fails": {
			func(mlx mlxc.Func) mlxc.Func { return mlxtest.Scaled(mlx, 1.05) },
			func(mlx mlxc.Func) mlxc.Func { return inFloat32(mlx, refusing) },
			report.MLXWrong,
			"MLX computes another function: off by more than rounding in float32; " +
				"ours is judged by a composition of MLX's functions in float32",
		},
		"composition as far off": {
			func(mlx mlxc.Func) mlxc.Func { return mlxtest.Scaled(mlx, 1.05) },
			func(mlx mlxc.Func) mlxc.Func { return mlxtest.Scaled(mlx, 1.05) },
			report.MLXValid,
			"",
		},
		"sound": {
			func(mlx mlxc.Func) mlxc.Func { return mlx },
			func(mlxc.Func) mlxc.Func { return refusing },
			report.MLXValid,
			"",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			change := func(c *Case) { c.MLX, c.Composed = test.mlx(c.MLX), test.composed(c.MLX) }
			r := Run(context.Background(), altered(change), Options{})
			require.True(t, r.Succeeded())
			for _, c := range r.Rows {
				require.Equal(t, test.verdict, c.MLX)
				if c.DType == "float16" {
					require.Regexp(t, test.message+"$", c.MLXMessage)
				}
				require.Equal(t, test.verdict != report.MLXValid, math.IsNaN(float64(c.Ratio)))
			}
			if test.verdict == report.MLXValid {
				return
			}
			// An error as large as MLX's does not pass.
			wrong := altered(func(c *Case) { change(c); c.Ours = mlxtest.Scaled(c.Ours, 1.05) })
			require.Zero(t, Run(context.Background(), wrong, Options{}).Passed)
		})
	}
}

var _ = testdevice.AlsoOnGPU(TestRunJudgesByAComposition)

// Without an oracle gradient, finite differences of its forward function judge ours.
func TestRunWithoutAGradient(t *testing.T) {
	numeric := altered(func(c *Case) { c.Gradient = nil })
	r := Run(context.Background(), numeric, Options{})
	require.True(t, r.Succeeded())
	exact := Run(context.Background(), altered(func(*Case) {}), Options{})
	for i, c := range r.Rows {
		require.InEpsilon(t, float64(exact.Rows[i].MLXMaxErr), float64(c.MLXMaxErr), 1e-3, "the truth is the same")
	}

	wrong := altered(func(c *Case) { c.Gradient, c.Ours = nil, mlxtest.Scaled(c.Ours, 1.05) })
	require.Zero(t, Run(context.Background(), wrong, Options{}).Passed)
}

// Without a function of MLX, the oracle alone or a composition judges ours.
func TestRunWithoutMLX(t *testing.T) {
	for _, composed := range []bool{false, true} {
		change := func(c *Case) {
			if composed {
				c.Composed = c.MLX
			}
			c.MLX = nil
		}
		r := Run(context.Background(), altered(change), Options{})
		require.Len(t, r.Rows, 6)
		for _, c := range r.Rows {
			require.True(t, c.Pass, c.Message)
			require.Equal(t, report.MLXNone, c.MLX)
			require.Regexp(t, "^no MLX gradient to compare with", c.MLXMessage)
			require.Equal(t, composed, strings.HasSuffix(c.MLXMessage, "; ours is judged by a composition of MLX's functions"))
			require.True(t, math.IsNaN(float64(c.Ratio)))
		}
		wrong := altered(func(c *Case) { change(c); c.Ours = mlxtest.Scaled(c.Ours, 1.05) })
		require.Zero(t, Run(context.Background(), wrong, Options{}).Passed)
	}
}

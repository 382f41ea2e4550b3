package compare

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// rmsNormCase is RMSNorm of x[shape] with a weight.
func rmsNormCase(shape ...int) Case {
	width := shape[len(shape)-1:]
	const eps = 1e-5
	return Case{
		Name:    "rmsnorm",
		Inputs:  []Input{{Name: "x", Shape: shape}, {Name: "w", Shape: width}},
		Outputs: []Output{{Name: "y", Shape: shape, FromMLX: true}},
		Reference: Reference{
			Forward: func(in []oracle.Tensor) []oracle.Tensor {
				return []oracle.Tensor{oracle.RMSNorm(in[0], &in[1], eps)}
			},
			Gradient: func(in, cotangents []oracle.Tensor) []oracle.Tensor {
				dx, dw := oracle.RMSNormVJP(in[0], &in[1], eps, cotangents[0])
				return []oracle.Tensor{dx, dw}
			},
		},
		Ours: func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{ops.RMSNorm(in[0], in[1], eps)} },
		MLX:  func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{mlxc.RMSNorm(in[0], in[1], eps)} },
	}
}

// altered returns a small RMSNorm case after a change, as an operation.
func altered(change func(*Case)) []Op {
	c := rmsNormCase(37, 33)
	c.Name = "37x33"
	change(&c)
	return []Op{{Name: "rmsnorm", Cases: []Case{c}}}
}

// requireParity runs ops and fails with the message of every row that failed.
func requireParity(t *testing.T, ops []Op, opt Options) *report.Report {
	t.Helper()
	r := Run(context.Background(), ops, opt)
	for _, row := range r.Rows {
		require.True(t, row.Pass, "%s %s %s %s: %s", row.Op, row.Name, row.DType, row.Output, row.Message)
	}
	require.True(t, r.Succeeded())
	return r
}

func TestRunFindsFaultsOfOurs(t *testing.T) {
	calls := map[mlxc.DType]int{}
	tests := map[string]struct {
		ours    func(ours, mlx mlxc.Func) mlxc.Func
		repeat  int
		message string
	}{
		"slightly off": {
			ours:    func(ours, _ mlxc.Func) mlxc.Func { return mlxtest.Scaled(ours, 1.05) },
			message: "greatest absolute difference",
		},
		"not a number": {
			ours:    func(ours, _ mlxc.Func) mlxc.Func { return mlxtest.Scaled(ours, math.NaN()) },
			message: "NaN or infinity out of place in",
		},
		"not ours": {
			ours:    func(_, mlx mlxc.Func) mlxc.Func { return mlx },
			message: "nothing ran",
		},
		"invalid": {
			ours: func(_, _ mlxc.Func) mlxc.Func {
				return func([]*mlxc.Array) []*mlxc.Array {
					return []*mlxc.Array{mlxc.InvalidArray(errors.New("out of paper"))}
				}
			},
			message: "our gradient failed: .*out of paper",
		},
		"panics": {
			ours: func(_, _ mlxc.Func) mlxc.Func {
				return func([]*mlxc.Array) []*mlxc.Array { panic("out of ink") }
			},
			message: "our gradient failed: .*out of ink",
		},
		"too many outputs": {
			ours: func(ours, _ mlxc.Func) mlxc.Func {
				return func(in []*mlxc.Array) []*mlxc.Array { return append(ours(in), ours(in)...) }
			},
			message: "our gradient failed",
		},
		"other bits in another run": {
			ours: func(ours, _ mlxc.Func) mlxc.Func {
				return func(in []*mlxc.Array) []*mlxc.Array {
					dtype := in[0].DType()
					if calls[dtype]++; calls[dtype] == 3 { // the first of two draws in the second run
						return mlxtest.Scaled(ours, 1.05)(in)
					}
					return ours(in)
				}
			},
			repeat:  2,
			message: "run 2 of 2 differs from run 1 at element 0",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			op := altered(func(c *Case) { c.Ours = test.ours(c.Ours, c.MLX) })
			r := Run(context.Background(), op, Options{Repeat: test.repeat})
			require.Len(t, r.Rows, 6, "a row each for dx and dw in three dtypes")
			require.Zero(t, r.Passed)
			require.GreaterOrEqual(t, r.Failed, 6)
			require.False(t, r.Succeeded())
			for _, c := range r.Rows {
				require.Regexp(t, test.message, c.Message)
			}
		})
	}
}

var _ = testdevice.AlsoOnGPU(TestRunFindsFaultsOfOurs)

func TestRunRefusesCases(t *testing.T) {
	tests := map[string]struct {
		change  func(*Case)
		message string
	}{
		"no inputs":    {func(c *Case) { c.Inputs = nil }, "Inputs is empty"},
		"no reference": {func(c *Case) { c.Reference = Reference{} }, "Forward and Composed are nil"},
		"no forward":   {func(c *Case) { c.Forward = nil }, "Gradient needs Forward"},
		"no ours":      {func(c *Case) { c.Ours = nil }, "Ours is nil"},
		"too few outputs": {
			func(c *Case) { c.Forward = func([]oracle.Tensor) []oracle.Tensor { return nil } },
			"the oracle failed: the reference returns 0 outputs; the case has 1",
		},
		"too small outputs": {
			func(c *Case) {
				c.Forward = func([]oracle.Tensor) []oracle.Tensor { return []oracle.Tensor{oracle.New(3)} }
			},
			`the reference returns 3 elements of \w+; its shape is \[37 33\]`,
		},
		"too few gradients": {
			func(c *Case) {
				c.Gradient = func(_, ct []oracle.Tensor) []oracle.Tensor { return ct }
			},
			"the reference returns 1 gradients; the case has 2 differentiable inputs",
		},
		"too small gradients": {
			func(c *Case) {
				c.Gradient = func(_, ct []oracle.Tensor) []oracle.Tensor { return []oracle.Tensor{ct[0], oracle.New(3)} }
			},
			`the reference returns 3 elements of dw; the shape of w is \[33\]`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := Run(context.Background(), altered(test.change), Options{})
			require.NotEmpty(t, r.Rows)
			require.Zero(t, r.Passed)
			for _, c := range r.Rows {
				require.Regexp(t, test.message, c.Message)
			}
		})
	}
}

func TestRunSelects(t *testing.T) {
	op := altered(func(*Case) {})
	r := Run(context.Background(), op, Options{DTypes: []mlxc.DType{mlxc.BFloat16}})
	require.Len(t, r.Rows, 2)
	require.Equal(t, "bfloat16", r.Rows[0].DType)
	require.Equal(t, []int{37, 33}, r.Rows[0].Shape)
	require.True(t, r.Suites[0].Judged)

	r = Run(context.Background(), Matching(op, regexp.MustCompile("no such case")), Options{})
	require.Empty(t, r.Rows)
	require.Empty(t, r.Suites)
	require.False(t, r.Succeeded(), "nothing ran")
}

var _ = testdevice.AlsoOnGPU(TestRunSelects)

func TestRunStopsWhenAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	first := altered(func(c *Case) {
		ours := c.Ours
		c.Ours = func(in []*mlxc.Array) []*mlxc.Array {
			if in[0].DType() == mlxc.Float16 {
				cancel()
			}
			return ours(in)
		}
	})
	r := Run(ctx, append(first, altered(func(*Case) {})...), Options{})
	require.True(t, r.Incomplete)
	require.False(t, r.Succeeded())
	require.Equal(t, 4, r.Passed, "float32, and float16, in which it was asked")
	require.Len(t, r.Rows, 4)
	for _, s := range r.Suites {
		require.False(t, s.Judged, "a part of the cases is not the suite")
	}

	r = Run(ctx, altered(func(*Case) {}), Options{})
	require.True(t, r.Incomplete)
	require.Empty(t, r.Rows)
}

var _ = testdevice.AlsoOnGPU(TestRunStopsWhenAsked)

func TestSuitesAreJudged(t *testing.T) {
	rows := []report.Row{
		{DType: "float32", OutputDType: "float32", Ratio: 3},
		{DType: "float16", OutputDType: "float16", Ratio: 4},
		{DType: "float16", OutputDType: "float16", Ratio: 0.5},
		{DType: "float16", OutputDType: "float32", Ratio: 100}, // a loss
		{DType: "bfloat16", OutputDType: "bfloat16", Ratio: 2.01},
		{DType: "bfloat16", OutputDType: "bfloat16", Ratio: 0.5},
		{DType: "bfloat16", OutputDType: "bfloat16", Ratio: report.Number(math.NaN())},
	}
	got := suites("op", DTypes(), rows, true)
	require.Len(t, got, 3)
	require.Equal(t, report.Suite{Op: "op", DType: "float32", Ratio: got[0].Ratio, Outputs: 1, Pass: true}, got[0])
	require.False(t, got[1].Pass)
	require.InDelta(t, math.Sqrt2, float64(got[1].Ratio), 1e-12)
	require.True(t, got[2].Pass)
	require.Equal(t, 2, got[2].Outputs)
	rows[4].Ratio = 2.03 // 1.007
	require.False(t, suites("op", DTypes(), rows, true)[2].Pass)

	for _, s := range suites("op", DTypes(), rows, false) {
		require.True(t, s.Pass)
		require.False(t, s.Judged)
	}
}

// Without elements no kernel is launched, and the results are still compared.
func TestRunOfNoElements(t *testing.T) {
	c := rmsNormCase(0, 33)
	r := Run(context.Background(), []Op{{Name: "rmsnorm", Cases: []Case{c}}}, Options{})
	require.True(t, r.Succeeded())
	require.Len(t, r.Rows, 6)
	require.Zero(t, r.Rows[0].Launches)
}

var _ = testdevice.AlsoOnGPU(TestRunOfNoElements)

// An operation with kinds of operands that RMSNorm lacks: an index, a mask, a judged output.
func TestOtherKindsOfOperands(t *testing.T) {
	pick := func(rms func(x, w *mlxc.Array, eps float32) *mlxc.Array) mlxc.Func {
		return func(in []*mlxc.Array) []*mlxc.Array {
			x, scale, keep := in[0], in[1], in[2]
			y := rms(x, nil, 1).Mul(scale.AsType(x.DType()))
			return []*mlxc.Array{mlxc.Where(keep, y, mlxc.Zeros(x.DType(), 1)), x}
		}
	}
	factors := func(in []oracle.Tensor) oracle.Tensor {
		out := oracle.New(in[0].Shape...)
		for i := range out.Data {
			out.Data[i] = in[1].Data[i] * in[2].Data[i]
		}
		return out
	}
	times := func(a, b oracle.Tensor) oracle.Tensor {
		out := oracle.New(a.Shape...)
		for i := range out.Data {
			out.Data[i] = a.Data[i] * b.Data[i]
		}
		return out
	}
	shape := []int{5, 9}
	c := Case{
		Name: "5x9",
		Inputs: []Input{
			{Name: "x", Shape: shape},
			{Name: "scale", Shape: shape, Kind: Index, Layout: Strided, Values: func(_ *rand.Rand, shape []int) []float64 {
				out := make([]float64, oracle.Size(shape))
				for i := range out {
					out[i] = float64(i % 3)
				}
				return out
			}},
			{Name: "keep", Shape: shape, Kind: Mask, Layout: Transposed, Values: Spike},
		},
		Outputs: []Output{{Name: "y", Shape: shape}, {Name: "x", Shape: shape, Layout: Reversed, FromMLX: true}},
		Reference: Reference{
			Forward: func(in []oracle.Tensor) []oracle.Tensor {
				return []oracle.Tensor{times(oracle.RMSNorm(in[0], nil, 1), factors(in)), in[0]}
			},
			Gradient: func(in, ct []oracle.Tensor) []oracle.Tensor {
				dx, _ := oracle.RMSNormVJP(in[0], nil, 1, times(ct[0], factors(in)))
				for i := range dx.Data {
					dx.Data[i] += ct[1].Data[i]
				}
				return []oracle.Tensor{dx}
			},
		},
		Ours: pick(ops.RMSNorm),
		MLX:  pick(mlxc.RMSNorm),
	}
	r := requireParity(t, []Op{{Name: "pick", Cases: []Case{c}}}, Options{DTypes: []mlxc.DType{mlxc.Float32}})
	require.Len(t, r.Rows, 2)
	require.Equal(t, "y", r.Rows[0].Output)
	require.Equal(t, "dx", r.Rows[1].Output)
}

var _ = testdevice.AlsoOnGPU(TestOtherKindsOfOperands)

// The report names the device on which the caller runs operations, not the default device.
func TestRunNamesTheCurrentDevice(t *testing.T) {
	mlxc.WithPlaceholderGPU(func() {
		require.Equal(t, "gpu", Run(t.Context(), nil, Options{}).Device)
	})
}

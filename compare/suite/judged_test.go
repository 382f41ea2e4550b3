package suite

import (
	"context"
	"math"
	"testing"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
	"github.com/stretchr/testify/require"
)

// A float32 loss of float16 logits is judged by the spacing of float32.
func TestAnOutputIsJudgedInItsOwnDType(t *testing.T) {
	c := lossCase{targets: []int{37}, v: 33, lossOptions: lossOptions{reduction: ops.ReductionNone, zLoss: true}}.ofLogits()
	ours := c.Ours
	c.Ours = func(in []*mlxc.Array) []*mlxc.Array { return mlxtest.Scaled(ours, 1+0x1p-12)(in) }
	r := compare.Run(
		context.Background(),
		[]compare.Op{{Name: "loss", Cases: []compare.Case{c}}},
		compare.Options{DTypes: []mlxc.DType{mlxc.Float16}},
	)
	require.Len(t, r.Rows, 2)
	loss, dx := r.Rows[0], r.Rows[1]
	require.Equal(t, []string{"loss", "float16", "float32"}, []string{loss.Output, loss.DType, loss.OutputDType})
	require.False(t, loss.Pass)
	require.Equal(t, []string{"dx", "float16", "float16"}, []string{dx.Output, dx.DType, dx.OutputDType})
	require.True(t, dx.Pass, dx.Message)
	require.Equal(t, 1, r.Suites[0].Outputs, "the loss is not float16")
}

var _ = testdevice.AlsoOnGPU(TestAnOutputIsJudgedInItsOwnDType)

// Outputs without a gradient are judged, and integers must be exact.
func TestOutputsWithoutAGradientAreJudged(t *testing.T) {
	sparse := func() compare.Case { return embeddingCase{ids: []int{37}, v: 33, d: 31}.sparse() }
	r := compare.Run(context.Background(), []compare.Op{{Name: "sparse", Cases: []compare.Case{sparse()}}}, compare.Options{})
	require.True(t, r.Succeeded())
	require.Len(t, r.Rows, 9)

	c := sparse()
	ours := c.Ours
	c.Ours = func(in []*mlxc.Array) []*mlxc.Array {
		out := ours(in)
		out[2] = out[2].Add(mlxc.Scalar[uint32](1))
		return out
	}
	r = compare.Run(context.Background(), []compare.Op{{Name: "sparse", Cases: []compare.Case{c}}}, compare.Options{})
	for _, row := range r.Rows {
		require.Equal(t, row.Output != "count", row.Pass, "%s %s", row.Output, row.Message)
	}
}

var _ = testdevice.AlsoOnGPU(TestOutputsWithoutAGradientAreJudged)

func TestUnsafeFunctionsOfMLXDoNotRun(t *testing.T) {
	c := embeddingCase{ids: []int{37}, v: 33, d: 31, outOfRange: true}.lookup()
	require.Nil(t, c.MLX)
	r := compare.Run(context.Background(), []compare.Op{{Name: "embedding", Cases: []compare.Case{c}}}, compare.Options{})
	require.True(t, r.Succeeded())
	for _, row := range r.Rows {
		require.Equal(t, report.MLXUnsafe, row.MLX)
		require.Contains(t, row.MLXMessage, "out of bounds")
		require.True(t, math.IsNaN(float64(row.Ratio)))
	}

	c.Ours = mlxtest.Scaled(c.Ours, 1.05)
	require.Zero(
		t,
		compare.Run(context.Background(), []compare.Op{{Name: "embedding", Cases: []compare.Case{c}}}, compare.Options{}).Passed,
	)
}

var _ = testdevice.AlsoOnGPU(TestUnsafeFunctionsOfMLXDoNotRun)

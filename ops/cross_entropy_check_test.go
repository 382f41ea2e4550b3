package ops

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A target out of range is an error if it has been computed, else its loss is NaN. If it is ignored, its loss is 0.
func TestCrossEntropyOfTargetsOutOfRange(t *testing.T) {
	five := 5
	x, weight := normal(1, mlxc.Float32, 3, 5), mlxc.Ones(mlxc.Float32, 5, 5)
	for name, targets := range map[string]*mlxc.Array{
		"int32":  mlxc.FromSlice([]int32{4, 5, 1}),
		"uint32": mlxc.FromSlice([]uint32{4, 5, 1}),
	} {
		for opName, op := range map[string]func(targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array{
			"CrossEntropy": func(targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array {
				return CrossEntropy(x, targets, cfg)
			},
			"LinearCrossEntropy": func(targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array {
				return LinearCrossEntropy(x, weight, targets, cfg)
			},
		} {
			t.Run(name+" "+opName, func(t *testing.T) {
				err := mlxc.Eval(op(targets, CrossEntropyConfig{}))
				require.ErrorContains(t, err, "ops."+opName)
				require.ErrorContains(t, err, "element 1 of targets is 5; it must be below 5")
				lazy := targets.Add(mlxc.Zeros(targets.DType()))
				losses := mlxtest.Floats(t, op(lazy, CrossEntropyConfig{Reduction: ReductionNone}))
				require.False(t, math.IsNaN(float64(losses[0]+losses[2])))
				require.True(t, math.IsNaN(float64(losses[1])))
				losses = mlxtest.Floats(t, op(targets, CrossEntropyConfig{Reduction: ReductionNone, IgnoreIndex: &five}))
				require.Zero(t, losses[1])
			})
		}
	}
	// Unsigned targets of 2³¹ and more are out of range; they do not count as negative.
	targets := mlxc.FromSlice([]uint32{1 << 31, math.MaxUint32, 0})
	lazy := targets.Add(mlxc.Zeros(mlxc.Uint32))
	f := lossOf(lazy, CrossEntropyConfig{Reduction: ReductionNone}, CrossEntropy)
	loss, grads, err := mlxc.VJP(f, arrays{x}, arrays{mlxc.Ones(mlxc.Float32, 3)})
	require.NoError(t, err)
	for i, v := range mlxtest.Floats(t, loss[0]) {
		require.Equal(t, i < 2, math.IsNaN(float64(v)))
	}
	for i, v := range mlxtest.Floats(t, grads[0]) {
		require.Equal(t, i < 10, math.IsNaN(float64(v)))
	}
}

func TestCrossEntropyArgumentErrors(t *testing.T) {
	x, targets := mlxc.Ones(mlxc.Float32, 2, 3), mlxc.Zeros(mlxc.Int32, 2)
	weight := mlxc.Ones(mlxc.Float32, 4, 3)
	freed := mlxc.Zeros(mlxc.Int32, 2)
	freed.Free()
	nan := nan32
	loss := func(cfg CrossEntropyConfig) *mlxc.Array { return CrossEntropy(x, targets, cfg) }
	linear := func(hidden, weight *mlxc.Array) *mlxc.Array {
		return LinearCrossEntropy(hidden, weight, targets, CrossEntropyConfig{})
	}
	for _, c := range []struct {
		name  string
		y     *mlxc.Array
		parts []string
	}{
		{
			"rank 0",
			CrossEntropy(mlxc.Scalar[float32](1), targets, CrossEntropyConfig{}),
			[]string{"ops.CrossEntropy", "logits is a scalar"},
		},
		{
			"no classes",
			CrossEntropy(mlxc.Zeros(mlxc.Float32, 2, 0), targets, CrossEntropyConfig{}),
			[]string{"last axis of logits is empty"},
		},
		{
			"integers",
			CrossEntropy(x.AsType(mlxc.Int32), targets, CrossEntropyConfig{}),
			[]string{"int32(2,3)", "AsType"},
		},
		{"float64", CrossEntropy(x.AsType(mlxc.Float64), targets, CrossEntropyConfig{}), []string{"float64", "AsType"}},
		{
			"shapes",
			CrossEntropy(x, mlxc.Zeros(mlxc.Int32, 3), CrossEntropyConfig{}),
			[]string{"float32(2,3), int32(3)", "must be [2]"},
		},
		{"targets' rank", CrossEntropy(x, mlxc.Zeros(mlxc.Int32, 2, 1), CrossEntropyConfig{}), []string{"must be [2]"}},
		{
			"floating targets",
			CrossEntropy(x, mlxc.Zeros(mlxc.Float32, 2), CrossEntropyConfig{}),
			[]string{"targets is float32", "AsType"},
		},
		{
			"wide targets",
			CrossEntropy(x, mlxc.Zeros(mlxc.Int64, 2), CrossEntropyConfig{}),
			[]string{"targets is int64", "AsType"},
		},
		{"nil logits", CrossEntropy(nil, targets, CrossEntropyConfig{}), []string{"nil"}},
		{"freed targets", CrossEntropy(x, freed, CrossEntropyConfig{}), []string{"freed"}},
		{
			"reduction", loss(CrossEntropyConfig{Reduction: 3}),
			[]string{"Reduction(3)", "ReductionMean, ReductionSum or ReductionNone"},
		},
		{"negative smoothing", loss(CrossEntropyConfig{LabelSmoothing: -0.1}), []string{"LabelSmoothing is -0.1"}},
		{"smoothing of 1", loss(CrossEntropyConfig{LabelSmoothing: 1}), []string{"LabelSmoothing is 1"}},
		{"smoothing not a number", loss(CrossEntropyConfig{LabelSmoothing: nan}), []string{"LabelSmoothing is NaN"}},
		{"negative z-loss", loss(CrossEntropyConfig{ZLoss: -1}), []string{"ZLoss is -1"}},
		{"z-loss not a number", loss(CrossEntropyConfig{ZLoss: nan}), []string{"ZLoss is NaN"}},
		{"negative soft cap", loss(CrossEntropyConfig{SoftCap: -1}), []string{"SoftCap is -1"}},
		{"infinite soft cap", loss(CrossEntropyConfig{SoftCap: float32(math.Inf(1))}), []string{"SoftCap is +Inf"}},
		{
			"widths",
			linear(x, mlxc.Ones(mlxc.Float32, 4, 5)),
			[]string{"ops.LinearCrossEntropy", "float32(2,3), float32(4,5), int32(2)", "[classes, 3]"},
		},
		{"weight's rank", linear(x, mlxc.Ones(mlxc.Float32, 3)), []string{"[classes, 3]"}},
		{"dtypes", linear(x, weight.AsType(mlxc.BFloat16)), []string{"hidden is float32 and weight is bfloat16"}},
		{"empty weight", linear(x, mlxc.Ones(mlxc.Float32, 0, 3)), []string{"weight is empty"}},
		{"hidden's rank", linear(mlxc.Scalar[float32](1), weight), []string{"hidden is a scalar"}},
		{"hidden's dtype", linear(x.AsType(mlxc.Int32), weight), []string{"hidden is int32"}},
		{
			"linear targets",
			LinearCrossEntropy(x, weight, mlxc.Zeros(mlxc.Int32, 3), CrossEntropyConfig{}),
			[]string{"each row of hidden", "[2]"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mlxc.Eval(c.y)
			for _, p := range c.parts {
				require.ErrorContains(t, err, p)
			}
			require.ErrorContains(t, err, "CrossEntropy")
		})
	}
	err := mlxc.Eval(CrossEntropy(x.Add(mlxc.Ones(mlxc.Float32, 7)), targets, CrossEntropyConfig{}))
	require.ErrorContains(t, err, "add")
	require.NotContains(t, err.Error(), "CrossEntropy")
}

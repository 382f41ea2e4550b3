package customkernels

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/executor"
	"github.com/mlxgrad/mlxgrad/internal/ahead"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A launch uses the program that was compiled ahead of time.
func TestProgramsAreCompiledAhead(t *testing.T) {
	compilations := 0
	compile = func(ctx context.Context, source string) (*executor.Library, error) {
		compilations++
		return executor.Compile(ctx, source)
	}
	defer func() { compile = executor.Compile }()

	k := kernel(t, "scale.metal", "scale")
	x, three := mlxc.Arange(mlxc.Float16, 0, 100, 1), mlxc.Scalar[float32](3)
	launch := func() *mlxc.Array {
		return k.Launch(perElement(x, mlxc.TemplateArg{Name: "T", Value: x.DType()}), x, three)[0]
	}
	before := LaunchCount()
	var y *mlxc.Array
	programs := ahead.Collect(func() { y = launch() })
	require.Equal(t, x.Shape(), y.Shape())
	require.Equal(t, x.DType(), y.DType())
	require.Equal(t, before, LaunchCount(), "nothing was launched")
	require.Zero(t, compilations)
	require.Len(t, programs, 1)
	p := programs[0]
	require.Equal(t, "scale.metal", p.File)
	require.Equal(t, "scale", p.Kernel)
	require.Equal(t, []string{"T=float16", "x: float16[8]", "factor: float32[]"}, p.Arguments)

	stopped, stop := context.WithCancel(t.Context())
	stop()
	require.ErrorIs(t, p.Compile(stopped), context.Canceled)
	require.Zero(t, compilations)
	require.NoError(t, p.Compile(t.Context()))
	require.Equal(t, 1, compilations)
	require.Equal(t, mlxtest.Floats(t, x.MulScalar(3)), mlxtest.Floats(t, launch()))
	require.Equal(t, 1, compilations)
}

// Collect adds no program for an invalid launch, which returns its error, or for a launch without elements.
func TestCollectOfInvalidAndEmptyLaunches(t *testing.T) {
	k := kernel(t, "scale.metal", "scale")
	x, empty := mlxc.Ones(mlxc.Float32, 8), mlxc.Ones(mlxc.Float32, 0)
	template := mlxc.TemplateArg{Name: "T", Value: mlxc.Float32}
	programs := ahead.Collect(func() {
		require.Error(t, k.Launch(perElement(x, template), x)[0].Err())
		require.NoError(t, k.Launch(perElement(empty, template), empty, mlxc.Scalar[float32](3))[0].Err())
	})
	require.Empty(t, programs)
}

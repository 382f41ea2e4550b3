package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/customkernels/launchspec"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func Example() {
	fmt.Println(run(io.Discard, os.Stdout))
	// Output:
	// accuracy 100.0 %
	// <nil>
}

// findings runs the launches that the comments of a shader describe under the checker.
func findings(t *testing.T, source string) (found []sanitizer.Finding) {
	t.Helper()
	library, err := customkernels.Load(fstest.MapFS{"normalize.metal": {Data: []byte(source)}}, "normalize.metal")
	require.NoError(t, err)
	specs, err := launchspec.Parse([]byte(source))
	require.NoError(t, err)
	require.Len(t, specs, 6)
	for _, s := range specs {
		kernel, err := library.Kernel(s.Kernel)
		require.NoError(t, err)
		launch, inputs, err := kernel.Arguments(s, 1)
		require.NoError(t, err)
		report, err := kernel.Sanitize(t.Context(), launch, sanitizer.Config{}, inputs...)
		require.NoError(t, err)
		require.Empty(t, report.UnsupportedByMLX)
		found = append(found, report.Findings...)
	}
	return found
}

func TestSanitizerPasses(t *testing.T) {
	source, err := shaders.ReadFile("normalize.metal")
	require.NoError(t, err)
	require.Empty(t, findings(t, string(source)))
}

// Without its barrier, the sum of a row is a race.
func TestSanitizerFindsAMissingBarrier(t *testing.T) {
	source, err := shaders.ReadFile("normalize.metal")
	require.NoError(t, err)
	broken := strings.Replace(string(source), "threadgroup_barrier(mem_flags::mem_threadgroup);", "", 1)
	require.NotEqual(t, string(source), broken)
	found := findings(t, broken)
	require.NotEmpty(t, found)
	require.Equal(t, sanitizer.FindingRace, found[0].Kind)
	require.Contains(t, found[0].String(), "sums[")
}

// The gradient is compared with finite differences of a float64 function, and with MLX's gradient of a composition.
func TestGradient(t *testing.T) {
	normalize, err := loadNormalize()
	require.NoError(t, err)
	ours := func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{normalize(in[0])} }
	composed := func(in []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{in[0].Div(in[0].NormKeepDims(1))}
	}
	for _, reference := range []compare.Reference{{Forward: exact}, {Composed: composed}} {
		compare.Gradients(t, ours, reference, compare.Case{
			Inputs: []compare.Input{{Name: "x", Dims: []string{"rows", "width"}}},
			DTypes: []mlxc.DType{mlxc.Float32},
		})
	}
}

// exact computes rows of length 1 in float64.
func exact(in []oracle.Tensor) []oracle.Tensor {
	x := in[0]
	width := x.Shape[1]
	y := oracle.Tensor{Shape: x.Shape, Data: make([]float64, len(x.Data))}
	for begin := 0; begin < len(x.Data); begin += width {
		length := 0.0
		for _, v := range x.Data[begin : begin+width] {
			length = math.Hypot(length, v)
		}
		for j, v := range x.Data[begin : begin+width] {
			y.Data[begin+j] = v / length
		}
	}
	return []oracle.Tensor{y}
}

func TestErrors(t *testing.T) {
	normalize, err := loadNormalize()
	require.NoError(t, err)
	for _, x := range []*mlxc.Array{mlxc.Ones(mlxc.Float32, 3), mlxc.Ones(mlxc.Float16, 2, 2)} {
		require.ErrorContains(t, normalize(x).Err(), "x must be float32 of shape (rows, width)")
	}
	require.ErrorIs(t, normalize(nil).Err(), mlxc.ErrNil)
}

package compare_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// cube is x³ with a wrong gradient: 2·x²·dy instead of 3·x²·dy.
var cube = mlxc.CustomVJP(
	func(in []*mlxc.Array) []*mlxc.Array {
		x := in[0]
		return []*mlxc.Array{x.Mul(x).Mul(x)}
	},
	func(in, cotangents, _ []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{in[0].Square().MulScalar(2).Mul(cotangents[0])}
	})

// cube64 is x³ in float64. Gradients differentiates it by finite differences.
func cube64(in []oracle.Tensor) []oracle.Tensor {
	y := oracle.New(in[0].Shape...)
	for i, x := range in[0].Data {
		y.Data[i] = x * x * x
	}
	return []oracle.Tensor{y}
}

// printer stands in for the *testing.T of a test and prints the first line of a failure.
type printer struct{ testing.TB }

func (printer) Name() string   { return "TestCube" }
func (printer) Helper()        {}
func (printer) Cleanup(func()) {}

func (printer) Errorf(format string, args ...any) {
	first, _, _ := strings.Cut(fmt.Sprintf(format, args...), "\n")
	fmt.Println(first)
}

func ExampleGradients() {
	var t testing.TB = printer{} // the argument of func TestCube(t *testing.T)
	compare.Gradients(t, cube, compare.Reference{Forward: cube64}, compare.Case{
		Inputs: []compare.Input{{Name: "x", Dims: []string{"rows", "d"}}},
		DTypes: []mlxc.DType{mlxc.Float32},
	})
	// Output:
	// dx is wrong in float32 at d=1, rows=1:
}

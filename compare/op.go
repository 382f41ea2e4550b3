package compare

import (
	"math/rand/v2"

	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// DTypes returns the dtypes in which gradients are compared, in the order of reports.
func DTypes() []mlxc.DType {
	return []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16}
}

// Op is an operation with the cases that judge it.
type Op struct {
	Name  string
	Cases []Case // names must be unique: the name of a case seeds its random values

	part bool // Cases is a part of the operation's cases, so means over the cases are not judged
}

// Case is one configuration of an operation: shapes, memory layouts, values and options. The functions hold the
// options, such as eps.
type Case struct {
	Name   string
	Inputs []Input
	// Outputs describes the results. [Gradients] takes their shapes from the reference, and names them y, or y0, y1 and so
	// on, if Outputs is nil.
	Outputs []Output
	// Sizes lists, by the name of a dimension, the sizes from which [Gradients] chooses. It tries each of them. Without
	// an entry they are powers of two from 1 to 128, and their neighbors up to 129.
	Sizes map[string][]int

	// Reference computes the truth. Its values must not overflow any of the dtypes.
	Reference

	// Ours and MLX map the inputs to the outputs, in the order of Inputs and Outputs. Ours has our vjp. MLX, which may be
	// nil, is another implementation, usually with MLX's built-in vjp. Our errors may be up to twice MLX's.
	Ours, MLX mlxc.Func
	// Unsafe says why MLX's function must not run on any device, for example because it would read out of bounds. MLX
	// is nil then, and the report shows the reason.
	Unsafe string
	// UnsafeOnCUDA is the same for MLX's CUDA backend alone. MLX is not nil then.
	UnsafeOnCUDA string
	// UsesTF32 is set if our kernels multiply matrices, or if ours calls MLX's matrix products on other shapes than
	// MLX's gradient does. On NVIDIA GPUs these products use TF32 for float32 unless MLX_ENABLE_TF32 is 0; MLX's
	// products use it only for shapes that cuBLAS multiplies. With TF32, float32 results are judged by the spacing of
	// TF32.
	UsesTF32 bool

	// DTypes lists the dtypes to run the case in, some of [DTypes]; all of them if nil.
	DTypes []mlxc.DType

	sampling bool // finite differences are computed at a part of the elements of large inputs
}

// Input is an argument of an operation.
type Input struct {
	Name  string
	Shape []int
	// Dims names the dimensions of an input of [Gradients], which chooses their sizes: {"rows", "d"}. A name has the same
	// size in every input. Shape is nil then.
	Dims []string
	Kind Kind
	// Below is the name of the dimension that an Index or SignedIndex input of [Gradients] indexes, if Values is nil.
	Below  string
	Layout Layout // if empty, Contiguous for Run, and any for Gradients
	Values Values // if nil, Normal(1) for Run, and any for Gradients
}

// Kind is the kind of an input's elements. Only a Real input is differentiated.
type Kind int

// The kinds of inputs.
const (
	Real        Kind = iota // of the dtype under test
	Constant                // of the dtype under test, not differentiated
	Index                   // unsigned 32-bit integers: token ids, class targets
	SignedIndex             // the same as signed 32-bit integers
	Mask                    // booleans; every value but 0 is true
)

// Output is a result of an operation.
type Output struct {
	Name  string
	Shape []int
	// FromMLX is set if Ours computes this output with MLX's function. The output is not judged then: that would compare
	// MLX with itself. Every other output is judged like a gradient.
	FromMLX bool
	// DType is set for an output that has the same dtype in every test, such as a float32 loss. The output is judged by
	// the spacing of its own dtype; integers must be exact.
	DType mlxc.DType
	// Layout is the memory layout of the cotangent, Contiguous if empty.
	Layout Layout
	// Values makes the cotangent, EitherSign if nil. A cotangent of ones would hide errors of sign and order. One
	// element may scale a whole row of a gradient, so no element should be so large that its row alone decides the
	// verdict.
	Values Values
}

// Values returns the elements of a tensor in row-major order, drawn from rng. They must depend on the arguments alone.
type Values func(rng *rand.Rand, shape []int) []float64

// spacing returns the spacing at 1 of the format in which the case computes results of dtype. For TF32 it is doubled,
// because both factors of a product are rounded to TF32.
func (c Case) spacing(dtype mlxc.DType) float64 {
	if c.UsesTF32 && dtype == mlxc.Float32 && arrays.TF32() == "on" {
		return 2 * arrays.TF32Spacing
	}
	return arrays.Spacing(dtype)
}

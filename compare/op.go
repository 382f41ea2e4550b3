package compare

import (
	"math/rand/v2"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Op is an operation with the cases that it is judged by.
type Op struct {
	Name  string
	Cases []Case // With names that differ: a case's data follows from its name.

	part bool // Cases lacks some of the suite's cases.
}

// Ops returns the operations that this project provides, in the order of reports.
func Ops() []Op {
	return []Op{
		rmsNorm(),
		rmsNormSeparate(),
		layerNorm(),
		layerNormSeparate(),
		rmsNormResidual(),
		addRMSNorm(),
		softmax(),
		transpose2D(),
		embedding(),
		embeddingSparse(),
		crossEntropy(),
		linearCrossEntropy(),
		attention(),
		causalAttention(),
	}
}

// Case is one configuration of an operation: shapes, memory layouts, values and options. The
// options, such as eps, are held by the functions.
type Case struct {
	Name    string
	Inputs  []Input
	Outputs []Output

	// Forward and Gradient are the oracle. Gradient returns a gradient for each differentiable
	// input, in order. Its true values must lie in the range of float16. If Gradient is nil, finite
	// differences of Forward stand for it (see [oracle.Differences]): four calls of Forward for each
	// element of a differentiable input, and about ten right digits where Forward is smooth.
	Forward  oracle.Func
	Gradient oracle.Gradient

	// Ours and MLX map the inputs to the outputs, in the order of Inputs and Outputs, with our vjp
	// and with MLX's built-in one. If MLX is nil, ours is judged by Composed or else by the oracle alone.
	Ours, MLX mlxc.Func
	// Composed, if it is not nil, is the operation as one composes it of MLX's functions. MLX is then one
	// function for the whole, which may refuse a case or compute another function; where it does, or is nil,
	// ours is judged by the gradient of Composed.
	Composed mlxc.Func
	// Unsafe says why MLX must not be run, such as that it would read out of bounds. MLX is nil then, and
	// the report says so.
	Unsafe string
	// UnsafeOnCUDA says the same of MLX's CUDA backend alone; MLX is there.
	UnsafeOnCUDA string
	// Products says that kernels of ours multiply matrices, or MLX's do in other shapes than in its own
	// gradient: on NVIDIA GPUs those of float32 as TF32, as MLX does where cuBLAS takes the shape, unless
	// MLX_ENABLE_TF32 is 0. Float32 is then judged by TF32's spacing.
	Products bool

	dtypes []mlxc.DType // The only dtypes to run the case in; all if nil.
}

// Input is an argument of an operation.
type Input struct {
	Name   string
	Shape  []int
	Kind   Kind
	Layout Layout // Contiguous if empty.
	Values Values // Normal(1) if nil.
}

// Kind is what the elements of an input are. Only a Real input is differentiated.
type Kind int

// The kinds of inputs.
const (
	Real        Kind = iota // Of the dtype under test.
	Constant                // Of the dtype under test too, but not differentiated.
	Index                   // Unsigned 32-bit integers: token ids, class targets.
	SignedIndex             // The same as signed 32-bit integers.
	Mask                    // Booleans; every value but 0 is true.
)

// Output is a result of an operation.
type Output struct {
	Name  string
	Shape []int
	// Own says that a kernel of ours computes this output too, so that it is judged as the
	// gradients are. Otherwise ours is MLX's forward, and judging it would compare MLX with itself.
	Own bool
	// DType is that of the output whatever the dtype under test is, if the two are not the same: a loss
	// is float32. The output is judged with the spacing of its own dtype; integers must be exact.
	DType mlxc.DType
	// Layout is how the cotangent lies in memory, Contiguous if empty.
	Layout Layout
	// Values are those of the cotangent, EitherSign if nil. Ones would hide errors of sign and of order. One
	// may scale a whole row of a gradient, so none is so large that its row alone would decide the verdict.
	Values Values
}

// Values makes the elements of a tensor, in row-major order. Equal generators give equal values.
type Values func(rng *rand.Rand, shape []int) []float64

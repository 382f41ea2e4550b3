// Package products gives package ops matrix products of CUDA devices that write to memory that exists. They are no part
// of mlxc's API, because their results share memory with an operand. mlxc registers the functions when it is
// initialized. The array and dtype types are parameters because mlxc imports this package.
package products

// Functions holds the functions of mlxc. A is *mlxc.Array, D is mlxc.DType.
type Functions[A, D any] struct {
	// Available reports whether the current stream has these products.
	Available func() bool
	// Undefined returns an array whose elements no node computes. Each has its own memory.
	Undefined func(d D, shape ...int) A
	// Reuse returns an array with the elements of a, and memory for a node that overwrites them while it reads them:
	// the memory of a if nothing else refers to a when the results are evaluated, and otherwise new memory. No other
	// array may share the memory of a. The results are evaluated later than `after`.
	Reuse func(a, after A) (elements, memory A)
	// ReuseCopies returns how often evaluated nodes of Reuse took new memory. It is for tests.
	ReuseCopies func() uint64
	// Into returns p.Destination with the product a·b in place of its elements from p.Begin on, in the same memory.
	Into func(p Product[A]) A
	// Beginning returns the matrix that begins the memory of a row-contiguous array, without a copy.
	Beginning func(memory A, rows, columns int) A
	// ScaleRows returns the rows of the matrix a times the float32 factors, rounded once, by one kernel. Rows for which
	// zeros is true are zeros, whatever their elements. factors or zeros may be nil.
	ScaleRows func(a, factors, zeros A) A
}

// A Product describes a product of matrices. Destination and Workspace must be contiguous in row-major order.
type Product[A any] struct {
	A, B                     A
	TransposedA, TransposedB bool
	// Destination has the dtype of A and any shape. No other node may use it later: they use the result.
	Destination A
	Begin       int
	Accumulate  bool // adds the product to the elements
	// Factor, if set, is a float32 scalar by which the product is multiplied, before it is rounded.
	Factor A
	// Workspace is memory for the product. Products that share it run one after the other.
	Workspace A
	// After lists arrays that are computed before the product, for example by a node that reads the destination.
	After []A
}

var functions any

// Set registers the functions that Use returns.
func Set[A, D any](f Functions[A, D]) { functions = f }

// Use returns the registered functions. It panics if Set was called with other type parameters.
func Use[A, D any]() Functions[A, D] { return functions.(Functions[A, D]) }

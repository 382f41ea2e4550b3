// Package products gives package ops matrix products of CUDA devices that write to memory that exists. They are no part
// of mlxc's API, because their results share memory with an operand. mlxc registers the functions when it is
// initialized. The array type is a parameter because mlxc imports this package.
package products

// Functions holds the functions of mlxc. A is *mlxc.Array.
type Functions[A any] struct {
	// Available reports whether the current stream has these products.
	Available func() bool
	// Reuse returns an array with the elements of a, and an array of the same shape for a node that overwrites them while
	// it reads them. It has the memory of a if nothing else refers to a when the results are evaluated, and otherwise new
	// memory for a matrix of the shape `size`. No other array may share the memory of a. The results are evaluated later
	// than `after`.
	Reuse func(a, after A, size Shape) (elements, memory A)
	// ReuseCopies returns how often evaluated nodes of Reuse took new memory. It is for tests.
	ReuseCopies func() uint64
	// Into returns a matrix with the product as its elements from p.Begin on.
	Into func(p Product[A]) A
	// ScaleRows returns the rows of the matrix a times the float32 factors, rounded once, by one kernel. Rows whose int32
	// class is negative are zeros, whatever their elements. factors or classes may be nil.
	ScaleRows func(a, factors, classes A) A
}

// A Shape is the number of rows and of columns of a matrix.
type Shape [2]int

// A Product describes a product of the matrix A and of rows of the matrix B.
type Product[A any] struct {
	A, B                     A
	FirstB, EndB             int // the rows of B
	TransposedA, TransposedB bool
	// Destination, if set, is a row-contiguous array with the dtype of A whose memory the result begins. The memory may
	// be larger than the array. No other node may use it later: they use the result. Otherwise the result begins new
	// memory for a matrix of the shape Memory, and its other elements are undefined.
	Destination A
	Memory      Shape
	Result      Shape
	Begin       int
	Accumulate  bool // adds the product to the elements of Destination
	// Factor, if set, is a float32 scalar by which the product is multiplied, before it is rounded.
	Factor A
	// After lists arrays that are computed before the product, for example by a node that reads the destination.
	After []A
}

var functions any

// Set registers the functions that Use returns.
func Set[A any](f Functions[A]) { functions = f }

// Use returns the registered functions. It panics if Set was called with another type parameter.
func Use[A any]() Functions[A] { return functions.(Functions[A]) }

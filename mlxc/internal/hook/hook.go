// Package hook gives mlxio and distributed, packages in folders of mlxc, functions of mlxc that are not part of its
// API. mlxc registers the functions when it is initialized. The array and dtype types are parameters because mlxc
// imports this package.
package hook

import "unsafe"

// Files holds the functions that mlxio needs. A is *mlxc.Array, D is mlxc.DType.
type Files[A, D any] struct {
	// CheckShape returns the number of elements, or an error if an axis is negative or beyond MLX's 32 bits, or if
	// the elements exceed the address space.
	CheckShape func(d D, shape []int) (int, error)
	// OpenSource duplicates a file descriptor for Load. The caller calls CloseSource; arrays that were not evaluated
	// keep the descriptor open.
	OpenSource  func(fd uintptr) (unsafe.Pointer, error)
	CloseSource func(source unsafe.Pointer)
	// Load returns an array that reads its elements from offset when it is evaluated, in row-major order and the
	// machine's byte order. The shape has passed CheckShape.
	Load func(source unsafe.Pointer, offset int64, shape []int, d D) (A, error)
	// NewUnfilled returns an array and its memory. The caller fills the memory, in row-major order and the machine's
	// byte order, before it uses the array. The shape has passed CheckShape.
	NewUnfilled func(shape []int, d D) (a A, data []byte, err error)
	// Read evaluates a and copies its elements in row-major order to data, whose length is a's size in bytes.
	Read func(a A, data []byte) error
	// LoadGGUF lets MLX's parser read the named arrays of a file. The parser trusts the file.
	LoadGGUF func(path string, names []string) ([]A, error)
}

// Groups holds the functions that distributed needs, on the handles of groups. A is *mlxc.Array, D is mlxc.DType.
type Groups[A, D any] struct {
	Available func(backend string) bool
	// Init joins the processes of a launch. Only the first call for a backend connects.
	Init func(backend string, strict bool) (unsafe.Pointer, error)
	// Split returns the handle of the group of the processes with this color, ordered by key.
	Split   func(group unsafe.Pointer, color, key int) (unsafe.Pointer, error)
	Free    func(group unsafe.Pointer)
	Rank    func(group unsafe.Pointer) int
	Size    func(group unsafe.Pointer) int
	Backend func(group unsafe.Pointer) string
	// Collect adds the collective operation op: all_sum, all_max, all_min, all_gather or sum_scatter.
	Collect func(group unsafe.Pointer, op string, x A) A
	Send    func(group unsafe.Pointer, x A, dst int) A
	// Receive checks d and shape. ReceiveLike uses the dtype and the shape of x.
	Receive     func(group unsafe.Pointer, src int, d D, shape []int) A
	ReceiveLike func(group unsafe.Pointer, x A, src int) A
}

var files, groups any

// SetFiles registers the functions that UseFiles returns.
func SetFiles[A, D any](f Files[A, D]) { files = f }

// UseFiles returns the registered functions. It panics if SetFiles was called with other type parameters.
func UseFiles[A, D any]() Files[A, D] { return files.(Files[A, D]) }

// SetGroups registers the functions that UseGroups returns.
func SetGroups[A, D any](g Groups[A, D]) { groups = g }

// UseGroups returns the registered functions. It panics if SetGroups was called with other type parameters.
func UseGroups[A, D any]() Groups[A, D] { return groups.(Groups[A, D]) }

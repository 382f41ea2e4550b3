// Package recipe gives package ops differentiable functions whose graphs are recorded once for each signature. Later
// calls add the recorded nodes in one call of C, without running the Go functions. mlxc registers the function when it
// is initialized. The array type is a parameter because mlxc imports this package.
package recipe

import "sync"

// A Function computes forward(args), differentiated by backward, like mlxc.CustomVJP. It returns the first `visible`
// results of forward, or all of them if there are fewer. backward receives all results, and the cotangents of the
// visible ones.
//
// The functions run at the first call with an id and with arguments of these shapes and dtypes on the current stream.
// Their graphs must depend on nothing else, and not on elements. There is one exception: backward runs once for all
// first cotangents that are a float32 scalar, have been computed and are 1, and once for all others. It may read such a
// scalar.
//
// If forward is nil, the result is nil unless the graphs have been recorded.
type Function[A any] func(
	id uint64, args []A, visible int, forward func(args []A) []A, backward func(primals, cotangents, outputs []A) []A,
) []A

var function any

// Launches returns the number of kernel launches that recorded graphs have added, modulo 2⁶⁴. mlxc sets it.
var Launches func() uint64

// GradientDepth returns the number of running functions around the caller whose gradient is being taken. mlxc sets it.
// See mlxc.Differentiating.
var GradientDepth func() int

// Set registers the function that Use returns.
func Set[A any](f Function[A]) { function = f }

// Use returns the registered function. It panics if Set was called with another type parameter.
func Use[A any]() Function[A] { return function.(Function[A]) }

var (
	mu   sync.Mutex
	ids  = map[any]uint64{}
	last uint64

	// recent holds some of the ids. Comparing keys takes a fraction of the time of hashing one, which reads the
	// descriptions of its types.
	recent [8]struct {
		key any
		id  uint64
	}
	oldest int
)

// maxIDs bounds the number of keys. A program may change an option at every step.
const maxIDs = 4096

// ID returns the id of a key, the same for equal keys until there are more than 4096 different ones. Keys must be
// comparable.
func ID(key any) uint64 {
	mu.Lock()
	defer mu.Unlock()
	for i := range recent {
		if recent[i].key == key {
			return recent[i].id
		}
	}
	id, found := ids[key]
	if !found {
		if len(ids) >= maxIDs {
			clear(ids)
		}
		last++
		id = last
		ids[key] = id
	}
	recent[oldest].key, recent[oldest].id = key, id
	oldest = (oldest + 1) % len(recent)
	return id
}

// Forget gives all keys new ids, so that no recorded graph is found. It is for tests.
func Forget() {
	mu.Lock()
	defer mu.Unlock()
	clear(ids)
	clear(recent[:])
}

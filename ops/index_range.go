package ops

import (
	"runtime"
	"slices"
	"sync"
	"weak"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// An indexRange holds the least and the greatest element of an array. For an empty array both are 0.
type indexRange struct{ least, greatest int64 }

// indexRanges caches ranges by weak.Pointer[mlxc.Array]. Each further read could cost more than the check: the memory of
// an array that an NVIDIA GPU has read moves back to the host.
var indexRanges sync.Map

// rangeOf returns the range of an int32 or uint32 array. It reads the elements at its first call for the array.
func rangeOf(a *mlxc.Array) (indexRange, error) {
	key := weak.Make(a)
	if r, ok := indexRanges.Load(key); ok {
		return r.(indexRange), nil
	}
	read := readRange[int32]
	if a.DType() == mlxc.Uint32 {
		read = readRange[uint32]
	}
	r, err := read(a)
	if err != nil {
		return indexRange{}, err
	}
	if _, loaded := indexRanges.LoadOrStore(key, r); !loaded {
		runtime.AddCleanup(a, func(key weak.Pointer[mlxc.Array]) { indexRanges.Delete(key) }, key)
	}
	return r, nil
}

func readRange[T int32 | uint32](a *mlxc.Array) (indexRange, error) {
	values, err := mlxc.ToSlice[T](a)
	if err != nil || len(values) == 0 {
		return indexRange{}, err
	}
	return indexRange{int64(slices.Min(values)), int64(slices.Max(values))}, nil
}

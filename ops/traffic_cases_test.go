package ops

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A trafficCase is an operation whose traffic in Metal's geometry has a limit.
type trafficCase struct {
	name string
	run  func(on target, dtype mlxc.DType)
	// compulsory is the number of elements in the case's dtype that must be read or written once, without small arrays.
	compulsory int
	// again is the number of elements that are read a second time, from a cache.
	again int
	limit float64 // of (issued bytes − bytes read again) ÷ compulsory bytes
	// kernel is a prefix of the names of the kernels whose launches count. It is empty if all count.
	kernel string
	// model, if it is not nil, replaces compulsory and again. Its results are in bytes for a given element size.
	model func(kernel string, l customkernels.Launch, size int) (compulsory, again int)
	// vectors reports whether simdgroups store vectors of 16 bytes in threadgroup memory. Each such store takes four cycles,
	// of which three count as conflicts.
	vectors bool
}

// rowTraffic returns the cases of an operation on rows that must move `moved` arrays of x's size. The limits are for
// many more rows than threadgroups, for few rows, and for rows that a threadgroup of the norms cannot hold.
func rowTraffic(name string, moved int, limits [3]float64, run func(on target, in rowInputs)) (cases []trafficCase) {
	for i, size := range [3][2]int{{16384, 128}, {199, 4096}, {256, 16384}} {
		rows, width := size[0], size[1]
		cases = append(cases, trafficCase{
			name:       fmt.Sprintf("%s, %dx%d", name, rows, width),
			run:        rowCase(rows, width, "", run).run,
			compulsory: moved * rows * width,
			limit:      limits[i],
		})
	}
	return cases
}

// templateOf returns the integers among a launch's template arguments.
func templateOf(l customkernels.Launch) map[string]int {
	values := map[string]int{}
	for _, a := range l.Template {
		if n, ok := a.Value.(int); ok {
			values[a.Name] = n
		}
	}
	return values
}

package ops

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Gradients have the same bits if their stores bypass the caches. The results of three runs begin at different places
// of a cache line, because they are allocated one after the other.
func TestBypassingTheCachesKeepsBits(t *testing.T) {
	defer func(bytes int) { bytesPastCaches = bytes }(bytesPastCaches)
	for _, dtype := range gradientDTypes {
		for _, width := range []int{16, 48, 1040, 4096, 8208} {
			t.Run(fmt.Sprintf("%v/%d", dtype, width), func(t *testing.T) {
				const rows = 19
				x, dy := normal(1, dtype, rows, width), normal(2, dtype, rows, width)
				weight, bias := normal(3, dtype, width), normal(4, dtype, width)
				on := target{backend: mlxc.BackendCPU}
				run := func(bytes int) (results [][]float32) {
					bytesPastCaches = bytes
					gradients := arrays{softmaxBackward(on, x, dy)}
					gradients = append(gradients, layerNormBackward(on, x, weight, bias, dy, 1e-5)...)
					gradients = append(gradients, rmsNormBackwardWithSum(on, x, weight, dy, x, 1e-5)...)
					for _, g := range gradients {
						results = append(results, mlxtest.Floats(t, g))
					}
					return results
				}
				want := run(math.MaxInt)
				for range 3 {
					require.Equal(t, want, run(0))
				}
			})
		}
	}
}

package ops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// The gradients by weights in memory are those by tiles, for all heads at once and for one
// key head at a time.
func TestAttentionByWeights(t *testing.T) {
	for _, c := range attentionShapes(RaggedCases) {
		for _, dtype := range gradientDTypes {
			t.Run(c.name+"/"+dtype.String(), func(t *testing.T) {
				on := onCurrentDevice()
				in, cfg := c.inputs(dtype)
				out, statistics := attentionForward(on, in, cfg)
				dOut, dLSE := normal(6, dtype, out.Shape()...), mlxc.Zeros(mlxc.Float32, out.Shape()[:3]...)
				want := attentionBackward(on, in, out, statistics, dOut, dLSE, cfg)
				rows := in.bind(cfg).rows(on, out, statistics, dOut, dLSE)
				for _, budget := range []int{1, maxWeights} {
					got := in.byWeights(on, dOut, rows, cfg, budget)
					require.Len(t, got, 3)
					for i := range got {
						closeTo(t, want[i], got[i])
					}
				}
			})
		}
	}
}

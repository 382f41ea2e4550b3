package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// otherLayouts are the layouts of matrices except Contiguous.
var otherLayouts = []Layout{Transposed, Strided, Sliced, Offset, Reversed, Broadcast}

func TestLayoutsHoldTheSameElements(t *testing.T) {
	axes := map[Layout]int{Transposed: 2, Interleaved: 3}
	for _, layout := range append(otherLayouts, Contiguous, Interleaved) {
		for _, shape := range [][]int{{}, {1}, {5}, {1, 1}, {3, 4}, {0, 3}, {2, 3, 4}, {2, 1, 3, 5}} {
			if len(shape) < axes[layout] {
				continue
			}
			for _, dtype := range append(DTypes(), mlxc.Uint32, mlxc.Int32, mlxc.Bool) {
				t.Run(fmt.Sprintf("%s %v %v", layout, shape, dtype), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(1, 2))
					values := Normal(1)(rng, shape)
					for i := range values {
						values[i] = math.Abs(values[i]) * 3
					}
					o, err := newOperand(values, dtype, shape, layout)
					require.NoError(t, err)
					require.Equal(t, append([]int{}, shape...), o.array.Shape())
					require.Equal(t, dtype, o.array.DType())
					got, err := arrays.Float64s(o.array)
					require.NoError(t, err)
					require.Equal(t, o.exact.Data, got)
					for _, v := range got {
						require.False(t, math.IsNaN(v), "the filler shows")
					}
					if layout != Broadcast && dtype == mlxc.Float32 {
						for i, v := range values {
							require.Equal(t, float64(float32(v)), got[i])
						}
					}
				})
			}
		}
	}
}

func TestPlacement(t *testing.T) {
	// 2×3, rows (1 2 3) and (4 5 6); _ is the filler
	values, shape := []float64{1, 2, 3, 4, 5, 6}, []int{2, 3}
	const filler = -1
	tests := map[Layout][]float64{
		Contiguous: {1, 2, 3, 4, 5, 6},
		Transposed: {1, 4, 2, 5, 3, 6},
		Strided:    {1, filler, 2, filler, 3, filler, 4, filler, 5, filler, 6, filler},
		Sliced: {
			filler, filler, filler, 1, 2, 3, filler, filler,
			filler, filler, filler, 4, 5, 6, filler, filler,
		},
		Offset:    {filler, filler, filler, 1, 2, 3, 4, 5, 6},
		Reversed:  {3, 2, 1, 6, 5, 4},
		Broadcast: {4, 5, 6}, // the last row was written last and is read for both
	}
	require.Len(t, tests, len(otherLayouts)+1)
	for layout, want := range tests {
		t.Run(string(layout), func(t *testing.T) {
			p := place(layout, shape)
			buffer := p.fill(values, shape)
			read := p.read(buffer, shape)
			for i, v := range buffer {
				if math.IsNaN(v) {
					buffer[i] = filler
				}
			}
			require.Equal(t, want, buffer)
			if layout == Broadcast {
				require.Equal(t, []float64{4, 5, 6, 4, 5, 6}, read)
			} else {
				require.Equal(t, values, read)
			}
		})
	}
	// 2×2×1, with the middle rows exchanged
	require.Equal(t, []float64{1, 3, 2, 4}, place(Interleaved, []int{2, 2, 1}).fill([]float64{1, 2, 3, 4}, []int{2, 2, 1}))
	require.Panics(t, func() { place("diagonal", shape) })
}

package ops

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// unalignedViews returns views of these shapes that begin at an odd element of a buffer, and arrays with the same elements
// and buffers of their own.
func unalignedViews(t *testing.T, dtype mlxc.DType, shapes ...[]int) (views, copies arrays) {
	t.Helper()
	for i, shape := range shapes {
		n := 1
		for _, length := range shape {
			n *= length
		}
		buffer := normal(uint64(i), dtype, n+1)
		require.NoError(t, mlxc.Eval(buffer))
		view := buffer.Slice([]int{1}, []int{n + 1}, nil).Reshape(shape...)
		views = append(views, view)
		copies = append(copies, mlxc.FromSlice(mlxtest.Floats(t, view.AsType(mlxc.Float32)), shape...).AsType(dtype))
	}
	return views, copies
}

// Operands that begin at an odd element of a buffer have the results of operands with buffers of their own. On a GPU
// with warpgroups, panels are copied in pieces of 16 bytes.
func TestAttentionOfUnalignedViews(t *testing.T) {
	for _, dtype := range []mlxc.DType{mlxc.Float16, mlxc.Float32} {
		for _, d := range []int{64, 128} {
			t.Run(fmt.Sprintf("%v/%d", dtype, d), func(t *testing.T) {
				shape := []int{1, 2, 67, d}
				views, copies := unalignedViews(t, dtype, shape, shape, shape, shape)
				run := func(args arrays) arrays {
					out, grads, err := mlxc.VJP(func(args arrays) arrays {
						return arrays{Attention(args[0], args[1], args[2], AttentionConfig{Causal: true})}
					}, args[:3], args[3:])
					require.NoError(t, err)
					return append(out, grads...)
				}
				got, want := run(views), run(copies)
				for i := range want {
					require.Equal(t, mlxtest.Floats(t, want[i].AsType(mlxc.Float32)), mlxtest.Floats(t, got[i].AsType(mlxc.Float32)))
				}
			})
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestAttentionOfUnalignedViews)

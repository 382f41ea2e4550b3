package ops

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Operands that begin at an odd element of a buffer have the gradients of operands with buffers of their own. The
// threads of a group fill rows of these widths. NVIDIA GPUs have no code for unaligned rows of them, except for the
// 8,192 floats.
func TestNormGradientsOfUnalignedViews(t *testing.T) {
	for _, c := range []struct {
		dtype mlxc.DType
		width int
	}{{mlxc.Float16, 1024}, {mlxc.Float32, 1024}, {mlxc.BFloat16, 512}, {mlxc.Float32, 8192}, {mlxc.Float16, 8192}} {
		x, w := []int{20, c.width}, []int{c.width}
		views, copies := unalignedViews(t, c.dtype, x, w, w, x)
		for name, gradients := range map[string]func(a arrays) (outputs, grads []*mlxc.Array, err error){
			"RMSNorm": func(a arrays) (outputs, grads []*mlxc.Array, err error) {
				return mlxc.VJP(norm(true, 1e-5, RMSNorm), a[:2], a[3:])
			},
			"LayerNorm": func(a arrays) (outputs, grads []*mlxc.Array, err error) {
				return mlxc.VJP(affine(true, true, 1e-5, LayerNorm), a[:3], a[3:])
			},
		} {
			t.Run(fmt.Sprintf("%s/%v/%d", name, c.dtype, c.width), func(t *testing.T) {
				_, got, err := gradients(views)
				require.NoError(t, err)
				_, want, err := gradients(copies)
				require.NoError(t, err)
				for i := range want {
					// Metal sums unaligned rows in another order.
					require.InDeltaSlice(t, mlxtest.Floats(t, want[i]), mlxtest.Floats(t, got[i]), 0.05)
				}
			})
		}
	}
}

var _ = testdevice.AlsoOnGPU(TestNormGradientsOfUnalignedViews)

package mlxheaders

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/addrspace"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// Apple's compiler accepts MLX's own kernels, so the address-space check must accept them too.
func TestMLXKernelsHaveNoAddressSpaceFinding(t *testing.T) {
	needMLXHeaders(t)
	for _, c := range headerCases(t) {
		arguments := withType(c.arguments, c.dtypes[0])
		t.Run(c.kernel+"/"+arguments, func(t *testing.T) {
			t.Parallel()
			findings, err := addrspace.Check(t.Context(), metalText(t, c.headers(), c.constants, c.kernel, arguments))
			if errors.Is(err, addrspace.ErrNoClang) {
				skip.Missing(t, skip.Clang, err)
			}
			require.Empty(t, findings)
			var unchecked *addrspace.UncheckedError
			if errors.As(err, &unchecked) && c.kernel == "fft" {
				for _, d := range unchecked.Diagnostics {
					// C++ for OpenCL, which the check compiles, does not allow functions as template arguments.
					require.Contains(t, d.Notes, "candidate template ignored: invalid explicitly-specified argument for template parameter 'radix_func'")
				}
				return
			}
			require.NoError(t, err)
		})
	}
}

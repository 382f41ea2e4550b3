package translate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/addrspace"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// The texts of this project's shaders and of the samples have no finding.
func TestGeneratedTextsHaveNoAddressSpaceFinding(t *testing.T) {
	if _, err := addrspace.Clang(); err != nil {
		skip.Missing(t, skip.Clang, err)
	}
	for name, text := range generatedTexts(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			findings, err := addrspace.Check(t.Context(), text)
			require.NoError(t, err)
			require.Empty(t, findings)
		})
	}
}

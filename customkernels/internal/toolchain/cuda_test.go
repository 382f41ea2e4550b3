package toolchain

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMissingCUDAHeaders(t *testing.T) {
	t.Setenv("CUDA_PATH", "")
	t.Setenv("CUDA_HOME", t.TempDir())
	require.ErrorIs(t, CUDAAvailable(), ErrNoCUDA)
	require.ErrorContains(t, CUDAAvailable(), "CUDA_HOME")
}

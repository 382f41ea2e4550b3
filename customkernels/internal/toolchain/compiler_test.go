package toolchain

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClangVersion(t *testing.T) {
	for line, want := range map[string]int{
		"Ubuntu clang version 18.1.3 (1)":                18,
		"Debian clang version 14.0.6":                    14,
		"Apple clang version 17.0.0 (clang-1700.0.13.5)": 17,
		"g++ (Debian 12.2.0-14+deb12u1) 12.2.0":          0,
	} {
		require.Equal(t, want, clangVersion(line), line)
	}
}

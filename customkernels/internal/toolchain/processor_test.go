package toolchain

import (
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProcessor(t *testing.T) {
	require.NotEqual(t, runtime.GOARCH, processor(), "the description holds more than the architecture")
	require.Equal(t, processor(), processor())

	const one = "processor\t: 0\nmodel name\t: A\ncpu MHz\t\t: 2100.1\nflags\t\t: fpu avx2\n\n"
	require.Equal(t, processorOf(one), processorOf(one+"processor\t: 1\nmodel name\t: A\ncpu MHz\t\t: 900.7\nflags\t\t: fpu avx2\n"))
	require.NotEqual(t, processorOf(one), processorOf("processor\t: 0\nmodel name\t: A\ncpu MHz\t\t: 2100.1\nflags\t\t: fpu\n"))
	require.NotEqual(t, processorOf("CPU part\t: 0xd0c\n"), processorOf("CPU part\t: 0xd40\n"))
	require.NotEqual(t, processorOf("Features\t: fp asimd\n"), processorOf("Features\t: fp asimd sve\n"))
}

func TestHasAVX512(t *testing.T) {
	require.True(t, hasAVX512(processorOf("model name\t: A\nflags\t\t: fpu avx512f avx512dq\n")))
	require.False(t, hasAVX512(processorOf("model name\t: A\nflags\t\t: fpu avx2 f16c\n")))
}

// Kernels use vectors of 512 bits on processors that have them.
func TestFlagsPreferWideVectors(t *testing.T) {
	flags := compilers(t)[0].flags()
	require.Equal(t, hasAVX512(processorName()), slices.Contains(flags, preferWideVectors))
}

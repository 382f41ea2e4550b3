package msl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A text with several kernels, such as MLX's own headers, runs the one that its last
// instantiation names; without one it runs the last kernel.
func TestHostChoosesTheInstantiatedKernel(t *testing.T) {
	const kernels = `template <typename T>
[[kernel]] void first(device T* y [[buffer(0)]]) { y[0] = T(1); }
template <typename T>
[[kernel]] void second(device T* y [[buffer(0)]]) { y[0] = T(2); }
`
	source, err := Host(kernels + `template [[host_name("f")]] [[kernel]] decltype(first<float>) first<float>;` + "\n")
	require.NoError(t, err)
	require.Equal(t, "first", source.KernelName)
	require.Contains(t, source.Source, "first<float>(")

	source, err = Host("[[kernel]] void a(device float* y [[buffer(0)]]) {}\n[[kernel]] void b(device float* y [[buffer(0)]]) {}\n")
	require.NoError(t, err)
	require.Equal(t, "b", source.KernelName)
}

// Metal lets a kernel leave buffer numbers out; the entry takes a place for each.
func TestHostKeepsThePlacesOfMissingBuffers(t *testing.T) {
	source, err := Host("[[kernel]] void f(const device float* x [[buffer(1)]], device float* y [[buffer(3)]]) { y[0] = x[0]; }\n")
	require.NoError(t, err)
	require.Len(t, source.Buffers, 4)
	require.Equal(t, []string{"", "x", "", "y"}, []string{
		source.Buffers[0].Name, source.Buffers[1].Name, source.Buffers[2].Name, source.Buffers[3].Name,
	})
	require.Contains(t, source.Source, "buffers[3]")
}

package msl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func parseNative(t *testing.T, text string) *File {
	t.Helper()
	s, err := NewStructure("f.metal", text, nil)
	require.NoError(t, err)
	f, err := ParseNative(s)
	require.NoError(t, err)
	return f
}

func TestInstances(t *testing.T) {
	f := parseNative(t, `
template <typename T, T (*f)(T), int N = 4, typename... Ts> kernel void copy(device T* y) {}
typedef decltype(copy<float, id<float>>) copy_t;
template [[host_name("copy_" "float")]] kernel copy_t copy<float, id<float>>;
template [[host_name("ns::copy_half")]] [[kernel]] decltype(copy<half, id<half>, 2 + 2>) copy<half, id<half>, 2 + 2>;
template kernel void copy<int, id<int>>(device int*);
template struct other<int>;
[[host_name("plain_name")]] kernel void plain(device float* y) {}
namespace a { namespace b { kernel void inner(device float* y) {} } }
`)
	require.Equal(t, []string{"copy_float", "ns::copy_half", "plain_name", "inner"}, f.Names())
	require.Len(t, f.Instances, 3)
	k, arguments, err := f.Find("ns::copy_half")
	require.NoError(t, err)
	require.Equal(t, "copy", k.Name)
	require.Equal(t, []string{"half", "id<half>", "2+2"}, arguments)
	kinds := []TemplateKind{TypeParameter, OtherParameter, IntParameter, OtherParameter}
	for i, p := range k.Template {
		require.Equal(t, kinds[i], p.Kind, p.Name)
	}
	require.Equal(t, "f", k.Template[1].Name)
	require.Equal(t, "4", k.Template[2].Default)
	k, arguments, err = f.Find("plain_name")
	require.NoError(t, err)
	require.Equal(t, "plain", k.Name)
	require.Nil(t, arguments)
	k, _, err = f.Find("inner")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, k.Namespaces)
	_, _, err = f.Find("nothing")
	require.ErrorContains(t, err, `no kernel "nothing"`)
	_, _, err = f.Find("")
	require.ErrorContains(t, err, "several kernels")
}

// A kernel that cannot run does not stop the others.
func TestProblems(t *testing.T) {
	f := parseNative(t, `
kernel void textured(depth2d<float> t [[texture(0)]], device float* y) {}
vertex float4 v(uint i [[vertex_id]]) { return 0; }
kernel void plain(constant int n[3] [[buffer(A + 1)]], threadgroup float& g, threadgroup void* p, device const float* x) {}
`)
	require.Equal(t, []string{"textured", "plain"}, f.Names())
	_, _, err := f.Find("textured")
	require.ErrorContains(t, err, "f.metal:2:22: arguments of type depth2d are not supported")
	k, _, err := f.Find("plain")
	require.NoError(t, err)
	require.Equal(t, "int", k.Buffers[0].Element)
	require.False(t, k.Buffers[0].Reference)
	require.Equal(t, -1, k.Buffers[0].Index)
	require.True(t, k.Threadgroup[0].Reference)
	require.Equal(t, "void", k.Threadgroup[1].Element)
	require.Empty(t, k.Outputs())
	require.Empty(t, parseNative(t, "float f(float x) { return x; }").Names())
}

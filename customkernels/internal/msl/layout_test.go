package msl

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func layoutOf(t *testing.T, text, name string) (*Layout, error) {
	t.Helper()
	s, err := NewStructure("f.metal", text, nil)
	require.NoError(t, err)
	items, err := s.Items()
	require.NoError(t, err)
	return s.Layout(items, name)
}

func TestLayout(t *testing.T) {
	l, err := layoutOf(t, `
constant int N = 3;
enum mode { off, on };
enum class kind : uchar { a };
namespace shapes { typedef struct { ushort width, height; } extent; }
using numbers = array<float, N>;
struct inner { half h; vector_float3 v[2]; packed_float3 p; };
struct args {
  static constant int unused = 4;
  device const float* data [[id(0)]];
  constant inner *nodes[2];
  texture2d<half, access::write> image [[id(4)]], other;
  sampler s;
  bool flag = true;
  kind k; mode m;
  shapes::extent size;
  numbers list;
  metal::float2x3 matrix;
  vec<int, 2> pair;
  inner in[2];
  atomic_uint count;
  unsigned int grid[2][2];
  void reset() { flag = false; }
};
using A = args;
`, "A")
	require.NoError(t, err)
	var got []string
	for _, f := range l.Fields {
		text := fmt.Sprintf("%s %s %d+%d", f.Name, f.Type, f.Offset, f.Size)
		switch {
		case f.Pointer():
			text += fmt.Sprintf(" %s %s const=%v", f.Buffer.Element, f.Buffer.Texture, f.Buffer.Const)
		case !f.Sampler():
			text += fmt.Sprintf(" %s %v", f.Element, f.Offsets)
		}
		got = append(got, text)
	}
	require.Equal(t, []string{
		"data device float* 0+8 float  const=true", "nodes[0] constant inner* 8+8 inner  const=true",
		"nodes[1] constant inner* 16+8 inner  const=true",
		"image texture2d<half, access::write> 24+8 half texture2d const=false",
		"other texture2d<half, access::write> 32+8 half texture2d const=false", "s sampler 40+8",
		"flag bool 48+1 bool [48]", "k kind 49+1 uchar [49]", "m mode 52+4 int [52]",
		"size.width ushort 56+2 ushort [56]", "size.height ushort 58+2 ushort [58]",
		"list numbers 60+12 float [60 64 68]", "matrix float2x3 80+32 float [80 84 88 96 100 104]",
		"pair vec<int, 2> 112+8 int [112 116]",
		"in[0].h half 128+2 half [128]", "in[0].v vector_float3 144+32 float [144 148 152 160 164 168]",
		"in[0].p packed_float3 176+12 float [176 180 184]", "in[1].h half 192+2 half [192]",
		"in[1].v vector_float3 208+32 float [208 212 216 224 228 232]", "in[1].p packed_float3 240+12 float [240 244 248]",
		"count atomic_uint 256+4 uint [256]", "grid unsigned int 260+16 unsigned int [260 264 268 272]",
	}, got)
	require.Equal(t, 288, l.Size)
	require.Equal(t, 16, l.Align)
	f, ok := l.FieldAt(58)
	require.True(t, ok)
	require.Equal(t, "size.height", f.Name)
	_, ok = l.FieldAt(50)
	require.False(t, ok, "padding")
}

func TestUnknownLayouts(t *testing.T) {
	for text, part := range map[string]string{
		"struct a { b x; };":                                          "the member x: the layout of the type b is unknown",
		"union a { int x; };":                                         `a is a structure with "union"`,
		"struct b {}; struct a : b { int x; };":                       `a is a structure with ":"`,
		"template <class T> struct a { T x; };":                       "a is a template",
		"struct a { struct { int y; } x; };":                          "a contains a definition of a structure",
		"struct a { int x[N]; };":                                     "the length N of an array is not a plain number",
		"struct a { int x : 3; };":                                    `a member with ":" has an unknown layout`,
		"struct alignas(16) a { int x; };":                            `with "alignas"`,
		"struct a { threadgroup int* x; };":                           `the pointer x has the address space "threadgroup"`,
		"struct a { int x[100000]; };":                                "more than 4096",
		"struct a { a x; };":                                          "nested more than 16 deep",
		"struct c { float y[64]; int z; }; struct a { c x[99999]; };": "more than 4096",
		"using a = int;":                                              "a is not a structure with fields",
		"":                                                            "the layout of the type a is unknown",
	} {
		_, err := layoutOf(t, text, "a")
		require.ErrorContains(t, err, part, text)
	}
}

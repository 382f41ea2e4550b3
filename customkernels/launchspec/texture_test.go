package launchspec

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// checkLaunches runs the launches of a shader text. It returns the findings of each as "kind line".
func checkLaunches(t *testing.T, text string) (found [][]string, messages []string) {
	t.Helper()
	if _, err := sanitizer.Compiler(); err != nil {
		skip.Missing(t, skip.CXX, err)
	}
	lib, err := sanitizer.LoadNative(t.Context(), fstest.MapFS{"f.metal": {Data: []byte(text)}}, "f.metal",
		sanitizer.NativeOptions{})
	require.NoError(t, err)
	specs, err := Parse([]byte(text))
	require.NoError(t, err)
	for _, s := range specs {
		k, err := lib.Kernel(s.Kernel, s.Options()...)
		require.NoError(t, err)
		launch, inputs, err := s.Arguments(k, 1)
		require.NoError(t, err)
		report, err := k.Sanitize(t.Context(), launch, sanitizer.Config{}, inputs...)
		require.NoError(t, err, "line %d", s.Line)
		require.Empty(t, report.AddressSpacesSkipped, "line %d", s.Line)
		list := []string{}
		for _, f := range report.Findings {
			list = append(list, fmt.Sprintf("%s %d", f.Kind, f.Site.Line))
			messages = append(messages, f.Message)
		}
		found = append(found, list)
	}
	return found, messages
}

// requireClean runs the launches of a shader text, which must have no finding.
func requireClean(t *testing.T, text string) {
	t.Helper()
	found, messages := checkLaunches(t, text)
	for _, list := range found {
		require.Empty(t, list, "%v", messages)
	}
}

const textureHeader = "#include <metal_stdlib>\nusing namespace metal;\n"

// Pixels are stored with the precision of their format. A component that the format does not have reads as 0, and alpha
// as 1.
func TestPixelFormats(t *testing.T) {
	requireClean(t, textureHeader+`
// launch: copy grid=2 threadgroup=2 x=r8unorm[2]:0,0.4 y=out:rgba32float[2]:expect=0,0,0,1,0.4,0,0,1
// launch: copy grid=2 threadgroup=2 x=rg8snorm[2]:-1,0.5,1,0 y=out:rgba32float[2]:expect=-1,0.503937,0,1,1,0,0,1:within=1e-6
// launch: copy grid=2 threadgroup=2 x=rgba16float[2]:1,2,3,4,0.1,-inf,7,65504 y=out:rgba32float[2]:expect=1,2,3,4,0.0999755859375,-inf,7,65504
// launch: copy grid=2 threadgroup=2 x=r32float[2]:-2,0.31 y=out:r8unorm[2]:expect=0,0.309804:within=1e-6
// launch: copy grid=2 threadgroup=2 x=r32float[2]:-2,0.30004 y=out:r16unorm[2]:expect=0,0.300038:within=1e-6
// launch: copy grid=2 threadgroup=2 x=r32float[2]:-2,0.3 y=out:rg16snorm[2]:expect=-1,0,0.299997,0:within=1e-6
// launch: copy grid=2 threadgroup=2 x=bgra8unorm[2]:uniform y=out:rgba16unorm[2]:expect=x[i]
// launch: copy grid=2 threadgroup=2 x=r32float[2]:1e9,nan y=out:r16float[2]:expect=inf,nan
kernel void copy(texture1d<float, access::read> x [[texture(0)]], texture1d<float, access::write> y [[texture(1)]],
                 uint i [[thread_position_in_grid]]) {
  y.write(x.read(i), i);
}
// launch: halves grid=2 threadgroup=2 x=rg16float[2]:1,2,3,4 y=out:rg32float[2]:expect=x[i]
kernel void halves(texture1d<half, access::read> x [[texture(0)]], texture1d<half, access::write> y [[texture(1)]],
                   ushort i [[thread_position_in_grid]]) {
  y.write(x.read(i), i);
}
// launch: integers grid=2 threadgroup=2 a=r32sint[2]:-300,70000 b=rg16uint[2]:1,2,3,65535 c=out:r8sint[2]:expect=-128,127
//   with: d=out:rgba8uint[2]:expect=1,2,0,1,3,255,0,1 e=r8sint[2]:-5,6 f=out:r16uint[2]:expect=9,65535 n=out:int32[2]:expect=e[i]
kernel void integers(texture1d<int, access::read> a, texture1d<uint, access::read> b, texture1d<int, access::write> c,
                     texture1d<uint, access::write> d, texture1d<short, access::read> e, texture1d<ushort, access::write> f,
                     device int* n, uint i [[thread_position_in_grid]]) {
  c.write(a.read(i), i);
  d.write(b.read(i), i);
  f.write(i == 0 ? ushort4(9) : ushort4(65535), i);
  n[i] = e.read(i).x;
}
`)
}

func TestTextureTypes(t *testing.T) {
	requireClean(t, textureHeader+`
// launch: layers grid=3,2,2 threadgroup=3,2,1 x=r32float[2,2,3]:iota y=out:r32float[2,2,3]:expect=x[i]+2000+200+30
kernel void layers(texture2d_array<float> x [[texture(0)]], texture2d_array<float, access::write> y [[texture(1)]],
                   uint3 p [[thread_position_in_grid]]) {
  const float sizes = x.get_array_size() * 1000 + x.get_height() * 100 + x.get_width() * 10 * x.get_num_mip_levels();
  y.write(x.read(p.xy, p.z) + sizes, p.xy, p.z);
}
// launch: volume grid=2,3,4 threadgroup=2,3,4 x=r32float[4,3,2]:iota y=out:r32float[4,3,2]:expect=x[i]+432 z=out:r32float[2,4]:expect=where(i<4,0,1)
kernel void volume(texture3d<float, access::read> x, texture3d<float, access::write> y, texture1d_array<float, access::write> z,
                   ushort3 p [[thread_position_in_grid]]) {
  y.write(x.read(p) + float(x.get_depth() * 100 + x.get_height() * 10 + x.get_width()), p);
  if (p.y == 0) z.write(float(p.x), p.z, p.x);
}
`)
}

func TestSamplers(t *testing.T) {
	requireClean(t, textureHeader+`
constant float places[] = {-0.75f, -0.125f, 0.125f, 0.25f, 1.125f, 2.5f};
// launch: modes grid=6 threadgroup=6 x=rg32float[2]:1,5,3,7 edge=out:float32[6]:expect=1,1,1,1,3,3
//   with: zero=out:float32[6]:expect=0,0,1,1,0,0 repeats=out:float32[6]:expect=1,3,1,1,1,3 mirror=out:float32[6]:expect=3,1,1,1,3,3
//   with: white=out:float32[6]:expect=1,1,1,1,1,1 alpha=out:float32[6]:expect=1,1,1,1,1,1
kernel void modes(texture1d<float> x [[texture(0)]], device float* edge, device float* zero, device float* repeats,
                  device float* mirror, device float* white, device float* alpha, uint i [[thread_position_in_grid]]) {
  constexpr sampler e;
  constexpr sampler z(coord::normalized, address::clamp_to_zero, filter::nearest);
  constexpr sampler r(address::repeat);
  constexpr sampler m(s_address::mirrored_repeat, mip_filter::none);
  constexpr sampler w(address::clamp_to_border, border_color::opaque_white);
  edge[i] = x.sample(e, places[i]).x;
  zero[i] = x.sample(z, places[i]).x;
  repeats[i] = x.sample(r, places[i]).x;
  mirror[i] = x.sample(m, places[i], level(0)).x;
  white[i] = places[i] < 0 || places[i] > 1 ? x.sample(w, places[i]).y : 1;
  alpha[i] = x.sample(z, places[i]).w;
}
// launch: scale grid=4,4 threadgroup=4,4 s=sampler:filter::linear,address::clamp_to_edge x=r32float[2,2]:iota
//   with: y=out:r32float[4,4]:expect=0,0.25,0.75,1,0.5,0.75,1.25,1.5,1.5,1.75,2.25,2.5,2,2.25,2.75,3
// launch: scale grid=4,4 threadgroup=4,4 s=sampler x=r32float[2,2]:iota y=out:r32float[4,4]:expect=where(i%4<2,0,1)+where(i<8,0,2)
kernel void scale(texture2d<float> x [[texture(0)]], sampler s [[sampler(0)]], texture2d<float, access::write> y [[texture(1)]],
                  uint2 p [[thread_position_in_grid]]) {
  y.write(x.sample(s, (float2(p) + 0.5f) / 4), p);
}
// launch: pixels grid=2 threadgroup=2 x=r32float[2,2,2]:iota v=r32float[2,2,2]:iota n=r32uint[2,2]:iota y=out:float32[2]:expect=5.5,4.75
//   with: z=out:float32[2]:expect=3.5,0.5 o=out:float32[2]:expect=5,4 u=out:uint32[2]:expect=2,3
constexpr sampler linear(coord::pixel, filter::linear, address::clamp_to_zero);
kernel void pixels(texture2d_array<float> x, texture3d<float> v, texture2d<uint> n, device float* y, device float* z,
                   device float* o, device uint* u, uint i [[thread_position_in_grid]]) {
  constexpr sampler edge(coord::pixel, mag_filter::linear);
  constexpr sampler near(coord::pixel);
  y[i] = x.sample(edge, i == 0 ? float2(1, 1) : float2(1.25f, 0.5f), 7).x;
  z[i] = v.sample(linear, i == 0 ? float3(1) : float3(0, 1, 0.5f)).x;
  o[i] = x.sample(near, float2(0.5f), 1, int2(1 - i, 0)).x;
  u[i] = n.sample(near, float2(i + 0.9f, 1.5f)).x;
}
`)
}

// Each finding is at its line, and the corrected twin, in the second text, has none.
func TestTextureFindings(t *testing.T) {
	found, messages := checkLaunches(t, textureHeader+`
// launch: bounds grid=3 threadgroup=3 x=r32float[2] y=out:r32float[2]
kernel void bounds(texture1d<float> x, texture1d<float, access::write> y, uint i [[thread_position_in_grid]]) {
  const float4 v = x.read(i - 1);
  y.write(v, i);
}
// launch: own grid=2 threadgroup=2 x=inout:r32float[2]:zeros
kernel void own(texture1d<float, access::read_write> x, uint i [[thread_position_in_grid]]) {
  x.write(float4(1), i);
  x.write(x.read(i), i);
}
// launch: flags grid=2 threadgroup=2 x=inout:r32float[2]:zeros
kernel void flags(texture1d<float, access::read_write> x, uint i [[thread_position_in_grid]]) {
  x.write(float4(1), i);
  threadgroup_barrier(mem_flags::mem_device);
  const float4 v = x.read(1 - i);
  threadgroup_barrier(mem_flags::mem_texture);
  x.write(v, i);
}
// launch: race grid=4 threadgroup=2 x=out:rg16float[1,2]
kernel void race(texture2d<half, access::write> x, uint i [[thread_position_in_grid]]) {
  x.write(half4(i), uint2(i % 2, 0));
}
// launch: unwritten grid=3 threadgroup=3 x=out:rgba8unorm[2,2]
kernel void unwritten(texture2d<float, access::write> x, uint i [[thread_position_in_grid]]) {
  x.write(float4(1), uint2(i % 2, i / 2));
}
// launch: uninitialized grid=2 threadgroup=2 x=out:r32float[2] y=out:float32[2]
kernel void uninitialized(texture1d<float, access::read_write> x, device float* y, uint i [[thread_position_in_grid]]) {
  y[i] = x.read(i).x;
  x.write(1, i);
}
// launch: mipmap grid=1 threadgroup=1 x=r32float[2] y=out:float32[1]
kernel void mipmap(texture1d<float> x, device float* y) { y[0] = x.read(0, 1).x; }
// launch: wrong grid=2 threadgroup=2 x=out:rg32float[2]:expect=0,1,1,2
kernel void wrong(texture1d<float, access::write> x, uint i [[thread_position_in_grid]]) {
  x.write(float4(i, 1, 0, 0), i);
}
`)
	require.Equal(t, [][]string{
		{"texture-bounds 6", "texture-bounds 7"},
		{"fence 12"},
		{"fence 18"},
		{"race 24"},
		{"unwritten-output 27"},
		{"uninitialized-read 32"},
		{"texture-bounds 36"},
		{"wrong-value 39"},
	}, found)
	for i, part := range []string{
		"reads x(-1), outside of the texture of 2, and Metal returns zeros", "writes y(2), outside of the texture of 2, and Metal drops",
		"reads x(0), which it wrote at line 11, and Metal makes the write visible to the read only after a fence: call x.fence()",
		"reads x(1), which thread [1 0 0] of group [0 0 0] writes at line 16, and the flags of the barrier between them omit " +
			"this memory: add mem_flags::mem_texture",
		"writes x(0), which thread [0 0 0] of group [0 0 0] writes at line 24, and threadgroups run in no order",
		"no thread writes x(1, 1), the first of 1 of 4 elements", "reads x(0), which no thread has written",
		"uses mipmap level 1 of x: the checker has level 0 only", "x[3] is 1, and 2 is expected",
	} {
		require.Contains(t, messages[i], part)
	}
	requireClean(t, textureHeader+`
// launch: bounds grid=3 threadgroup=3 x=r32float[2] y=out:r32float[2]
kernel void bounds(texture1d<float> x, texture1d<float, access::write> y, uint i [[thread_position_in_grid]]) {
  if (i < y.get_width()) y.write(x.read(max(i, 1u) - 1), i);
}
// launch: own grid=2 threadgroup=2 x=inout:r32float[2]:zeros:expect=1
kernel void own(texture1d<float, access::read_write> x, uint i [[thread_position_in_grid]]) {
  x.write(float4(1), i);
  x.fence();
  x.write(x.read(i), i);
}
// launch: flags grid=2 threadgroup=2 x=inout:r32float[2]:zeros:expect=3-i
kernel void flags(texture1d<float, access::read_write> x, uint i [[thread_position_in_grid]]) {
  x.write(float4(i), i);
  threadgroup_barrier(mem_flags::mem_texture | mem_flags::mem_device);
  const float4 v = x.read(1 - i) + x.read(i) * 0 + 2;
  threadgroup_barrier(mem_flags::mem_texture);
  x.write(v, i);
}
// launch: fenced grid=2 threadgroup=2 x=inout:r32float[2]:zeros:expect=i+1
kernel void fenced(texture1d<float, access::read_write> x, uint i [[thread_position_in_grid]]) {
  x.write(float4(i), i);
  atomic_thread_fence(mem_flags::mem_texture, memory_order_seq_cst, thread_scope_thread);
  x.write(x.read(i) + 1, i);
}
`)
}

func TestWriteToReadOnlyTexture(t *testing.T) {
	const text = textureHeader + `kernel void f(texture2d<float> x, uint2 p [[thread_position_in_grid]]) { x.write(float4(1), p); }`
	lib, err := sanitizer.LoadNative(t.Context(), fstest.MapFS{"f.metal": {Data: []byte(text)}}, "f.metal",
		sanitizer.NativeOptions{})
	require.NoError(t, err)
	k, err := lib.Kernel("f")
	require.NoError(t, err)
	_, err = k.Sanitize(t.Context(), sanitizer.Launch{Grid: [3]int{1}}, sanitizer.Config{},
		sanitizer.Array{DType: sanitizer.Float32, Shape: []int{1, 1, 1}, Data: make([]byte, 4)})
	require.ErrorContains(t, err, "f.metal:3:")
	require.ErrorContains(t, err, "only a texture with access::write or access::read_write can be written")
}

func TestBrokenTextures(t *testing.T) {
	for text, part := range map[string]string{
		"x=rgba8unorm":                 "a texture needs a size: write rgba8unorm[HEIGHT,WIDTH]",
		"x=rgb8unorm[4,4]":             `"rgb8unorm" is not a dtype`,
		"x=r64float[4]":                "for a texture a pixel format such as rgba8unorm",
		"x=bgra16float[4]":             `"bgra16float" is not a dtype`,
		"x=r8unorm[2]:0,2":             "2 does not fit unorm8: write a number from 0 to 1",
		"x=r8snorm[2]:-2..0":           "-2 does not fit snorm8",
		"x=rg8unorm[2]:0,1,1":          "3 values for 4 elements",
		"s=sampler:linear":             `"linear" is not an option of a sampler: write OPTION::VALUE, where OPTION is one of coord, filter`,
		"s=sampler:filter::cubic":      `"cubic" is not a value of a sampler's filter: write filter:: and one of nearest, linear`,
		"s=sampler:coord::pixel,":      `"" is not an option`,
		"s=sampler:address::clamp":     "clamp_to_edge, clamp_to_zero, clamp_to_border, repeat, mirrored_repeat",
		"x=out:r32float[2]:zeros":      "an output has no values",
		"x=r32float[1000000,1000000]":  "make it smaller",
		"s=sampler:filter::linear:one": `"linear:one" is not a value`,
	} {
		_, err := Parse([]byte("// launch: grid=1 threadgroup=1 " + text))
		require.ErrorContains(t, err, part, text)
	}
	const text = textureHeader + `kernel void f(texture2d<float> x, texture2d_array<int, access::write> y, sampler s, device uint* z) {}`
	lib, err := sanitizer.LoadNative(t.Context(), fstest.MapFS{"f.metal": {Data: []byte(text)}}, "f.metal",
		sanitizer.NativeOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"// launch: f grid=1 threadgroup=1 s=sampler x=rgba32float[64,64]:zeros " +
		"y=inout:rgba32sint[64,64,64]:zeros z=inout:uint32[4096]:zeros"}, lib.Drafts())
	for text, part := range map[string]string{
		"x=r32float[2,2] y=out:r32sint[1,2,2] z=out:uint32[1]":               "the sampler argument s has no state: give it one as s=sampler",
		"s=sampler y=out:r32sint[1,2,2] z=out:uint32[1]":                     "the input x is missing",
		"s=sampler x=r32float[2] y=out:r32sint[1,2,2] z=out:uint32[1]":       "x is a texture2d and its array has the shape [2 1], which must be HEIGHT, WIDTH and",
		"s=sampler x=float32[2,2,3] y=out:r32sint[1,2,2] z=out:uint32[1]":    "a pixel of the texture x has 3 components; it must have 1, 2 or 4",
		"s=sampler x=r32uint[2,2] y=out:r32sint[1,2,2] z=out:uint32[1]":      "the texture x is declared texture2d<float> and cannot hold uint32",
		"s=sampler x=r32float[2,2] y=out:rgba8unorm[1,2,2] z=out:uint32[1]":  "the texture y is declared texture2d_array<int> and cannot hold unorm8; its components must be one of [int8 int16 int32]",
		"s=sampler x=r32float[0,2] y=out:r32sint[1,2,2] z=out:uint32[1]":     "the height of the texture x is 0; it must be from 1 to 16384",
		"s=sampler x=r32float[1,16385] y=out:r32sint[1,2,2] z=out:uint32[1]": "the width of the texture x is 16385; it must be from 1 to 16384",
		"s=sampler x=r32float[2,2] y=out:r32sint[2049,1,1] z=out:uint32[1]":  "the layers of the texture y is 2049; it must be from 1 to 2048",
		"s=sampler x=out:r32float[2,2] y=out:r32sint[1,2,2]":                 "the kernel only reads x",
		"s=sampler x=r32float[2,2] y=r32sint[1,2,2] z=out:uint32[1]":         "the kernel writes y",
		"q=sampler x=r32float[2,2] y=out:r32sint[1,2,2] z=out:uint32[1]":     "there is no sampler argument q",
	} {
		s := oneLaunch(t, "f grid=1 threadgroup=1 "+text)
		k, err := lib.Kernel("f", s.Options()...)
		if err == nil {
			var launch sanitizer.Launch
			var inputs []sanitizer.Array
			if launch, inputs, err = s.Arguments(k, 1); err == nil {
				err = k.Check(launch, inputs...)
			}
		}
		require.ErrorContains(t, err, part, text)
	}
}

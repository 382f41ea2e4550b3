package launchspec

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

const structures = textureHeader + `
enum mode { off, on };
struct part { ushort low; float3 v; };
struct params { uint rows; float scale; part parts[2]; int table[4]; bool flag; mode m; char c; half4 h; simd_float2 pair; };
struct images { texture2d<float> from; texture2d<half, access::write> to; sampler s; };
struct args { device const float* x [[id(0)]]; device float* y [[id(1)]]; images i; device const int* unused[2]; uint n; };
struct node { device node* next; atomic_uint count; uint sum; };
`

func TestStructuresByFields(t *testing.T) {
	requireClean(t, structures+`
// launch: plain grid=4 threadgroup=4 y=out:float32[4]:expect=p.rows+p.scale*2+p.table[i]+p.parts[0].low+p.parts[1].v[2]-3+0.25+p.pair[1]:within=1e-6
//   with: p.rows=4294967295 p.scale=0.5 p.parts[0].low=7 p.parts[0].v=1,2,3 p.parts[1].low=9 p.parts[1].v=100,200,300
//   with: p.table=-5,0,5,10 p.flag=true p.m=1 p.c=-3 p.h=0,0.5,1,0.25 p.pair=1,2
kernel void plain(constant params& p, device float* y, uint i [[thread_position_in_grid]]) {
  y[i] = p.flag && p.m == on ? p.rows + p.scale * 2 + p.table[i] + p.parts[0].low + p.parts[1].v.z + p.c + p.h.w + vector_float2(p.pair).y : 0;
}
// launch: indirect grid=4 threadgroup=4 a.x=x a.y=result a.i.from=image a.i.to=copy a.i.s=sampler:filter::linear,address::repeat
//   with: a.unused[0]=ints a.unused[1]=ints a.n=4 x=float32[4]:iota result=out:float32[4]:expect=x[i]+1.5+a.n
//   with: image=r32float[2,2]:iota copy=out:r16float[2,2]:expect=image[i] ints=int32[1]
kernel void indirect(constant args& a [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  if (i >= a.n) return;
  a.y[i] = a.x[i] + a.i.from.sample(a.i.s, float2(0.5f)).x + a.n;
  const uint2 p(i % 2, i / 2);
  a.i.to.write(half4(a.i.from.read(p)), p);
}
// launch: list grid=4 threadgroup=4 n.next=m n.count=5 n.sum=1 m.next=n m.count=0 m.sum=2 y=out:uint32[4]:expect=3
kernel void list(device node* n, device uint* y, uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&n->next->next->count, 1, memory_order_relaxed);
  y[i] = n->next->sum + n->sum;
}
// launch: chosen grid=2 threadgroup=2 a.x=z a.y=y a.i.from=t a.i.to=u a.i.s=sampler a.unused[0]=k a.unused[1]=k a.n=1 y=inout:float32[2]:zeros:expect=7
//   with: t=r32float[1,1] u=undefined:r8unorm[1,1] k=int32[1] z=float32[2]:7
kernel void chosen(device const args* a, device float* y, uint i [[thread_position_in_grid]]) { a->y[i] = a->x[i]; }
`)
}

func TestFindingsOfStructures(t *testing.T) {
	found, messages := checkLaunches(t, structures+`
// launch: list grid=4 threadgroup=4 n.next=m n.count=5 n.sum=1 m.next=n m.count=0 m.sum=2
kernel void list(device node& n, uint i [[thread_position_in_grid]]) { n.next->sum = i; }
// launch: bounds grid=4 threadgroup=4 a.x=x a.y=y a.i.from=image a.i.to=copy a.i.s=sampler a.unused[0]=ints a.unused[1]=ints a.n=4
//   with: x=float32[3] y=out:float32[4] image=r32float[2,2] copy=undefined:r32float[2,2] ints=int32[1]
kernel void bounds(constant args& a, uint i [[thread_position_in_grid]]) {
  a.y[i] = a.x[i];
}
`)
	require.Equal(t, [][]string{{"race 12"}, {"out-of-bounds 16"}}, found)
	require.Contains(t, messages[0], "writes m.sum, which thread")
	require.Contains(t, messages[1], "reads x[3], but x has 3 elements")
}

func TestBrokenFields(t *testing.T) {
	for text, part := range map[string]string{
		"p.=1":           `"p." is not the name of a parameter`,
		"p.a=1 p.a=2":    "p.a is given twice",
		".a=1":           `".a" is not the name`,
		"p.a[x]=1":       `"p.a[x]" is not the name`,
		"grid.x=1 grid=": "is not a number of threads",
	} {
		_, err := Parse([]byte("// launch: threadgroup=1 " + text))
		require.ErrorContains(t, err, part, text)
	}
	const text = structures + `
union either { int a; float b; };
kernel void plain(constant part& p, device float* y) {}
kernel void image(texture2d<float> t, device float* y) {}
kernel void unknown(constant either& p, device float* y) {}
kernel void number(constant int& p, device float* y) {}
kernel void indirect(constant node& n, constant images& i, device const uint* z) {}
`
	lib, err := sanitizer.LoadNative(t.Context(), fstest.MapFS{"f.metal": {Data: []byte(text)}}, "f.metal",
		sanitizer.NativeOptions{})
	require.NoError(t, err)
	const images = " i.from=t i.to=u i.s=sampler t=r32float[1,1] u=undefined:r32float[1,1] z=uint32[1] "
	for text, part := range map[string]string{
		"plain y=out:float32[1]":                                   "the input p is missing",
		"plain y=out:float32[1] p.low=1":                           "give each field of p: p.v (float3) is missing",
		"plain y=out:float32[1] p.low=1 p.v=0 p.high=2":            "p has no field high: its fields are low (ushort), v (float3)",
		"plain y=out:float32[1] p.low=1 p.v=0 p.v.x=2":             "p has no field v.x",
		"plain y=out:float32[1] p.low=1 p.v=y":                     "the field p.v is a float3: give its value instead of the name y",
		"plain y=out:float32[1] p.low=65536 p.v=0":                 "the field p.low is a ushort: 65536 does not fit uint16: write an integer from 0 to 65535",
		"plain y=out:float32[1] p.low=0.5 p.v=0":                   "the field p.low is a ushort: 0.5 does not fit uint16",
		"plain y=out:float32[1] p.low=1 p.v=1,2":                   "the field p.v is a float3: 2 values for 3 elements",
		"plain y=out:float32[1] p.low=@a.npy p.v=1":                `"@a.npy" is a file, and a field takes numbers`,
		"plain y=out:float32[1] p.low= p.v=1":                      "its value is empty: write a number",
		"plain y=out:float32[1] p.low=1 p.v=1 p=uint32[8]":         "p is given as an array and by fields: keep one",
		"plain y=out:float32[1] q.low=1":                           "there is no buffer q to describe by fields",
		"plain y.a=1":                                              "the fields of y: float is not a structure with fields",
		"image y=out:float32[1] t.a=1":                             "t is a texture, which has no fields",
		"unknown y=out:float32[1] p.a=1":                           `the fields of p: either is a structure with "union"`,
		"number y=out:float32[1] p.a=1":                            "int is not a structure with fields",
		"indirect n.next=5 n.count=1 n.sum=2" + images:             `the field n.next is a device node*: "5" is no name: write the name of a buffer or texture`,
		"indirect n.next=t n.count=1 n.sum=2" + images:             "is a device node*, and t is a texture2d",
		"indirect n.next=z n.count=1 n.sum=2" + images:             "the kernel writes through n.next, and only reads the argument z",
		"indirect n.next=q n.count=1 n.sum=2" + images:             "the output q is missing: add q=out:DTYPE[SHAPE]",
		"indirect n.next=q n.count=1 n.sum=2 q=uint32[3]" + images: "the kernel writes q",
		"indirect n.next=q n.count=1 n.sum=2 q=out:uint32[9] i.from=t i.to=u i.s=linear t=r32float[1,1] u=undefined:r32float[1,1] z=uint32[1]": "the field i.s is a sampler: give its value instead of the name linear",
		"indirect n.next=q n.count=1 n.sum=2 q=out:uint32[9] i.from=t i.to=u i.s=1 t=r32float[1,1] u=undefined:r32float[1,1] z=uint32[1]":      `"1" is no state of a sampler`,
		"indirect n.next=q n.count=1 n.sum=2 q=out:uint32[9] i.from=u i.to=u i.s=sampler u=undefined:r32float[1,1] z=uint32[1]":                "the kernel writes through i.to, and only reads the argument u",
	} {
		s := oneLaunch(t, text+" grid=1 threadgroup=1")
		k, err := lib.Kernel(s.Kernel, s.Options()...)
		if err == nil {
			_, _, err = s.Arguments(k, 1)
		}
		require.ErrorContains(t, err, part, text)
	}
}

package preprocess

import (
	"fmt"
	"strings"
)

// internals returns macros for functions inside of Apple's library that shaders call, such as
// __metal_fmax(x, y, __METAL_MAYBE_FAST_MATH__). The last argument, the kind of mathematics, is dropped.
func internals() string {
	var b strings.Builder
	for parameters, names := range map[string]string{
		"x": "acos acosh asin asinh atan atanh ceil cos cosh cospi exp exp10 exp2 fabs floor fract log log10 log2 rint " +
			"round rsqrt sin sinh sinpi sqrt tan tanh tanpi trunc",
		"x, y":    "atan2 divide fdim fmax fmin fmod ldexp pow powr",
		"x, y, z": "fmax3 fmedian3 fmin3",
	} {
		for _, name := range strings.Fields(names) {
			fmt.Fprintf(&b, "#define __metal_%[1]s(%[2]s, ...) ::metal::%[1]s(%[2]s)\n", name, parameters)
		}
	}
	for _, name := range strings.Fields("broadcast shuffle shuffle_up shuffle_down shuffle_xor shuffle_rotate_up " +
		"shuffle_rotate_down shuffle_and_fill_up shuffle_and_fill_down sum product min max and or xor " +
		"prefix_inclusive_sum prefix_exclusive_sum prefix_inclusive_product prefix_exclusive_product") {
		fmt.Fprintf(&b, "#define __metal_simd_%[1]s(...) ::metal::simd_%[1]s(__VA_ARGS__)\n", name)
	}
	b.WriteString(`#define __metal_frexp(x, exponent) ::metal::frexp(x, *(exponent))
#define __metal_fma(x, y, z) ::metal::fma(x, y, z)
#define __metal_nextafter(x, y) ::metal::nextafter(x, y)
#define __metal_get_simdgroup_size(...) ushort(32)
#define __METAL_FAST_MATH__ 1
#define __METAL_PRECISE_MATH__ 0
#define __METAL_MAYBE_FAST_MATH__ 1
#define __METAL_MEMORY_SCOPE_SYSTEM__ ::metal::thread_scope_device
`)
	return b.String()
}

package preprocess

import (
	"slices"
	"strings"
	"sync"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/addrspace/prelude"
)

// The folder of Metal's headers and the file with Metal's macros, beside the copies.
const (
	metalFolder = "metal"
	metalMacros = "macros.h"
)

// predefined holds the macros of Apple's compiler for macOS that shaders test. The executors' headers define the same
// version of Metal.
const predefined = `#define __METAL__ 1
#define __METAL_VERSION__ 310
#define __METAL_MACOS__ 1
#define __METAL_CPP__ 1
#define __HAVE_BFLOAT__ 1
#define __APPLE__ 1
#define __AIR64__ 1
#define __clang__ 1
#define __LITTLE_ENDIAN__ 1
#define assert(condition) ((void)(condition))
#define TARGET_OS_OSX 1
#define TARGET_OS_MAC 1
#define TARGET_OS_IPHONE 0
#define TARGET_OS_IOS 0
#define TARGET_OS_SIMULATOR 0
#ifndef __has_feature
#define __has_feature(x) 0
#define __has_extension(x) 0
#endif
`

// integerLimits are the macros of Metal's library that a condition may compute with.
const integerLimits = `#define CHAR_BIT 8
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 0x7fffffffffffffffl
#define LONG_MIN (-LONG_MAX - 1)
#define ULONG_MAX 0xfffffffffffffffful
`

// macros returns the text that defines the macros of the language and of Metal's library. A macro of the library other
// than an integer limit stands for itself: the library of each executor replaces it.
var macros = sync.OnceValue(func() string {
	var b strings.Builder
	b.WriteString(predefined + integerLimits + internals())
	names := []string{"NULL"}
	for name := range prelude.Macros() {
		defined := strings.Contains(b.String(), "#define "+name+" ")
		if !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, "MLXG_") && !strings.HasPrefix(name, "mlxg_") && !defined {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		b.WriteString("#define " + name + " " + name + "\n")
	}
	return b.String()
})

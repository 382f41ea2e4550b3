package toolchain

import (
	"debug/elf"
	"fmt"
	"regexp"
	"runtime"
	"strings"
)

// RefuseImports returns an error if a compiled kernel refers to a function of the C or C++ library other than
// mathematics and copies. file is an object file or a shared library. The spelling of the call in the text does not
// matter, but a call to a computed address is not found. On systems other than Linux, RefuseImports returns nil.
func RefuseImports(file, kernel string) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	f, err := elf.Open(file)
	if err != nil {
		return fmt.Errorf("kernel %s: reading the compiled kernel: %w", kernel, err)
	}
	defer f.Close()
	read := f.Symbols
	if f.Type == elf.ET_DYN {
		read = f.DynamicSymbols
	}
	symbols, err := read()
	if err != nil {
		return fmt.Errorf("kernel %s: reading the symbols of the compiled kernel: %w", kernel, err)
	}
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF && s.Name != "" && refusedImport(s.Name) {
			return fmt.Errorf("kernel %s: the compiled text uses %s of the C or C++ library, which Metal does not have; "+
				"remove the call", kernel, s.Name)
		}
	}
	return nil
}

func refusedImport(name string) bool {
	if strings.HasPrefix(name, "_Z") {
		return ofLibrary.MatchString(name) // otherwise the linker rejects it
	}
	return !allowedImport.MatchString(name)
}

// ofLibrary matches the mangled names of the C++ library.
var ofLibrary = regexp.MustCompile(`^_Z(T[VIS])?(N[VKr]*)?(S[tabsoid]|9__gnu_cxx|10__cxxabiv|n[wa]|d[la])`)

// allowedImport matches, in order: mathematics, copies, the libraries of the compiler, the checker and this project.
var allowedImport = regexp.MustCompile(`^(` +
	strings.Join([]string{
		`_*a?(sin|cos|tan)h?(pi)?(f|l|f16|f128)?`,
		`_*(atan2|sincos(pi)?|exp(2|10|m1)?|log(2|10|1p|b)?|pow|sqrt|cbrt|hypot|erfc?|[tl]gamma|fmod|remainder|ldexp|frexp|modf` +
			`|fma|fmax|fmin|fdim|floor|ceil|trunc|rint|nearbyint|round|roundeven|ll?round|ll?rint|nextafter|scalbl?n|ilogb` +
			`|copysign|fabs)(f|l|f16|f128)?(_finite)?`,
		`memcpy|memmove|memset|memcmp|bcmp`,
		`__[a-z]+(qi|hi|si|di|ti|bf|hf|sf|df|xf|tf|sc|dc|xc|tc)(hf|bf|sf|df|xf|tf|si|di|ti)?[2-9]?`,
		`__gnu_[fh]2[fh]_ieee|__aarch64_[a-z]+[0-9]+_[a-z_]+|__cpu_model`,
		`__cxa_(guard_\w+|atexit|finalize|pure_virtual)|__dso_handle|__gmon_start__|__stack_chk_fail|__tls_get_addr`,
		`_ITM_\w+|_GLOBAL_OFFSET_TABLE_|__cpu_indicator_init`,
		`__(asan|tsan|ubsan)_\w+|mlxg\w+`,
	}, "|") + `)$`)

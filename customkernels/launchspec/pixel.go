package launchspec

import (
	"regexp"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

// pixelComponents holds the dtype of each component of a pixel format.
var pixelComponents = map[string]sanitizer.DType{
	"8unorm": sanitizer.Unorm8, "8snorm": sanitizer.Snorm8, "16unorm": sanitizer.Unorm16, "16snorm": sanitizer.Snorm16,
	"8uint": sanitizer.Uint8, "8sint": sanitizer.Int8, "16uint": sanitizer.Uint16, "16sint": sanitizer.Int16,
	"32uint": sanitizer.Uint32, "32sint": sanitizer.Int32, "16float": sanitizer.Float16, "32float": sanitizer.Float32,
}

var formatSyntax = regexp.MustCompile(`^(r|rg|rgba|bgra)([0-9]+[a-z]+)$`)

// parseFormat reads a pixel format such as rgba8unorm. The order of bgra8unorm is that of memory, which a kernel does not
// see, so it is rgba8unorm.
func parseFormat(name string) (d sanitizer.DType, channels int, ok bool) {
	m := formatSyntax.FindStringSubmatch(name)
	if m == nil || m[1] == "bgra" && m[2] != "8unorm" {
		return sanitizer.Invalid, 0, false
	}
	d, ok = pixelComponents[m[2]]
	return d, len(m[1]), ok
}

// normalized returns the range of the numbers that a normalized dtype holds. ok is false for another dtype.
func normalized(d sanitizer.DType) (low, high float64, ok bool) {
	switch d {
	case sanitizer.Unorm8, sanitizer.Unorm16:
		return 0, 1, true
	case sanitizer.Snorm8, sanitizer.Snorm16:
		return -1, 1, true
	}
	return 0, 0, false
}

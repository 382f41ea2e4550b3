package toolchain

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// processorName identifies the processor for the cache key: compiled kernels use all instructions of the processor.
var processorName = sync.OnceValue(processor)

// processorLine matches the lines of /proc/cpuinfo that affect generated code, on amd64 and arm64, but not clock rates
// and core numbers.
var processorLine = regexp.MustCompile(`(?m)^(vendor_id|cpu family|model|model name|stepping|flags|CPU [a-z]+|Features)\s*:.*$`)

// processorOf returns the distinct lines of all cores, sorted, since cores may differ.
func processorOf(cpuinfo string) string {
	lines := processorLine.FindAllString(cpuinfo, -1)
	slices.Sort(lines)
	return strings.Join(append(slices.Compact(lines), runtime.GOARCH), "\n")
}

// hasAVX512 reports whether the processor of that name has vector registers of 512 bits.
func hasAVX512(name string) bool { return strings.Contains(name, " avx512f ") }

package toolchain

import (
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// processorName tells apart processors for which a compiler generates different code: compiled kernels
// use the instructions of the processor that they were compiled on.
var processorName = sync.OnceValue(processor)

// processorLine matches the lines of /proc/cpuinfo on which generated code depends, on amd64 and arm64. It
// leaves out clock rates and core numbers.
var processorLine = regexp.MustCompile(`(?m)^(vendor_id|cpu family|model|model name|stepping|flags|CPU [a-z]+|Features)\s*:.*$`)

// processorOf returns the distinct lines of all cores, sorted: cores may differ.
func processorOf(cpuinfo string) string {
	lines := processorLine.FindAllString(cpuinfo, -1)
	slices.Sort(lines)
	return strings.Join(append(slices.Compact(lines), runtime.GOARCH), "\n")
}

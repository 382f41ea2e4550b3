package toolchain

import (
	"runtime"
	"syscall"
)

func processor() string {
	// If the brand is unreadable, the architecture alone identifies the processor.
	brand, _ := syscall.Sysctl("machdep.cpu.brand_string")
	return brand + "\n" + runtime.GOARCH
}

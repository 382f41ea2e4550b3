package toolchain

import (
	"runtime"
	"syscall"
)

func processor() string {
	brand, _ := syscall.Sysctl("machdep.cpu.brand_string") // without it, the architecture alone decides
	return brand + "\n" + runtime.GOARCH
}

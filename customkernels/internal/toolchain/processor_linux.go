package toolchain

import "os"

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // if unreadable, the architecture alone identifies the processor
	return processorOf(string(text))
}

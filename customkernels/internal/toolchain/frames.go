package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxFrame is the largest frame of a function in bytes. A thread of a kernel has a stack of 128 KiB (stack_size in
// mlxg_abi.h), which also holds the frames of the functions that it calls.
const maxFrame = 112 << 10

// refuseFrames returns an error if the local variables of a function do not fit a thread's stack. The compiler has
// written the sizes of the frames to a file in dir, because of the flag -fstack-usage.
func refuseFrames(dir, kernel string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.su"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Split(line, "\t") // place and function, bytes, kind
			if len(fields) < 2 {
				continue
			}
			if n, err := strconv.Atoi(fields[1]); err == nil && n > maxFrame {
				return fmt.Errorf("kernel %s: the local variables of a thread take %d bytes, and at most %d are allowed: "+
					"use smaller arrays, or device memory", kernel, n, maxFrame)
			}
		}
	}
	return nil
}

package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxFrame is the largest frame of a function in bytes: 112 KiB with pages of 4 KiB. A thread of a kernel has a stack of
// 128 KiB (stack_size in mlxg_abi.h), which also has a guard page and the frames of the functions that it calls.
var maxFrame = 116<<10 - os.Getpagesize()

// refuseFrames returns an error if the local variables of a function do not fit a thread's stack. The compiler has
// written the sizes of the frames to a file in dir, because of the flag -fstack-usage.
func refuseFrames(dir, kernel string) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		if filepath.Ext(file.Name()) != ".su" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
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

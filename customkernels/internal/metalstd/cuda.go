package metalstd

import (
	"fmt"
	"strings"
	"sync"
)

// CUDA returns the library for NVIDIA GPUs as one text: metal_cuda.h with its includes expanded, without
// comments and indentation.
var CUDA = sync.OnceValues(func() (string, error) {
	var b strings.Builder
	if err := expand(&b, "metal_cuda.h", map[string]bool{}); err != nil {
		return "", err
	}
	return b.String(), nil
})

// expand writes a header of the folder cuda or common, with each header that it includes in the place of the first
// include. It drops includes of system headers: MLX includes CUDA's own before a custom kernel.
func expand(b *strings.Builder, name string, done map[string]bool) error {
	if done[name] {
		return nil
	}
	done[name] = true
	text, err := files.ReadFile("cuda/" + name)
	if err != nil {
		text, err = files.ReadFile("common/" + name)
	}
	if err != nil {
		return fmt.Errorf("metalstd: no header %s for CUDA", name)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimLeft(line, " \t\n")
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		rest, ok := strings.CutPrefix(line, "#include ")
		if !ok {
			b.WriteString(line)
			continue
		}
		if local := strings.TrimSpace(rest); strings.HasPrefix(local, `"`) {
			if err := expand(b, strings.Trim(local, `"`), done); err != nil {
				return err
			}
		}
	}
	return nil
}

// Package cuda gives Metal's vocabulary on NVIDIA GPUs. The headers of this folder stand for
// those of package host that depend on the machine; the others are shared.
package cuda

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/host"
)

//go:embed metal_*.h
var headers embed.FS

// Vocabulary is metal_cuda.h with all that it includes, as one text without comments and
// indentation.
var Vocabulary = sync.OnceValues(func() (string, error) {
	var b strings.Builder
	if err := include(&b, "metal_cuda.h", map[string]bool{}); err != nil {
		return "", err
	}
	return b.String(), nil
})

// include writes a header, and those that it includes in their places, each once. Headers
// of the system are left out: MLX puts CUDA's before a custom kernel.
func include(b *strings.Builder, name string, done map[string]bool) error {
	if done[name] {
		return nil
	}
	done[name] = true
	text, err := fs.ReadFile(headers, name)
	if err != nil {
		text, err = fs.ReadFile(host.Headers(), name)
	}
	if err != nil {
		return fmt.Errorf("there is no header %s in Metal's vocabulary: %w", name, err)
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
			if err := include(b, strings.Trim(local, `"`), done); err != nil {
				return err
			}
		}
	}
	return nil
}

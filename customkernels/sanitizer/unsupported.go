package sanitizer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
)

// UnsupportedByMLX returns the reasons why MLX's custom kernels do not support a launch, each with a remedy, or the
// empty string. Metal supports such launches, so the checker runs them.
func (k *Kernel) UnsupportedByMLX(l Launch, inputs ...Array) string {
	var reasons []string
	add := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	if slices.ContainsFunc(k.loaded.Parsed.Buffers, func(b *msl.Buffer) bool { return b.Texture != "" }) {
		add("the kernel has textures, and MLX's custom kernels have none: pass the pixels as a buffer")
	}
	if len(k.loaded.Pointers()) > 0 {
		add("the kernel has an argument buffer, and MLX's custom kernels have none: declare an argument for each pointer")
	}
	for _, b := range k.loaded.Parsed.Buffers {
		if b.Coherent {
			add("the buffer %s is coherent, and MLX's signature cannot declare that: let a second launch read the "+
				"results of the first", b.Name)
		}
	}
	for _, b := range k.loaded.Source.Outputs {
		if l.hasContent(b.Name) && b.Texture == "" {
			add("the buffer %s is read and written, and MLX's outputs are new arrays: read an input and write an "+
				"output", b.Name)
		}
	}
	if k.loaded.Native != nil {
		return strings.Join(reasons, "; ")
	}
	for i, b := range k.loaded.Source.Inputs {
		n := inputs[i].Size()
		if n < shader.InDevice && k.loaded.Source.Cast[i] && b.Space == msl.Device && !k.loaded.Pads[i] {
			add("the input %s is read as %s from %d elements, which MLX puts in constant memory, and cannot be "+
				"padded because the kernel reads its shape: give it at least %d",
				b.Name, b.Element, n, shader.InDevice)
		}
	}
	return strings.Join(reasons, "; ")
}

// checkInOut returns an error if an in-out buffer does not match its output.
func (k *Kernel) checkInOut(l Launch) error {
	for name, a := range l.InOut {
		i := slices.IndexFunc(k.loaded.Source.Outputs, func(b *msl.Buffer) bool { return b.Name == name })
		if i < 0 {
			return fmt.Errorf("the kernel has no writable buffer %s for in-out content: its outputs are %v", name, k.Outputs())
		}
		if o := l.Outputs[i]; a.DType != o.DType || !slices.Equal(a.Shape, o.Shape) {
			return fmt.Errorf("the in-out buffer %s holds %v%v and its output is %v%v: give both the same shape and "+
				"dtype",
				name, a.DType, a.Shape, o.DType, o.Shape)
		}
	}
	return nil
}

// hasContent reports whether a writable buffer has content before the launch.
func (l Launch) hasContent(name string) bool {
	_, ok := l.InOut[name]
	return ok
}

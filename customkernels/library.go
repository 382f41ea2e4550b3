package customkernels

import (
	"embed"
	"fmt"
	"io/fs"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
)

//go:embed shaders
var shaders embed.FS

// Shaders returns the kernels of this project, one family a .metal file, and the
// .h files that they include.
func Shaders() fs.FS {
	sub, err := fs.Sub(shaders, "shaders")
	if err != nil {
		panic(err) // the name is a constant and valid
	}
	return sub
}

// Library is a Metal shader file with what it includes.
type Library struct{ file *shader.File }

// Load reads and parses a Metal shader file of a file system, and the files of it that
// the shader includes: #include "name.h" stands for their text, once, and a name counts
// from the folder of the file that it stands in. The error names file, line and
// column, and says what to do. The text is compiled only when a kernel of it is
// launched.
func Load(fsys fs.FS, name string) (*Library, error) {
	file, err := shader.Load(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("customkernels: Load: %w", err)
	}
	return &Library{file}, nil
}

// Names lists the kernels of the file in its order.
func (l *Library) Names() []string { return l.file.Names() }

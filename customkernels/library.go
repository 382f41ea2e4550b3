package customkernels

import (
	"embed"
	"fmt"
	"io/fs"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
)

//go:embed shaders
var shaders embed.FS

// Shaders returns this project's kernels: .metal files, one for each family of kernels, and the .h files that they
// include.
func Shaders() fs.FS {
	sub, err := fs.Sub(shaders, "shaders")
	if err != nil {
		panic(err) // the name is valid
	}
	return sub
}

// A Library is a Metal shader file and the files that it includes.
type Library struct{ file *shader.File }

// Load reads and parses a Metal shader file of a file system. An #include "name.h" includes a file of the same file
// system, at most once. Its name is relative to the folder of the including file. The error names file, line and
// column, and a remedy. The first launch of a kernel compiles it.
func Load(fsys fs.FS, name string) (*Library, error) {
	file, err := shader.Load(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("customkernels: Load: %w", err)
	}
	return &Library{file}, nil
}

// Names returns the names of the kernels in the order of the file.
func (l *Library) Names() []string { return l.file.Names() }

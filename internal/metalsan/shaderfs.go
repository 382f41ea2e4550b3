package metalsan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// shaderFiles is the file system from which a shader is loaded: the shader itself, which may be anywhere, and regular
// files below its folder and the given folders. Names are names of the operating system, absolute or relative to the
// working folder, so that messages name files as the user did.
type shaderFiles struct {
	shader  string
	text    []byte // text of the shader, which may be a pipe that can be read only once
	folders []string
	read    map[string][]byte // texts of the files that were read, by name
}

func newShaderFiles(shader string, folders []string) (shaderFiles, error) {
	text, err := os.ReadFile(shader)
	return shaderFiles{
		shader, text, append([]string{filepath.Dir(shader)}, folders...), map[string][]byte{shader: text},
	}, err
}

// Open implements [fs.FS], except for the form of names. Symbolic links do not lead out of the folders.
func (f shaderFiles) Open(name string) (fs.File, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	for _, folder := range f.folders {
		base, err := filepath.Abs(folder)
		if err != nil {
			return nil, err
		}
		below, err := filepath.Rel(base, absolute)
		if err != nil || !filepath.IsLocal(below) {
			continue
		}
		return openBelow(base, below)
	}
	return nil, &fs.PathError{
		Op: "open", Path: name,
		Err: fmt.Errorf("it lies outside of the folder of %s: name a folder above both with --include", f.shader),
	}
}

// openBelow opens a regular file. It does not block on a pipe.
func openBelow(folder, name string) (fs.File, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("it is not a regular file")}
	}
	return root.Open(name)
}

// Stat implements [fs.StatFS].
func (f shaderFiles) Stat(name string) (fs.FileInfo, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return file.Stat()
}

// ReadFile implements [fs.ReadFileFS].
func (f shaderFiles) ReadFile(name string) ([]byte, error) {
	if name == f.shader {
		return slices.Clone(f.text), nil
	}
	text, err := fs.ReadFile(struct{ fs.FS }{f}, name)
	if err == nil {
		f.read[name] = text
	}
	return text, err
}

// Package shader loads the kernels of a shader file, for launching and for checking. It needs neither MLX nor cgo.
package shader

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

// A File is a Metal shader file and the files that it includes.
type File struct {
	name   string
	parsed *msl.File
	native bool // see LoadNative
}

// Load reads and parses a shader file of a file system.
func Load(fsys fs.FS, name string) (*File, error) {
	parsed, err := msl.Parse(fsys, name)
	if err != nil {
		return nil, err
	}
	return &File{name: name, parsed: parsed}, nil
}

// Names returns the names of the kernels in the order of the file. Explicit instantiations of a native file take the
// place of their templates.
func (f *File) Names() []string { return f.parsed.Names() }

// Problem returns the reason why a kernel of a native file cannot run, or nil.
func (f *File) Problem(name string) error {
	_, _, err := f.parsed.Find(name)
	return err
}

// A Kernel is a kernel function with the values of its options.
type Kernel struct {
	Name   string
	File   string
	Parsed *msl.Kernel
	Source translate.MLXSource
	Pads   []bool // for each input, whether small arrays are padded, so that MLX passes them in device memory
	ID     string // the name and a digest of the source, since MLX caches kernels by name
	// Native is set for a kernel of LoadNative. Source then holds its buffers only.
	Native *native
}

// Kernel returns a function of the file. The empty name stands for the only function.
func (f *File) Kernel(name string, options ...Option) (*Kernel, error) {
	if f.native {
		return f.nativeKernel(name, options)
	}
	parsed, err := f.parsed.Kernel(name)
	if err != nil {
		return nil, err
	}
	values, err := applied(parsed, options)
	if err != nil {
		return nil, err
	}
	source := translate.MLX(parsed, values...)
	if len(source.Unsized) > 0 {
		return nil, unsized(parsed, source.Unsized[0])
	}
	if len(source.Unset) > 0 {
		return nil, unset(parsed, source.Unset[0])
	}
	return &Kernel{
		Name: parsed.Name, File: f.name, Parsed: parsed, Source: source, Pads: pads(parsed, source.Inputs),
		ID: parsed.Name + "_" + Digest(source.Header, source.Body)[:8],
	}, nil
}

// applied returns the values that the options set for a kernel.
func applied(k *msl.Kernel, options []Option) ([]translate.Option, error) {
	var values []translate.Option
	for _, o := range options {
		v, err := o(k)
		if err != nil {
			return nil, kernelError(k, err)
		}
		if v != nil {
			values = append(values, v)
		}
	}
	return values, nil
}

// Digest returns a short hash of texts.
func Digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return fmt.Sprintf("%x", sum[:8])
}

// InDevice is the least number of elements of an input in device memory. MLX passes smaller inputs in constant memory,
// to which a device pointer cannot point.
const InDevice = 8

// pads reports for each input whether small arrays are padded to InDevice elements: inputs in device memory, unless the
// kernel reads their shape, which padding changes.
func pads(parsed *msl.Kernel, inputs []*msl.Buffer) []bool {
	padded := make([]bool, len(inputs))
	for i, b := range inputs {
		padded[i] = b.Space == msl.Device &&
			!slices.ContainsFunc(parsed.Buffers, func(o *msl.Buffer) bool { return o.Implicit == b.Name })
	}
	return padded
}

// One shape of each size class. MLX generates one declaration of an input for all shapes of a class.
var (
	ScalarShape = []int{}
	SmallShape  = []int{1}
	LargeShape  = []int{InDevice}
)

// SizeClass returns the shape of the size class of an array for input i, given its number of axes and elements.
func (k *Kernel) SizeClass(i, axes, size int) []int {
	switch {
	case k.Pads[i], k.Source.Cast[i] && k.Source.Inputs[i].Space == msl.Device:
		return LargeShape
	case axes == 0:
		return ScalarShape
	case size < InDevice:
		return SmallShape
	}
	return LargeShape
}

// Axes returns the grid and the threadgroup of a launch with axes of 0 set to 1, except the grid's first.
func Axes(grid, threadgroup [3]int) (whole, group [3]int) {
	for i := range 3 {
		threadgroup[i] = cmp.Or(threadgroup[i], 1)
		if i > 0 {
			grid[i] = cmp.Or(grid[i], 1)
		}
	}
	return grid, threadgroup
}

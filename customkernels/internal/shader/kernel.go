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
}

// Load reads and parses a shader file of a file system.
func Load(fsys fs.FS, name string) (*File, error) {
	parsed, err := msl.Parse(fsys, name)
	if err != nil {
		return nil, err
	}
	return &File{name, parsed}, nil
}

// Names returns the names of the kernels in the order of the file.
func (f *File) Names() []string {
	names := make([]string, len(f.parsed.Kernels))
	for i, k := range f.parsed.Kernels {
		names[i] = k.Name
	}
	return names
}

// A Kernel is a kernel function with the values of its options.
type Kernel struct {
	Name   string
	File   string
	Parsed *msl.Kernel
	Source translate.MLXSource
	Pads   []bool // for each input, whether small arrays are padded, so that MLX passes them in device memory
	ID     string // the name and a digest of the source, since MLX caches kernels by name
}

// Kernel returns a function of the file. The empty name stands for the only function.
func (f *File) Kernel(name string, options ...Option) (*Kernel, error) {
	parsed, err := f.parsed.Kernel(name)
	if err != nil {
		return nil, err
	}
	fail := func(err error) error { return fmt.Errorf("%s: %s: %w", parsed.Pos, parsed.Name, err) }
	var values []translate.MLXOption
	for _, o := range options {
		v, err := o(parsed)
		if err != nil {
			return nil, fail(err)
		}
		if v != nil {
			values = append(values, v)
		}
	}
	source := translate.MLX(parsed, values...)
	if len(source.Unsized) > 0 {
		return nil, fail(fmt.Errorf("the threadgroup argument %s has no size: give it one with ThreadgroupSize, or "+
			"as %[1]s=threadgroup:ELEMENTS in a launch description", source.Unsized[0]))
	}
	if len(source.Unset) > 0 {
		return nil, fail(fmt.Errorf("the function constant %s has no value: give it one with FunctionConstant, or as "+
			"%[1]s=VALUE in a launch description", source.Unset[0]))
	}
	return &Kernel{
		Name: parsed.Name, File: f.name, Parsed: parsed, Source: source, Pads: pads(parsed, source.Inputs),
		ID: parsed.Name + "_" + Digest(source.Header, source.Body)[:8],
	}, nil
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

package launchspec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/npy"
)

// npyTypes maps NumPy's types to dtypes. NumPy has no bfloat16; MLX and ml_dtypes write V2 for it.
var npyTypes = map[string]sanitizer.DType{
	"b1": sanitizer.Bool, "u1": sanitizer.Uint8, "u2": sanitizer.Uint16, "u4": sanitizer.Uint32, "u8": sanitizer.Uint64,
	"i1": sanitizer.Int8, "i2": sanitizer.Int16, "i4": sanitizer.Int32, "i8": sanitizer.Int64,
	"f2": sanitizer.Float16, "f4": sanitizer.Float32, "f8": sanitizer.Float64, "V2": sanitizer.BFloat16, "c8": sanitizer.Complex64,
}

// ReadFiles reads the initial and the expected elements that lie in files of folder. It must precede [Spec.Arguments]
// if the description names a file. The package documentation describes the formats.
func (s *Spec) ReadFiles(fsys fs.FS, folder string) error {
	fail := func(what, name, file string, err error) error {
		return fmt.Errorf("line %d: launch description: %s of %s: %s: %w", s.Line, what, name, file, err)
	}
	for _, list := range [][]Input{s.Inputs, s.InOut} {
		for i, in := range list {
			if in.Fill.Kind != FillFile {
				continue
			}
			a, err := readArray(fsys, filepath.Join(folder, in.Fill.File), in.DType, in.size())
			if err == nil && a.DType != in.DType {
				err = fmt.Errorf("its dtype is %v; the description says %v", a.DType, in.DType)
			}
			if err != nil {
				return fail("elements", in.Name, in.Fill.File, err)
			}
			list[i].Fill.data = a.Data
		}
	}
	for i, e := range s.Expected {
		name, ok := strings.CutPrefix(e.Text, "@")
		if !ok {
			continue
		}
		output := s.Launch.Outputs[slices.Index(s.OutputNames, e.Output)]
		values, err := readValues(fsys, filepath.Join(folder, name), output)
		if err != nil {
			return fail("expected values", e.Output, name, err)
		}
		s.Expected[i].values = values
	}
	return nil
}

// readValues reads the expected values of an output. A text may have one number for all elements.
func readValues(fsys fs.FS, name string, o sanitizer.Output) ([]float64, error) {
	if isText(name) {
		return readNumbers(fsys, name)
	}
	a, err := readArray(fsys, name, o.DType, sanitizer.Array{Shape: o.Shape}.Size())
	return a.Values(), err
}

func isText(name string) bool { return !slices.Contains([]string{".npy", ".bin"}, path.Ext(name)) }

func readNumbers(fsys fs.FS, name string) ([]float64, error) {
	content, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	return numbers(strings.Fields(string(content)))
}

// readArray reads n elements. Only a .npy file may have another dtype than d.
func readArray(fsys fs.FS, name string, d sanitizer.DType, n int) (a sanitizer.Array, err error) {
	a = sanitizer.Array{DType: d, Shape: []int{n}, Data: []byte{}}
	if isText(name) {
		values, err := readNumbers(fsys, name)
		if err == nil && len(values) != n {
			err = fmt.Errorf("%d numbers for %d elements", len(values), n)
		}
		for _, v := range values {
			if err == nil {
				err = checkValue(v, d)
			}
			a.Data = d.Append(a.Data, v)
		}
		return a, err
	}
	f, err := fsys.Open(name)
	if err != nil {
		return a, err
	}
	defer f.Close()
	swapped := binary.NativeEndian.Uint16([]byte{0, 1}) == 1
	if path.Ext(name) == ".npy" {
		h, _, err := npy.ReadHeader(f)
		if err != nil {
			return a, clearer(err)
		}
		if a.DType, err = npyDType(h, n); err != nil {
			return a, err
		}
		swapped = h.Swapped
	}
	a.Data, err = io.ReadAll(io.LimitReader(f, int64(n*a.DType.Size())+1))
	switch {
	case err != nil:
		return a, err
	case len(a.Data) < n*a.DType.Size():
		return a, fmt.Errorf("it ends after %d bytes; %d elements of %v have %d", len(a.Data), n, a.DType, n*a.DType.Size())
	case len(a.Data) > n*a.DType.Size():
		return a, fmt.Errorf("it has more bytes than the %d of %d elements of %v", n*a.DType.Size(), n, a.DType)
	}
	if swapped {
		width := a.DType.Size()
		if a.DType == sanitizer.Complex64 {
			width /= 2 // real and imaginary part
		}
		for number := range slices.Chunk(a.Data, width) {
			slices.Reverse(number)
		}
	}
	return a, nil
}

// npyDType returns the dtype of a file that must hold n elements in C's order.
func npyDType(h npy.Header, n int) (sanitizer.DType, error) {
	d, ok := npyTypes[h.Type]
	if !ok {
		return d, fmt.Errorf("its type is %s, which MLX lacks", h.Type)
	}
	if h.Fortran && len(h.Shape) > 1 {
		return d, errors.New("its elements are in Fortran's order; save them in C's order, with numpy.ascontiguousarray")
	}
	elements := uint64(1)
	for _, length := range h.Shape {
		elements *= min(length, maxElements+1)
		elements = min(elements, maxElements+1)
	}
	if elements != uint64(n) {
		return d, fmt.Errorf("its shape is %v; the description has %d elements", h.Shape, n)
	}
	return d, nil
}

// clearer names the end of a truncated file.
func clearer(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it ends within its header")
	}
	return err
}

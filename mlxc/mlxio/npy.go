package mlxio

import (
	"fmt"
	"io"
	"slices"

	"github.com/mlxgrad/mlxgrad/internal/npy"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// npyTypes maps NumPy's type strings, without byte order, to dtypes. NumPy has no bfloat16; MLX and ml_dtypes write V2,
// two bytes of unspecified type, for it.
var npyTypes = map[string]mlxc.DType{
	"b1": mlxc.Bool, "u1": mlxc.Uint8, "u2": mlxc.Uint16, "u4": mlxc.Uint32, "u8": mlxc.Uint64,
	"i1": mlxc.Int8, "i2": mlxc.Int16, "i4": mlxc.Int32, "i8": mlxc.Int64,
	"f2": mlxc.Float16, "f4": mlxc.Float32, "f8": mlxc.Float64, "V2": mlxc.BFloat16, "c8": mlxc.Complex64,
}

// LoadNPY opens a file of NumPy's .npy format. The array is lazy, as with [LoadSafetensors]: it reads its elements when
// it is evaluated. LoadNPY supports both byte orders and both orders of axes (C and Fortran). An array in the byte
// order opposite to the machine's is not lazy: LoadNPY reads it. The type V2 is bfloat16, as in MLX.
//
// A malformed header, a dtype that MLX lacks, and a file size that differs from the header are errors.
func LoadNPY(path string) (a *mlxc.Array, err error) {
	err = loadFile("LoadNPY", path, func(r io.Reader, size int64, from elementSource) (err error) {
		a, err = readNPY(r, size, from)
		return err
	})
	return a, err
}

// ReadNPY is [LoadNPY] for any reader. It reads all elements before it returns, and no byte after the last element.
func ReadNPY(r io.Reader) (a *mlxc.Array, err error) {
	err = readFrom("ReadNPY", r, func(r io.Reader, size int64, from elementSource) (err error) {
		a, err = readNPY(r, size, from)
		return err
	})
	return a, err
}

// SaveNPY evaluates the array and writes it to a file of NumPy's .npy format, in row-major order. It replaces the file
// like [SaveSafetensors].
func SaveNPY(path string, a *mlxc.Array) error {
	return saveFile("SaveNPY", path, func(w io.Writer) error { return writeNPY(w, a) })
}

// WriteNPY is [SaveNPY] for any writer.
func WriteNPY(w io.Writer, a *mlxc.Array) error {
	if err := writeNPY(w, a); err != nil {
		return mlxc.NewError("WriteNPY", err, a)
	}
	return nil
}

func readNPY(r io.Reader, size int64, from elementSource) (*mlxc.Array, error) {
	h, start, err := npy.ReadHeader(r)
	if err != nil {
		return nil, truncated(err)
	}
	d, ok := npyTypes[h.Type]
	if !ok {
		return nil, fmt.Errorf("MLX has no dtype %s", h.Type)
	}
	shape, elements, err := checkDims(d, h.Shape)
	if err != nil {
		return nil, err
	}
	n := int64(elements) * int64(d.Size())
	if size != maxBytes && size != start+n {
		return nil, fmt.Errorf("the file has %d bytes, but its header describes %d", size, start+n)
	}
	if h.Fortran {
		slices.Reverse(shape)
	}
	var a *mlxc.Array
	if h.Swapped && d.Size() > 1 {
		a, err = loadSwapped(from, start, n, shape, d)
	} else {
		a, err = loadArray(from, start, shape, d)
	}
	if err != nil || !h.Fortran || len(shape) < 2 {
		return a, err
	}
	defer a.Free()
	t := a.Transpose()
	return t, t.Err()
}

// loadSwapped reads an array in the byte order opposite to the machine's.
func loadSwapped(from elementSource, start, n int64, shape []int, d mlxc.DType) (*mlxc.Array, error) {
	r, err := from.section(start, n)
	if err != nil {
		return nil, err
	}
	width := d.Size()
	if d == mlxc.Complex64 {
		width /= 2 // real and imaginary part
	}
	return readLeaf(&swapper{r, width}, shape, d)
}

// swapper reads numbers of width bytes and reverses the bytes of each. The length of a buffer for Read must be a
// multiple of width.
type swapper struct {
	r     io.Reader
	width int
}

func (s *swapper) Read(p []byte) (int, error) {
	p = p[:min(len(p), 1<<16)]
	n, err := io.ReadFull(s.r, p)
	for number := range slices.Chunk(p[:n], s.width) {
		slices.Reverse(number)
	}
	return n, err
}

func writeNPY(w io.Writer, a *mlxc.Array) error {
	if err := mlxc.Eval(a); err != nil {
		return err
	}
	if a.NDim() > maxAxes {
		return fmt.Errorf("the array has %d axes; the maximum is %d", a.NDim(), maxAxes)
	}
	var kind string
	for name, d := range npyTypes {
		if d == a.DType() {
			kind = name
		}
	}
	if _, err := w.Write(npy.FormatHeader(kind, a.DType().Size(), a.Shape())); err != nil {
		return err
	}
	return writeElements(w, a)
}

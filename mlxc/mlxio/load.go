package mlxio

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"unsafe"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/internal/hook"
)

// core holds functions of package mlxc that are not part of its API.
var core = hook.UseFiles[*mlxc.Array, mlxc.DType]()

// maxBytes is the size of the address space of 64-bit processors. It also stands for the unknown size of a stream.
const maxBytes = 1 << 47

// elementSource gives access to the elements of a file's arrays.
type elementSource interface {
	// array returns an array of the elements from offset on, in row-major order and the machine's byte order.
	// Offsets must ascend from call to call, without overlaps.
	array(offset int64, shape []int, d mlxc.DType) (*mlxc.Array, error)
	// section returns a reader of n bytes from offset on. It is valid until the next call.
	section(offset, n int64) (io.Reader, error)
}

// lazyFile is an elementSource of lazy arrays.
type lazyFile struct {
	*os.File
	source unsafe.Pointer // owns a duplicate of the file's descriptor
}

func newLazyFile(f *os.File) (*lazyFile, error) {
	source, err := core.OpenSource(f.Fd())
	if err != nil {
		return nil, err
	}
	return &lazyFile{File: f, source: source}, nil
}

func (f *lazyFile) free() { core.CloseSource(f.source) }

func (f *lazyFile) array(offset int64, shape []int, d mlxc.DType) (*mlxc.Array, error) {
	return core.Load(f.source, offset, shape, d)
}

func (f *lazyFile) section(offset, n int64) (io.Reader, error) {
	return io.NewSectionReader(f, offset, n), nil
}

// byteStream is an elementSource that reads an io.Reader in one pass.
type byteStream struct {
	r      io.Reader
	offset int64
}

// Read reads the next bytes: first the header, then the elements.
func (s *byteStream) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.offset += int64(n)
	return n, err
}

func (s *byteStream) array(offset int64, shape []int, d mlxc.DType) (*mlxc.Array, error) {
	n, err := core.CheckShape(d, shape)
	if err != nil {
		return nil, err
	}
	r, err := s.section(offset, int64(n)*int64(d.Size()))
	if err != nil {
		return nil, err
	}
	return readLeaf(r, shape, d)
}

func (s *byteStream) section(offset, n int64) (io.Reader, error) {
	if n == 0 { // its offset may lie beyond the end
		return bytes.NewReader(nil), nil
	}
	if offset < s.offset {
		return nil, fmt.Errorf("the elements at byte %d overlap earlier ones, which end at byte %d", offset, s.offset)
	}
	if _, err := io.CopyN(io.Discard, s, offset-s.offset); err != nil {
		return nil, truncated(err)
	}
	return io.LimitReader(s, n), nil
}

const (
	trustedSize   = 32 << 20 // bytes that readLeaf allocates before it reads
	trustedGrowth = 16       // maximum ratio of a later allocation to the bytes read by then
)

// readLeaf reads an array's elements into MLX's memory, in row-major order and the machine's byte order. The shape
// has passed CheckShape but may promise more than r holds, so readLeaf allocates at most trustedSize, or trustedGrowth
// times the bytes that it has read.
func readLeaf(r io.Reader, shape []int, d mlxc.DType) (*mlxc.Array, error) {
	size := d.Size()
	for _, n := range shape {
		size *= n
	}
	var part *mlxc.Array
	var read []byte
	var err error
	for n := trustedSize; n < size; n *= trustedGrowth {
		if part, read, err = readPart(r, part, read, []int{n / trustedSize, trustedSize}, mlxc.Uint8); err != nil {
			return nil, err
		}
	}
	a, _, err := readPart(r, part, read, shape, d)
	return a, err
}

// readPart allocates an array, copies the bytes in read to its beginning, and fills the rest from r. It returns the
// array and its memory. read is the memory of part, which readPart frees.
func readPart(
	r io.Reader, part *mlxc.Array, read []byte, shape []int, d mlxc.DType,
) (*mlxc.Array, []byte, error) {
	defer part.Free()
	a, data, err := core.NewUnfilled(shape, d)
	if err != nil {
		return nil, nil, err
	}
	if _, err := io.ReadFull(r, data[copy(data, read):]); err != nil {
		a.Free()
		return nil, nil, truncated(err)
	}
	return a, data, nil
}

// readN reads n bytes. r may hold fewer than n bytes, so the buffer grows with the bytes read.
func readN(r io.Reader, n int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(n, 1<<20)))
	if _, err := io.CopyN(&b, r, n); err != nil {
		return nil, truncated(err)
	}
	return b.Bytes(), nil
}

// truncated returns a clearer error for an end of file before the expected end. It returns other errors unchanged.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file is truncated: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// parser reads a file in one of the formats. r is at the file's first byte; size is the file's size, or maxBytes for a
// stream; from gives access to the elements.
type parser func(r io.Reader, size int64, from elementSource) error

// loadFile parses the file at path: a regular file lazily, anything else, such as a pipe, as a stream.
func loadFile(op, path string, parse parser) error {
	f, err := os.Open(path)
	if err != nil {
		return mlxc.NewError(op, err) // the error has the path
	}
	defer f.Close()
	if err := parseFile(f, parse); err != nil {
		return mlxc.NewError(op, fmt.Errorf("%s: %w", path, err))
	}
	return nil
}

func parseFile(f *os.File, parse parser) error {
	if err := mlxc.Check(); err != nil {
		return err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("it is a directory")
	case !info.Mode().IsRegular():
		s := &byteStream{r: f}
		return parse(s, maxBytes, s)
	}
	lazy, err := newLazyFile(f)
	if err != nil {
		return err
	}
	defer lazy.free()
	return parse(bufio.NewReader(f), info.Size(), lazy)
}

// readFrom parses a stream.
func readFrom(op string, r io.Reader, parse parser) error {
	err := mlxc.Check()
	if err == nil {
		s := &byteStream{r: r}
		err = parse(s, maxBytes, s)
	}
	if err != nil {
		return mlxc.NewError(op, err)
	}
	return nil
}

// loadArray returns an array of a file. A bool is true if its byte is not 0: in memory, MLX and Go define only the
// bytes 0 and 1.
func loadArray(from elementSource, offset int64, shape []int, d mlxc.DType) (*mlxc.Array, error) {
	n, err := core.CheckShape(d, shape)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return readLeaf(nil, shape, d)
	case d != mlxc.Bool:
		return from.array(offset, shape, d)
	}
	raw, err := from.array(offset, shape, mlxc.Uint8)
	if err != nil {
		return nil, err
	}
	defer raw.Free()
	a := raw.AsType(mlxc.Bool)
	return a, a.Err()
}

// maxAxes is NumPy's limit. MLX has none, but recurses over axes.
const maxAxes = 64

// checkDims converts the axes of an array of dtype d, as a file states them, and returns the number of elements.
func checkDims(d mlxc.DType, dims []uint64) (shape []int, n int, err error) {
	if len(dims) > maxAxes {
		return nil, 0, fmt.Errorf("the array has %d axes; the maximum is %d", len(dims), maxAxes)
	}
	shape = make([]int, len(dims))
	for i, n := range dims {
		if n > math.MaxInt32 {
			return nil, 0, fmt.Errorf("axis %d has %d elements; MLX's maximum is 2³¹−1", i, n)
		}
		shape[i] = int(n)
	}
	n, err = core.CheckShape(d, shape)
	return shape, n, err
}

// shapeText formats a shape as MLX does: (2,3).
func shapeText(shape []int) string {
	return strings.NewReplacer("[", "(", "]", ")", " ", ",").Replace(fmt.Sprint(shape))
}

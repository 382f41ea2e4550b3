package mlxc

// #include "mlxg_io.h"
import "C"

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"unsafe"
)

// What the file formats share: where their bytes come from and go to. A header is checked
// before anything is made of it, by the package's own reading of the published formats:
// MLX's parsers believe what a file says, and its reader loses the error of a read.

// elements is where the elements of arrays are read from, an array at a time.
type elements interface {
	// array gives the array whose elements, in row-major order and the machine's byte
	// order, begin at offset. Readers ask in the order of offsets, without overlaps.
	array(offset int64, shape []int, d DType) (*Array, error)
	// section gives the n bytes at offset, to be read before the next call.
	section(offset, n int64) (io.Reader, error)
}

// openFile gives arrays that read their elements when they are evaluated.
type openFile struct {
	*os.File
	source unsafe.Pointer // owns a descriptor of its own
}

func newOpenFile(f *os.File) (*openFile, error) {
	var source unsafe.Pointer
	if e := C.mlxg_source_new(C.int(f.Fd()), &source); e != nil {
		return nil, takeText(e)
	}
	return &openFile{File: f, source: source}, nil
}

func (f *openFile) free() { C.mlxg_source_free(f.source) }

func (f *openFile) array(offset int64, shape []int, d DType) (*Array, error) {
	dims := cShape(shape)
	a := wrap("load", C.mlxg_load(f.source, C.uint64_t(offset), &dims[0], C.int(len(shape)), C.int(d.c())))
	return a, a.Err()
}

func (f *openFile) section(offset, n int64) (io.Reader, error) {
	return io.NewSectionReader(f, offset, n), nil
}

// byteStream gives arrays of what an io.Reader gives, one after the other.
type byteStream struct {
	r  io.Reader
	at int64
}

// Read is for the header, which comes before all offsets.
func (s *byteStream) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.at += int64(n)
	return n, err
}

func (s *byteStream) array(offset int64, shape []int, d DType) (*Array, error) {
	n, err := checkShape(d, shape)
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
	if n == 0 { // which may be said to begin beyond the end
		return bytes.NewReader(nil), nil
	}
	if offset < s.at {
		return nil, fmt.Errorf("byte %d was passed already", offset)
	}
	if _, err := io.CopyN(io.Discard, s, offset-s.at); err != nil {
		return nil, cutShort(err)
	}
	return io.LimitReader(s, n), nil
}

const (
	trustedSize   = 32 << 20 // bytes that readLeaf allocates before it reads any
	trustedGrowth = 16       // the factor by which it then believes the promised size
)

// readLeaf reads an array's elements straight into MLX's memory, in row-major order and the
// machine's byte order. The shape has passed checkShape, but its size may be a lie: readLeaf
// allocates at most trustedGrowth times the bytes that have arrived.
func readLeaf(r io.Reader, shape []int, d DType) (*Array, error) {
	size := d.Size()
	for _, n := range shape {
		size *= n
	}
	var part *Array
	var read []byte
	var err error
	for n := trustedSize; n < size; n *= trustedGrowth {
		if part, read, err = readPart(r, part, read, []int{n / trustedSize, trustedSize}, Uint8); err != nil {
			return nil, err
		}
	}
	a, _, err := readPart(r, part, read, shape, d)
	return a, err
}

// readPart makes an array of the bytes read and of those that follow. It frees part, which holds
// read.
func readPart(r io.Reader, part *Array, read []byte, shape []int, d DType) (*Array, []byte, error) {
	defer part.Free()
	a, data := newUnfilledLeaf("load", shape, d)
	if err := a.Err(); err != nil {
		return nil, nil, err
	}
	if _, err := io.ReadFull(r, data[copy(data, read):]); err != nil {
		a.Free()
		return nil, nil, cutShort(err)
	}
	return a, data, nil
}

// readN reads n bytes. It takes memory as the bytes come, not as they are promised: n
// may be a lie.
func readN(r io.Reader, n int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(n, 1<<20)))
	if _, err := io.CopyN(&b, r, n); err != nil {
		return nil, cutShort(err)
	}
	return b.Bytes(), nil
}

// cutShort names the end of a file that promised more.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file is cut short: %w", io.ErrUnexpectedEOF)
	}
	return err
}

// loadFile reads a file in one of the formats: lazily if path is a regular file, else, a pipe
// for instance, as a stream. read gets the size of the file, or maxBytes.
func loadFile(op, path string, read func(r io.Reader, size int64, from elements) error) error {
	f, err := os.Open(path)
	if err != nil {
		return opError(op, err) // it names the path
	}
	defer f.Close()
	err = func() error {
		if err := Check(); err != nil {
			return err
		}
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			if info.IsDir() {
				return errors.New("it is a directory")
			}
			s := &byteStream{r: f}
			return read(s, maxBytes, s)
		}
		lazy, err := newOpenFile(f)
		if err != nil {
			return err
		}
		defer lazy.free()
		return read(bufio.NewReader(f), info.Size(), lazy)
	}()
	if err != nil {
		return opError(op, fmt.Errorf("%s: %w", path, err))
	}
	return nil
}

// readFrom does the same for an io.Reader.
func readFrom(op string, r io.Reader, read func(r io.Reader, size int64, from elements) error) error {
	err := Check()
	if err == nil {
		s := &byteStream{r: r}
		err = read(s, maxBytes, s)
	}
	if err != nil {
		return opError(op, err)
	}
	return nil
}

// loadArray takes a checked array out of a file. A bool is what is not zero: other bytes than
// 0 and 1 have no meaning to MLX, nor to Go.
func loadArray(from elements, offset int64, shape []int, d DType) (*Array, error) {
	n, err := checkShape(d, shape)
	switch {
	case err != nil:
		return nil, err
	case n == 0:
		return readLeaf(nil, shape, d)
	case d != Bool:
		return from.array(offset, shape, d)
	}
	raw, err := from.array(offset, shape, Uint8)
	if err != nil {
		return nil, err
	}
	defer raw.Free()
	a := raw.AsType(Bool)
	return a, a.Err()
}

// maxAxes is NumPy's limit. MLX has none, but recurses over axes.
const maxAxes = 64

// checkDims converts the axes that a file states for an array of dtype d, and gives the
// number of elements.
func checkDims(d DType, dims []uint64) (shape []int, n int, err error) {
	if len(dims) > maxAxes {
		return nil, 0, fmt.Errorf("the array has %d axes, more than %d", len(dims), maxAxes)
	}
	shape = make([]int, len(dims))
	for i, n := range dims {
		if n > math.MaxInt32 {
			return nil, 0, fmt.Errorf("axis %d has %d elements, more than MLX's 2³¹−1", i, n)
		}
		shape[i] = int(n)
	}
	n, err = checkShape(d, shape)
	return shape, n, err
}

// writeElements evaluates an array and writes its elements in row-major order.
func writeElements(w io.Writer, a *Array) error {
	ctx, err := a.acquire()
	if err != nil {
		return err
	}
	defer a.release()
	data := make([]byte, a.NBytes())
	if len(data) == 0 {
		return nil
	}
	var e *C.char
	onSoundThread(func() { e = C.mlxg_read(ctx, unsafe.Pointer(&data[0]), C.size_t(len(data))) })
	if e != nil {
		return takeText(e)
	}
	_, err = w.Write(data)
	return err
}

// sortedNames gives the names of arrays in the order in which they are written, so that
// the same arrays make the same file.
func sortedNames[T any](m map[string]T) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// evalNamed computes all arrays in one go, or says which one is invalid.
func evalNamed(arrays map[string]*Array) error {
	all := make([]*Array, 0, len(arrays))
	for _, name := range sortedNames(arrays) {
		a := arrays[name]
		if err := a.Err(); err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
		all = append(all, a)
	}
	return Eval(all...)
}

package mlxio

import (
	"bytes"
	endian "encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// NumPy's .npy files: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html.
// A magic text, a version, the length of the header, the header (a dictionary as Python
// writes it), the elements.

// npyTypes are NumPy's type strings, without byte order, of MLX's dtypes. NumPy has no
// bfloat16: V2, two bytes of no known type, is what MLX and ml_dtypes write for it.
var npyTypes = map[string]mlxc.DType{
	"b1": mlxc.Bool, "u1": mlxc.Uint8, "u2": mlxc.Uint16, "u4": mlxc.Uint32, "u8": mlxc.Uint64,
	"i1": mlxc.Int8, "i2": mlxc.Int16, "i4": mlxc.Int32, "i8": mlxc.Int64,
	"f2": mlxc.Float16, "f4": mlxc.Float32, "f8": mlxc.Float64, "V2": mlxc.BFloat16, "c8": mlxc.Complex64,
}

const (
	npyMagic     = "\x93NUMPY"
	npyMaxHeader = 1 << 16
	npyAlignment = 64
)

// LoadNPY opens a file of NumPy's .npy format. The array is lazy: it is read from the file
// when it is evaluated, as are those of LoadSafetensors. Both byte orders and both orders
// of axes are read; an array in the machine's other byte order is read at once. Two bytes
// of no known type (V2) are bfloat16, as in MLX.
//
// A header that is not in order, a dtype that MLX lacks and a file of another length than
// its header says are errors.
func LoadNPY(path string) (a *mlxc.Array, err error) {
	err = loadFile("LoadNPY", path, func(r io.Reader, size int64, from elementSource) (err error) {
		a, err = readNPY(r, size, from)
		return err
	})
	return a, err
}

// ReadNPY is like LoadNPY for any reader. It reads everything at once, to the last
// element and no further.
func ReadNPY(r io.Reader) (a *mlxc.Array, err error) {
	err = readFrom("ReadNPY", r, func(r io.Reader, size int64, from elementSource) (err error) {
		a, err = readNPY(r, size, from)
		return err
	})
	return a, err
}

// SaveNPY evaluates the array and writes it to a file of NumPy's .npy format, in row-major
// order, as SaveSafetensors writes files.
func SaveNPY(path string, a *mlxc.Array) error {
	return saveFile("SaveNPY", path, func(w io.Writer) error { return writeNPY(w, a) })
}

// WriteNPY is like SaveNPY for any writer.
func WriteNPY(w io.Writer, a *mlxc.Array) error {
	if err := writeNPY(w, a); err != nil {
		return mlxc.NewError("WriteNPY", err, a)
	}
	return nil
}

// npyHeader is what a header tells.
type npyHeader struct {
	dtype    mlxc.DType
	swapped  bool // the elements are in the other byte order
	fortran  bool // the first axis varies fastest
	shape    []int
	elements int
}

func readNPY(r io.Reader, size int64, from elementSource) (*mlxc.Array, error) {
	h, start, err := readNPYHeader(r)
	if err != nil {
		return nil, err
	}
	n := int64(h.elements) * int64(h.dtype.Size())
	if size != maxBytes && size != start+n {
		return nil, fmt.Errorf("the file has %d bytes, but its header tells of %d", size, start+n)
	}
	shape := slices.Clone(h.shape)
	if h.fortran {
		slices.Reverse(shape)
	}
	var a *mlxc.Array
	if h.swapped {
		a, err = loadSwapped(from, start, n, shape, h.dtype)
	} else {
		a, err = loadArray(from, start, shape, h.dtype)
	}
	if err != nil || !h.fortran || len(shape) < 2 {
		return a, err
	}
	defer a.Free()
	t := a.Transpose()
	return t, t.Err()
}

// loadSwapped reads an array of the other byte order.
func loadSwapped(from elementSource, start, n int64, shape []int, d mlxc.DType) (*mlxc.Array, error) {
	r, err := from.section(start, n)
	if err != nil {
		return nil, err
	}
	width := d.Size()
	if d == mlxc.Complex64 {
		width /= 2 // two numbers
	}
	return readLeaf(&swapper{r, width}, shape, d)
}

// swapper reads numbers of width bytes and reverses the bytes of each. Its buffers hold whole
// numbers.
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

// readNPYHeader reads and checks a header; the elements begin at start.
func readNPYHeader(r io.Reader) (h npyHeader, start int64, err error) {
	var prefix [8]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return h, 0, truncated(err)
	}
	if string(prefix[:6]) != npyMagic {
		return h, 0, errors.New("it is no .npy file")
	}
	length := make([]byte, 4)
	switch prefix[6] {
	case 1:
		length = length[:2]
	case 2, 3:
	default:
		return h, 0, fmt.Errorf("version %d.%d of the .npy format is not known", prefix[6], prefix[7])
	}
	if _, err := io.ReadFull(r, length); err != nil {
		return h, 0, truncated(err)
	}
	var n int64
	for i, b := range length {
		n |= int64(b) << (8 * i)
	}
	if n > npyMaxHeader {
		return h, 0, fmt.Errorf("a header of %d bytes, more than %d", n, npyMaxHeader)
	}
	text, err := readN(r, n)
	if err != nil {
		return h, 0, err
	}
	h, err = parseNPYHeader(string(text))
	if err != nil {
		return h, 0, fmt.Errorf("the header %q: %w", strings.TrimSpace(string(text)), err)
	}
	return h, int64(len(prefix)+len(length)) + n, nil
}

// parseNPYHeader reads a dictionary with a descr, a fortran_order and a shape.
func parseNPYHeader(text string) (h npyHeader, err error) {
	p := literal{text}
	seen := map[string]bool{}
	var dims []uint64
	if !p.take("{") {
		return h, errors.New("it does not begin with {")
	}
	for !p.take("}") {
		key, err := p.text()
		if err != nil {
			return h, err
		}
		if seen[key] {
			return h, fmt.Errorf("%s is there twice", key)
		}
		seen[key] = true
		if !p.take(":") {
			return h, fmt.Errorf("no colon behind %s", key)
		}
		switch key {
		case "descr":
			err = h.setType(&p)
		case "fortran_order":
			if h.fortran = p.take("True"); !h.fortran && !p.take("False") {
				err = errors.New("fortran_order is neither True nor False")
			}
		case "shape":
			dims, err = p.tuple()
		default:
			err = fmt.Errorf("%s is not of the format", key)
		}
		if err != nil {
			return h, err
		}
		if !p.take(",") && !strings.HasPrefix(p.skip(), "}") {
			return h, fmt.Errorf("no comma behind %s", key)
		}
	}
	if p.skip() != "" {
		return h, errors.New("there is more behind the dictionary")
	}
	if len(seen) != 3 {
		return h, errors.New("it does not have descr, fortran_order and shape")
	}
	h.shape, h.elements, err = checkDims(h.dtype, dims)
	return h, err
}

func (h *npyHeader) setType(p *literal) error {
	descr, err := p.text()
	if err != nil {
		return fmt.Errorf("descr is no simple type: %w", err)
	}
	name := strings.TrimLeft(descr, "<>=|")
	d, ok := npyTypes[name]
	if !ok || len(descr) > len(name)+1 {
		return fmt.Errorf("MLX has no dtype %s", descr)
	}
	h.dtype = d
	big := descr[0] == '>'
	little := descr[0] == '<'
	isBig := endian.NativeEndian.Uint16([]byte{0, 1}) == 1
	h.swapped = d.Size() > 1 && (big && !isBig || little && isBig)
	return nil
}

// literal reads what Python's repr writes, as far as it is needed.
type literal struct{ rest string }

func (p *literal) skip() string {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	return p.rest
}

// take goes past a token, if it comes next.
func (p *literal) take(token string) bool {
	rest, ok := strings.CutPrefix(p.skip(), token)
	if ok {
		p.rest = rest
	}
	return ok
}

// text reads a quoted text without escapes.
func (p *literal) text() (string, error) {
	for _, quote := range []string{"'", `"`} {
		if p.take(quote) {
			text, rest, ok := strings.Cut(p.rest, quote)
			if !ok || strings.Contains(text, `\`) {
				return "", errors.New("a text without its end")
			}
			p.rest = rest
			return text, nil
		}
	}
	return "", errors.New("no text where one is wanted")
}

// tuple reads integers that are not negative, such as (2, 3), (2,) and ().
func (p *literal) tuple() ([]uint64, error) {
	numbers := []uint64{}
	if !p.take("(") {
		return nil, errors.New("shape is no tuple")
	}
	for !p.take(")") {
		digits := len(p.skip()) - len(strings.TrimLeft(p.skip(), "0123456789"))
		n, err := strconv.ParseUint(p.rest[:digits], 10, 64)
		if err != nil {
			return nil, errors.New("shape has something else than sizes")
		}
		p.rest = p.rest[digits:]
		p.take("L") // a long integer of Python 2
		if numbers = append(numbers, n); len(numbers) > maxAxes {
			return nil, fmt.Errorf("shape has more than %d axes", maxAxes)
		}
		if !p.take(",") && (len(numbers) == 1 || !strings.HasPrefix(p.skip(), ")")) {
			return nil, errors.New("shape is no tuple")
		}
	}
	return numbers, nil
}

func writeNPY(w io.Writer, a *mlxc.Array) error {
	if err := mlxc.Eval(a); err != nil {
		return err
	}
	if a.NDim() > maxAxes {
		return fmt.Errorf("the array has %d axes, more than %d", a.NDim(), maxAxes)
	}
	if _, err := w.Write(makeNPYHeader(a.DType(), a.Shape())); err != nil {
		return err
	}
	return writeElements(w, a)
}

func makeNPYHeader(d mlxc.DType, shape []int) []byte {
	var descr string
	for name, t := range npyTypes {
		if t == d {
			descr = name
		}
	}
	order := "<"
	switch {
	case d.Size() == 1:
		order = "|"
	case endian.NativeEndian.Uint16([]byte{0, 1}) == 1:
		order = ">"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{'descr': '%s%s', 'fortran_order': False, 'shape': (", order, descr)
	for i, n := range shape {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, n)
	}
	if len(shape) == 1 {
		b.WriteString(",")
	}
	b.WriteString("), }")
	// The header ends in a newline and the elements begin at a multiple of 64. The two bytes
	// that version 1 has for its length are enough for maxAxes.
	const prefix = len(npyMagic) + 2 + 2
	for (prefix+b.Len()+1)%npyAlignment != 0 {
		b.WriteByte(' ')
	}
	b.WriteByte('\n')
	out := append([]byte(npyMagic), 1, 0)
	out = endian.LittleEndian.AppendUint16(out, uint16(b.Len()))
	return append(out, b.Bytes()...)
}

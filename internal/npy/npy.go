// Package npy reads and writes the headers of files of NumPy's .npy format
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html): a magic string, a version, the length of the
// header, the header, which is a literal Python dictionary, and the elements.
package npy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	magic     = "\x93NUMPY"
	maxHeader = 1 << 16
	alignment = 64
	maxAxes   = 64 // NumPy's limit
)

// bigEndian is set if the machine's numbers begin with their upper bytes.
var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// A Header describes the elements of a file.
type Header struct {
	Type    string   // NumPy's type without byte order, such as f4. It may be a type that MLX lacks
	Swapped bool     // the elements have the byte order opposite to the machine's
	Fortran bool     // the first axis varies fastest
	Shape   []uint64 // lengths of at most 64 axes, not checked otherwise
}

// ReadHeader reads a header. The elements begin at byte start. The error of a truncated file is io.EOF or
// io.ErrUnexpectedEOF.
func ReadHeader(r io.Reader) (h Header, start int64, err error) {
	var prefix [8]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return h, 0, err
	}
	if string(prefix[:6]) != magic {
		return h, 0, errors.New("it is not a .npy file")
	}
	length := make([]byte, 4)
	switch prefix[6] {
	case 1:
		length = length[:2]
	case 2, 3:
	default:
		return h, 0, fmt.Errorf("the version is %d.%d; versions 1 to 3 are supported", prefix[6], prefix[7])
	}
	if _, err := io.ReadFull(r, length); err != nil {
		return h, 0, err
	}
	var n int64
	for i, b := range length {
		n |= int64(b) << (8 * i)
	}
	if n > maxHeader {
		return h, 0, fmt.Errorf("the header has %d bytes; the maximum is %d", n, maxHeader)
	}
	var text bytes.Buffer
	if _, err := io.CopyN(&text, r, n); err != nil {
		return h, 0, err
	}
	h, err = parse(text.String())
	if err != nil {
		return h, 0, fmt.Errorf("the header %q: %w", strings.TrimSpace(text.String()), err)
	}
	return h, int64(len(prefix)+len(length)) + n, nil
}

// parse parses a dictionary with the keys descr, fortran_order and shape.
func parse(text string) (h Header, err error) {
	p := literal{text}
	seen := map[string]bool{}
	if !p.take("{") {
		return h, errors.New("it does not begin with {")
	}
	for !p.take("}") {
		key, err := p.text()
		if err != nil {
			return h, err
		}
		if seen[key] {
			return h, fmt.Errorf("the key %s is not unique", key)
		}
		seen[key] = true
		if !p.take(":") {
			return h, fmt.Errorf("no colon after %s", key)
		}
		switch key {
		case "descr":
			err = h.setType(&p)
		case "fortran_order":
			if h.Fortran = p.take("True"); !h.Fortran && !p.take("False") {
				err = errors.New("fortran_order must be True or False")
			}
		case "shape":
			h.Shape, err = p.tuple()
		default:
			err = fmt.Errorf("the key %s is unknown", key)
		}
		if err != nil {
			return h, err
		}
		if !p.take(",") && !strings.HasPrefix(p.skip(), "}") {
			return h, fmt.Errorf("no comma after the value of %s", key)
		}
	}
	if p.skip() != "" {
		return h, errors.New("text follows the dictionary")
	}
	if len(seen) != 3 {
		return h, errors.New("it must have the keys descr, fortran_order and shape")
	}
	return h, nil
}

func (h *Header) setType(p *literal) error {
	descr, err := p.text()
	if err != nil {
		return fmt.Errorf("descr must be a simple type: %w", err)
	}
	h.Type = descr
	if name := strings.TrimLeft(descr, "<>=|"); len(descr) == len(name)+1 {
		h.Type = name
	}
	h.Swapped = strings.HasPrefix(descr, ">") && !bigEndian || strings.HasPrefix(descr, "<") && bigEndian
	return nil
}

// literal parses the subset of Python literals that headers contain.
type literal struct{ rest string }

func (p *literal) skip() string {
	p.rest = strings.TrimLeft(p.rest, " \t\r\n")
	return p.rest
}

// take consumes token if it comes next, after white space.
func (p *literal) take(token string) bool {
	rest, ok := strings.CutPrefix(p.skip(), token)
	if ok {
		p.rest = rest
	}
	return ok
}

// text parses a quoted string without escapes.
func (p *literal) text() (string, error) {
	for _, quote := range []string{"'", `"`} {
		if p.take(quote) {
			text, rest, ok := strings.Cut(p.rest, quote)
			if !ok || strings.Contains(text, `\`) {
				return "", errors.New("a string is not terminated or has escapes")
			}
			p.rest = rest
			return text, nil
		}
	}
	return "", errors.New("a string is missing")
}

// tuple parses a tuple of non-negative integers, such as (2, 3), (2,) and ().
func (p *literal) tuple() ([]uint64, error) {
	numbers := []uint64{}
	if !p.take("(") {
		return nil, errors.New("shape must be a tuple")
	}
	for !p.take(")") {
		digits := len(p.skip()) - len(strings.TrimLeft(p.skip(), "0123456789"))
		n, err := strconv.ParseUint(p.rest[:digits], 10, 64)
		if err != nil {
			return nil, errors.New("shape must contain non-negative integers")
		}
		p.rest = p.rest[digits:]
		p.take("L") // a long integer of Python 2
		if numbers = append(numbers, n); len(numbers) > maxAxes {
			return nil, fmt.Errorf("shape has more than %d axes", maxAxes)
		}
		if !p.take(",") && (len(numbers) == 1 || !strings.HasPrefix(p.skip(), ")")) {
			return nil, errors.New("shape must be a tuple")
		}
	}
	return numbers, nil
}

// FormatHeader returns the beginning of a file whose elements have a type, such as f4, a size in bytes, the machine's
// byte order, and the last axis varying fastest. Its length is a multiple of 64.
func FormatHeader(kind string, size int, shape []int) []byte {
	order := "<"
	switch {
	case size == 1:
		order = "|"
	case bigEndian:
		order = ">"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "{'descr': '%s%s', 'fortran_order': False, 'shape': (", order, kind)
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
	// The header ends in a newline, and the elements begin at a multiple of 64 bytes. The 2-byte length of version 1
	// suffices for maxAxes axes.
	const prefix = len(magic) + 2 + 2
	for (prefix+b.Len()+1)%alignment != 0 {
		b.WriteByte(' ')
	}
	b.WriteByte('\n')
	out := append([]byte(magic), 1, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(b.Len()))
	return append(out, b.Bytes()...)
}

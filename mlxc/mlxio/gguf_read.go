package mlxio

import (
	endian "encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// ggufReader reads a header. After the first error, err, it returns zero values.
type ggufReader struct {
	r   io.Reader
	n   int64 // bytes read
	err error
}

func (g *ggufReader) bytes(n uint64) []byte {
	if g.err == nil && n > maxBytes {
		g.err = fmt.Errorf("a length of %d bytes exceeds the address space", n)
	}
	if g.err != nil {
		return nil
	}
	var b []byte
	b, g.err = readN(g.r, int64(n))
	g.n += int64(n)
	return b
}

func (g *ggufReader) u32() uint32 {
	if b := g.bytes(4); g.err == nil {
		return endian.LittleEndian.Uint32(b)
	}
	return 0
}

func (g *ggufReader) u64() uint64 {
	if b := g.bytes(8); g.err == nil {
		return endian.LittleEndian.Uint64(b)
	}
	return 0
}

func (g *ggufReader) text() string { return string(g.bytes(g.u64())) }

// name reads a key or a tensor name.
func (g *ggufReader) name() string {
	n := g.u64()
	if g.err == nil && n > ggufMaxKey {
		g.err = fmt.Errorf("a name has %d bytes; the maximum is %d", n, ggufMaxKey)
	}
	name := string(g.bytes(n))
	if g.err == nil && !utf8.ValidString(name) {
		g.err = fmt.Errorf("the name %q is not UTF-8", name)
	}
	return name
}

func readGGUFHeader(r io.Reader) (tensors []ggufTensor, metadata map[string]any, start int64, err error) {
	g := &ggufReader{r: r}
	fail := func(err error) ([]ggufTensor, map[string]any, int64, error) { return nil, nil, 0, err }
	magic, version := g.bytes(4), g.u32()
	switch {
	case g.err != nil:
		return fail(g.err)
	case string(magic) != ggufMagic:
		return fail(errors.New("it is not a GGUF file"))
	case version != 2 && version != ggufVersion:
		return fail(fmt.Errorf("the version is %d; little-endian files of version 2 and 3 are supported", version))
	}
	nTensors, nValues := g.u64(), g.u64()
	metadata = map[string]any{}
	for range nValues {
		key := g.name()
		if _, ok := metadata[key]; ok {
			return fail(fmt.Errorf("the metadata key %q is not unique", key))
		}
		v, err := g.value()
		if err != nil {
			return fail(fmt.Errorf("the metadata %q: %w", key, err))
		}
		metadata[key] = v
	}
	alignment, err := alignmentOf(metadata)
	if err != nil {
		return fail(err)
	}
	seen := map[string]bool{}
	for range nTensors {
		t, err := g.tensor(alignment)
		if err != nil {
			return fail(fmt.Errorf("tensor %q: %w", t.name, err))
		}
		if seen[t.name] {
			return fail(fmt.Errorf("the tensor name %q is not unique", t.name))
		}
		seen[t.name] = true
		tensors = append(tensors, t)
	}
	if g.err != nil {
		return fail(g.err)
	}
	return tensors, metadata, aligned(g.n, alignment), nil
}

// alignmentOf returns the alignment of tensors in bytes.
func alignmentOf(metadata map[string]any) (int64, error) {
	v, ok := metadata[ggufAlignmentKey]
	if !ok {
		return ggufAlignment, nil
	}
	n, ok := v.(uint32)
	if !ok || n == 0 || n%8 != 0 || n > ggufMaxAlignment {
		return 0, fmt.Errorf("%s is %v; it must be a uint32, a multiple of 8 and at most %d", ggufAlignmentKey, v,
			ggufMaxAlignment)
	}
	return int64(n), nil
}

// value reads the type and the value of a metadata entry.
func (g *ggufReader) value() (any, error) {
	kind := g.u32()
	var n uint64
	isArray := kind == ggufArray
	if isArray {
		kind, n = g.u32(), g.u64()
	}
	if g.err != nil {
		return nil, g.err
	}
	switch {
	case isArray && kind == ggufArray:
		return nil, errors.New("arrays of arrays are not supported")
	case int(kind) >= len(ggufValueTypes):
		return nil, fmt.Errorf("the type %d is unknown", kind)
	case kind == ggufString && !isArray:
		return g.text(), g.err
	case kind == ggufString:
		texts := []string{}
		for range n {
			texts = append(texts, g.text())
			if g.err != nil {
				return nil, g.err
			}
		}
		return texts, nil
	}
	t := ggufValueTypes[kind]
	if !isArray {
		n = 1
	}
	if n > maxBytes/8 {
		return nil, fmt.Errorf("an array of %d elements exceeds the address space", n)
	}
	data := g.bytes(n * uint64(t.Size()))
	if g.err != nil {
		return nil, g.err
	}
	if t.Kind() == reflect.Bool && slices.ContainsFunc(data, func(b byte) bool { return b > 1 }) {
		return nil, errors.New("a bool must be 0 or 1")
	}
	s := reflect.New(reflect.SliceOf(t))
	s.Elem().Set(reflect.MakeSlice(reflect.SliceOf(t), int(n), int(n)))
	if _, err := endian.Decode(data, endian.LittleEndian, s.Elem().Interface()); err != nil {
		return nil, err
	}
	if isArray {
		return s.Elem().Interface(), nil
	}
	return s.Elem().Index(0).Interface(), nil
}

// tensor reads the description of a tensor.
func (g *ggufReader) tensor(alignment int64) (t ggufTensor, err error) {
	t.name = g.name()
	ndim := g.u32()
	if g.err == nil && ndim > ggufMaxDims {
		return t, fmt.Errorf("it has %d axes; the maximum is %d", ndim, ggufMaxDims)
	}
	dims := make([]uint64, min(ndim, ggufMaxDims))
	for i := range dims {
		dims[len(dims)-1-i] = g.u64() // the last axis comes first
	}
	t.kindNumber = g.u32()
	offset := g.u64()
	if g.err != nil {
		return t, g.err
	}
	var ok bool
	if t.kind, ok = ggufTypes[t.kindNumber]; !ok {
		return t, fmt.Errorf("the element type %d is not supported", t.kindNumber)
	}
	var n int
	widest := mlxc.Float64 // no element of the resulting arrays is wider
	if t.shape, n, err = checkDims(widest, dims); err != nil {
		return t, err
	}
	if last := t.shape[max(len(t.shape)-1, 0):]; t.kind.block > 1 && (len(last) == 0 || last[0]%t.kind.block != 0) {
		return t, fmt.Errorf("its shape is %s, but %s stores blocks of %d along the last axis", shapeText(t.shape),
			t.kind.name, t.kind.block)
	}
	if offset > maxBytes || int64(offset)%alignment != 0 {
		return t, fmt.Errorf("its offset %d is not a multiple of the alignment %d", offset, alignment)
	}
	t.begin = int64(offset)
	t.end = t.begin + int64(n/t.kind.block)*int64(t.kind.bytes)
	return t, nil
}

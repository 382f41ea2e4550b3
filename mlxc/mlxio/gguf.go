package mlxio

import (
	"bufio"
	"bytes"
	"cmp"
	endian "encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// GGUF files: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. A magic text, a
// version, two counts, the metadata, what the tensors are, and their elements. Everything
// is little-endian.

const (
	ggufMagic        = "GGUF"
	ggufVersion      = 3
	ggufAlignmentKey = "general.alignment"
	ggufAlignment    = 32
	ggufMaxAlignment = 1 << 20
	ggufMaxKey       = 1<<16 - 1
	ggufMaxDims      = 8 // of MLX's reader; ggml has 4
)

// ggufType is how the elements of a tensor are stored: in blocks, along the last axis.
type ggufType struct {
	name         string
	block, bytes int
	dtype        mlxc.DType // of plain elements
	triple       bool       // MLX makes weights, scales and biases of it
}

// ggufTypes are those that MLX reads, and int64, float64 and bfloat16, which it does not
// or not as they are.
var ggufTypes = map[uint32]ggufType{
	0:  {"F32", 1, 4, mlxc.Float32, false},
	1:  {"F16", 1, 2, mlxc.Float16, false},
	2:  {"Q4_0", 32, 18, mlxc.Invalid, true},
	3:  {"Q4_1", 32, 20, mlxc.Invalid, true},
	8:  {"Q8_0", 32, 34, mlxc.Invalid, true},
	10: {"Q2_K", 256, 84, mlxc.Invalid, false},
	12: {"Q4_K", 256, 144, mlxc.Invalid, true},
	14: {"Q6_K", 256, 210, mlxc.Invalid, false},
	24: {"I8", 1, 1, mlxc.Int8, false},
	25: {"I16", 1, 2, mlxc.Int16, false},
	26: {"I32", 1, 4, mlxc.Int32, false},
	27: {"I64", 1, 8, mlxc.Int64, false},
	28: {"F64", 1, 8, mlxc.Float64, false},
	30: {"BF16", 1, 2, mlxc.BFloat16, false},
}

// ggufValueTypes are the Go types of metadata, at the place of their number in the
// format; 9 is an array of one of the others.
var ggufValueTypes = [...]reflect.Type{
	0: reflect.TypeFor[uint8](), 1: reflect.TypeFor[int8](), 2: reflect.TypeFor[uint16](),
	3: reflect.TypeFor[int16](), 4: reflect.TypeFor[uint32](), 5: reflect.TypeFor[int32](),
	6: reflect.TypeFor[float32](), 7: reflect.TypeFor[bool](), 8: reflect.TypeFor[string](), 9: nil,
	10: reflect.TypeFor[uint64](), 11: reflect.TypeFor[int64](), 12: reflect.TypeFor[float64](),
}

const (
	ggufString = 8
	ggufArray  = 9
	ggufQ4_1   = 3
)

// LoadGGUF opens a GGUF file of version 2 or 3 and returns its arrays by name, and its
// metadata. A metadata value is a bool, a string, a float32, a float64, one of the sized
// integers, or a slice of one of these.
//
// Arrays of plain elements are lazy, as those of LoadSafetensors. Quantised ones are read
// at once: of Q4_0, Q4_1, Q4_K and Q8_0 MLX makes what its quantised operations take, in
// groups of 32: the weights, packed in uint32, under the tensor's name, and the float16
// scales and biases under that name with ".scales" and ".biases" in the place of
// ".weight". Q2_K and Q6_K become float16. MLX has no reader for the other types, which
// are errors, as are nested arrays in the metadata and whatever the format forbids.
func LoadGGUF(path string) (arrays map[string]*mlxc.Array, metadata map[string]any, err error) {
	err = loadFile("LoadGGUF", path, func(r io.Reader, size int64, from elementSource) (err error) {
		arrays, metadata, err = readGGUF(r, size, from)
		return err
	})
	return arrays, metadata, err
}

// ReadGGUF is like LoadGGUF for any reader. It reads everything at once.
func ReadGGUF(r io.Reader) (arrays map[string]*mlxc.Array, metadata map[string]any, err error) {
	err = readFrom("ReadGGUF", r, func(r io.Reader, size int64, from elementSource) (err error) {
		arrays, metadata, err = readGGUF(r, size, from)
		return err
	})
	return arrays, metadata, err
}

// SaveGGUF evaluates the arrays and writes them, and the metadata, which may be nil, to a
// GGUF file of version 3, as SaveSafetensors writes files. The same
// arrays and metadata always give the same bytes: both are written in the order of their
// names.
//
// Arrays are of int8, int16, int32, int64, float16, bfloat16, float32 or float64, of at
// most 8 axes (ggml itself reads 4). Metadata values have the types that LoadGGUF gives; a
// uint32 named general.alignment sets the alignment of the arrays.
func SaveGGUF(path string, arrays map[string]*mlxc.Array, metadata map[string]any) error {
	return saveFile("SaveGGUF", path, func(w io.Writer) error { return writeGGUF(w, arrays, metadata) })
}

// WriteGGUF is like SaveGGUF for any writer.
func WriteGGUF(w io.Writer, arrays map[string]*mlxc.Array, metadata map[string]any) error {
	if err := writeGGUF(w, arrays, metadata); err != nil {
		return mlxc.NewError("WriteGGUF", err)
	}
	return nil
}

// ggufTensor is what the header tells of a tensor.
type ggufTensor struct {
	name       string
	shape      []int
	kind       ggufType
	kindNumber uint32
	begin, end int64 // where its bytes are, from the first tensor's
}

func readGGUF(r io.Reader, size int64, from elementSource) (arrays map[string]*mlxc.Array, metadata map[string]any, err error) {
	tensors, metadata, start, err := readGGUFHeader(r)
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(tensors, func(a, b ggufTensor) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end))
	})
	var end int64
	for _, t := range tensors {
		if t.begin < end {
			return nil, nil, fmt.Errorf("tensor %q: its bytes begin at %d, but those before it end at %d", t.name, t.begin, end)
		}
		end = t.end
		// A tensor of no elements needs nothing of the file, wherever it says that it begins.
		if t.begin < end && size != maxBytes && size-start < end {
			return nil, nil, fmt.Errorf("tensor %q: its bytes end at %d, but the file has %d: %w", t.name, end, max(size-start, 0), io.ErrUnexpectedEOF)
		}
	}
	arrays = map[string]*mlxc.Array{}
	defer func() {
		if err != nil {
			for _, a := range arrays {
				a.Free()
			}
			arrays = nil
		}
	}()
	for _, t := range tensors {
		if err := t.load(from, start, arrays); err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", t.name, err)
		}
	}
	return arrays, metadata, nil
}

// load adds the tensor's arrays.
func (t ggufTensor) load(from elementSource, start int64, arrays map[string]*mlxc.Array) error {
	names := []string{t.name}
	if t.kind.triple {
		stem := strings.TrimSuffix(t.name, ".weight")
		names = append(names, stem+".scales", stem+".biases")
	}
	for _, name := range names {
		if _, ok := arrays[name]; ok {
			return fmt.Errorf("there is an array %q already", name)
		}
	}
	if d := t.kind.dtype; d != mlxc.Invalid {
		a, err := loadArray(from, start+t.begin, t.shape, d)
		if err != nil {
			return err
		}
		arrays[t.name] = a
		return nil
	}
	made, err := t.unpack(from, start)
	if err != nil {
		return err
	}
	for i, name := range names {
		arrays[name] = made[i]
	}
	return nil
}

// unpack lets MLX read one quantised tensor, from a file of its own that has nothing
// else: what it makes of metadata is not always right, it writes to the file's mapping,
// and it would have to trust the file to stay as it was checked.
func (t ggufTensor) unpack(from elementSource, start int64) (arrays []*mlxc.Array, err error) {
	data, err := from.section(start+t.begin, t.end-t.begin)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp("", "mlxgrad-*.gguf")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	alone, write := t, copyElements
	alone.name, alone.begin = "t.weight", 0
	if t.kind.name == "Q4_K" {
		alone.kindNumber, write = ggufQ4_1, asQ4_1
	}
	h := ggufHeader{alignment: ggufAlignment}
	h.begin(1, 0)
	h.tensor(alone)
	h.pad()
	w := bufio.NewWriter(f)
	if _, err := w.Write(h.Bytes()); err != nil {
		return nil, err
	}
	if err := write(w, data, t.end-t.begin); err != nil {
		return nil, truncated(err)
	}
	if err := w.Flush(); err != nil {
		return nil, err
	}
	names := []string{alone.name}
	if t.kind.triple {
		names = append(names, "t.scales", "t.biases")
	}
	return core.LoadGGUF(f.Name(), names)
}

func copyElements(w io.Writer, r io.Reader, n int64) error {
	_, err := io.CopyN(w, r, n)
	return err
}

// asQ4_1 writes n bytes of Q4_K as Q4_1, which has the same groups of 32. MLX's own
// reader takes the scale and the minimum of every second group for those of the group
// before it. A block of Q4_K has the float16 factors d and dmin, eight scales and eight
// minima of six bits, and 256 numbers of four: weight = d·scale·number − dmin·minimum.
//
// The first four scales and minima are the low bits of bytes 0 to 3 and 4 to 7 of the
// twelve; the other four have their low halves in bytes 8 to 11 and their high bits above
// those of the first (dequantize_row_q4_K in ggml). The low halves of 32 bytes of numbers
// are one group, the high halves the next.
func asQ4_1(w io.Writer, r io.Reader, n int64) error {
	block := make([]byte, 144)
	for ; n > 0; n -= int64(len(block)) {
		if _, err := io.ReadFull(r, block); err != nil {
			return err
		}
		factor := func(i int) float32 { return float16.Frombits(endian.LittleEndian.Uint16(block[i:])).Float32() }
		d, dmin, six, numbers := factor(0), factor(2), block[4:16], block[16:]
		for g := range 8 {
			scale, minimum := six[g%4]&63, six[g%4+4]&63
			if g >= 4 {
				scale, minimum = six[g+4]&15|six[g-4]>>6<<4, six[g+4]>>4|six[g]>>6<<4
			}
			group := numbers[g/2*32:][:32]
			number := func(i int) byte { return group[i] >> (g % 2 * 4) & 15 }
			out := endian.LittleEndian.AppendUint16(nil, float16.Fromfloat32(d*float32(scale)).Bits())
			out = endian.LittleEndian.AppendUint16(out, float16.Fromfloat32(-dmin*float32(minimum)).Bits())
			for i := range 16 {
				out = append(out, number(i)|number(i+16)<<4)
			}
			if _, err := w.Write(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// ggufReader reads the header and remembers the first error.
type ggufReader struct {
	r   io.Reader
	n   int64
	err error
}

func (g *ggufReader) bytes(n uint64) []byte {
	if g.err == nil && n > maxBytes {
		g.err = fmt.Errorf("a length of %d bytes", n)
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

// name reads a text that names something.
func (g *ggufReader) name() string {
	n := g.u64()
	if g.err == nil && n > ggufMaxKey {
		g.err = fmt.Errorf("a name of %d bytes", n)
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
		return fail(errors.New("it is no GGUF file"))
	case version != 2 && version != ggufVersion:
		return fail(fmt.Errorf("version %d of the GGUF format, or its byte order, is not known", version))
	}
	nTensors, nValues := g.u64(), g.u64()
	metadata = map[string]any{}
	for range nValues {
		key := g.name()
		if _, ok := metadata[key]; ok {
			return fail(fmt.Errorf("the metadata %q is there twice", key))
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
			return fail(fmt.Errorf("tensor %q is there twice", t.name))
		}
		seen[t.name] = true
		tensors = append(tensors, t)
	}
	if g.err != nil {
		return fail(g.err)
	}
	return tensors, metadata, aligned(g.n, alignment), nil
}

func aligned(n, alignment int64) int64 { return (n + alignment - 1) / alignment * alignment }

// alignmentOf gives where tensors may begin.
func alignmentOf(metadata map[string]any) (int64, error) {
	v, ok := metadata[ggufAlignmentKey]
	if !ok {
		return ggufAlignment, nil
	}
	n, ok := v.(uint32)
	if !ok || n == 0 || n%8 != 0 || n > ggufMaxAlignment {
		return 0, fmt.Errorf("%s is %v, not a uint32 that is a multiple of 8 up to %d", ggufAlignmentKey, v, ggufMaxAlignment)
	}
	return int64(n), nil
}

// value reads a type and a value of it.
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
		return nil, fmt.Errorf("type %d is not of the format", kind)
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
		return nil, fmt.Errorf("an array of %d elements", n)
	}
	data := g.bytes(n * uint64(t.Size()))
	if g.err != nil {
		return nil, g.err
	}
	if t.Kind() == reflect.Bool && slices.ContainsFunc(data, func(b byte) bool { return b > 1 }) {
		return nil, errors.New("a bool is neither 0 nor 1")
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

// tensor reads what a tensor is.
func (g *ggufReader) tensor(alignment int64) (t ggufTensor, err error) {
	t.name = g.name()
	ndim := g.u32()
	if g.err == nil && ndim > ggufMaxDims {
		return t, fmt.Errorf("it has %d axes, more than %d", ndim, ggufMaxDims)
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
		return t, fmt.Errorf("MLX cannot read elements of type %d", t.kindNumber)
	}
	var n int
	widest := mlxc.Float64 // no element of what it becomes is wider
	if t.shape, n, err = checkDims(widest, dims); err != nil {
		return t, err
	}
	if last := t.shape[max(len(t.shape)-1, 0):]; t.kind.block > 1 && (len(last) == 0 || last[0]%t.kind.block != 0) {
		return t, fmt.Errorf("its shape is %s, but %s stores blocks of %d along the last axis", shapeText(t.shape), t.kind.name, t.kind.block)
	}
	if offset > maxBytes || int64(offset)%alignment != 0 {
		return t, fmt.Errorf("its offset %d is not a multiple of the alignment %d", offset, alignment)
	}
	t.begin = int64(offset)
	t.end = t.begin + int64(n/t.kind.block)*int64(t.kind.bytes)
	return t, nil
}

// ggufHeader writes a header.
type ggufHeader struct {
	bytes.Buffer
	alignment int64
}

func (h *ggufHeader) u32(n uint32) { h.Write(endian.LittleEndian.AppendUint32(nil, n)) }
func (h *ggufHeader) u64(n uint64) { h.Write(endian.LittleEndian.AppendUint64(nil, n)) }

func (h *ggufHeader) text(s string) {
	h.u64(uint64(len(s)))
	h.WriteString(s)
}

func (h *ggufHeader) begin(tensors, values int) {
	h.WriteString(ggufMagic)
	h.u32(ggufVersion)
	h.u64(uint64(tensors))
	h.u64(uint64(values))
}

func (h *ggufHeader) tensor(t ggufTensor) {
	h.text(t.name)
	h.u32(uint32(len(t.shape)))
	for _, n := range slices.Backward(t.shape) {
		h.u64(uint64(n))
	}
	h.u32(t.kindNumber)
	h.u64(uint64(t.begin))
}

func (h *ggufHeader) pad() {
	for int64(h.Len())%h.alignment != 0 {
		h.WriteByte(0)
	}
}

// value writes a type and a value of it.
func (h *ggufHeader) value(v any) error {
	t := reflect.TypeOf(v)
	kind := slices.Index(ggufValueTypes[:], t)
	if t == nil {
		return errors.New("there is no value")
	}
	if kind < 0 && t.Kind() == reflect.Slice {
		if kind = slices.Index(ggufValueTypes[:], t.Elem()); kind >= 0 {
			h.u32(ggufArray)
			h.u32(uint32(kind))
			h.u64(uint64(reflect.ValueOf(v).Len()))
			if texts, ok := v.([]string); ok {
				for _, s := range texts {
					h.text(s)
				}
				return nil
			}
		}
	} else if kind >= 0 {
		h.u32(uint32(kind))
		if s, ok := v.(string); ok {
			h.text(s)
			return nil
		}
	}
	if kind < 0 {
		return fmt.Errorf("GGUF has no type for a %v: give a bool, a string, a sized number, or a slice of these", t)
	}
	return endian.Write(h, endian.LittleEndian, v)
}

func writeGGUF(w io.Writer, arrays map[string]*mlxc.Array, metadata map[string]any) error {
	if err := evalNamed(arrays); err != nil {
		return err
	}
	header, names, err := makeGGUFHeader(arrays, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(header.Bytes()); err != nil {
		return err
	}
	for _, name := range names {
		a := arrays[name]
		if err := writeElements(w, a); err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
		n := int64(a.NBytes())
		if _, err := w.Write(make([]byte, aligned(n, header.alignment)-n)); err != nil {
			return err
		}
	}
	return nil
}

func makeGGUFHeader(arrays map[string]*mlxc.Array, metadata map[string]any) (h *ggufHeader, names []string, err error) {
	alignment, err := alignmentOf(metadata)
	if err != nil {
		return nil, nil, err
	}
	byType := map[mlxc.DType]uint32{}
	for number, t := range ggufTypes {
		byType[t.dtype] = number
	}
	delete(byType, mlxc.Invalid)
	h = &ggufHeader{alignment: alignment}
	h.begin(len(arrays), len(metadata))
	for _, key := range sortedNames(metadata) {
		if err := checkGGUFName(key); err != nil {
			return nil, nil, err
		}
		h.text(key)
		if err := h.value(metadata[key]); err != nil {
			return nil, nil, fmt.Errorf("the metadata %q: %w", key, err)
		}
	}
	names = sortedNames(arrays)
	var at int64
	for _, name := range names {
		if err := checkGGUFName(name); err != nil {
			return nil, nil, err
		}
		a := arrays[name]
		number, ok := byType[a.DType()]
		if !ok {
			return nil, nil, fmt.Errorf("array %q: GGUF has no type for %v: convert with AsType first", name, a.DType())
		}
		if a.NDim() > ggufMaxDims {
			return nil, nil, fmt.Errorf("array %q has %d axes, more than %d", name, a.NDim(), ggufMaxDims)
		}
		h.tensor(ggufTensor{name: name, shape: a.Shape(), kindNumber: number, begin: at})
		at = aligned(at+int64(a.NBytes()), alignment)
	}
	h.pad()
	return h, names, nil
}

func checkGGUFName(name string) error {
	if len(name) > ggufMaxKey || !utf8.ValidString(name) {
		return fmt.Errorf("the name %.64q is not UTF-8 or too long", name)
	}
	return nil
}

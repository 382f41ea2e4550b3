package mlxio

import (
	"bytes"
	endian "encoding/binary"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// ggufHeader builds a header.
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

// value writes the type and the value of a metadata entry.
func (h *ggufHeader) value(v any) error {
	t := reflect.TypeOf(v)
	kind := slices.Index(ggufValueTypes[:], t)
	if t == nil {
		return errors.New("the value is nil")
	}
	if kind < 0 && t.Kind() == reflect.Slice {
		if kind = slices.Index(ggufValueTypes[:], t.Elem()); kind >= 0 {
			h.u32(ggufArray)
			h.u32(uint32(kind))
			h.u64(uint64(reflect.ValueOf(v).Len()))
			if kind == ggufString {
				texts := reflect.ValueOf(v) // its type may be a named slice of strings
				for i := range texts.Len() {
					h.text(texts.Index(i).String())
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
		return fmt.Errorf("GGUF has no type for a %v: use a bool, a string, a sized number, or a slice of these", t)
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
			return nil, nil, fmt.Errorf("array %q has %d axes; the maximum is %d", name, a.NDim(), ggufMaxDims)
		}
		h.tensor(ggufTensor{name: name, shape: a.Shape(), kindNumber: number, begin: at})
		at = aligned(at+int64(a.NBytes()), alignment)
	}
	h.pad()
	return h, names, nil
}

func checkGGUFName(name string) error {
	if len(name) > ggufMaxKey || !utf8.ValidString(name) {
		return fmt.Errorf("the name %.64q is not UTF-8 or exceeds 65535 bytes", name)
	}
	return nil
}

package mlxio

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A GGUF file (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md) consists of a magic string, a version, two
// counts, the metadata, the tensor descriptions and the elements, all little-endian.

const (
	ggufMagic        = "GGUF"
	ggufVersion      = 3
	ggufAlignmentKey = "general.alignment"
	ggufAlignment    = 32
	ggufMaxAlignment = 1 << 20
	ggufMaxKey       = 1<<16 - 1
	ggufMaxDims      = 8 // MLX's reader allows 8, ggml 4
)

// ggufType describes how the elements of a tensor are stored: in blocks along the last axis.
type ggufType struct {
	name         string
	block, bytes int        // elements and bytes of a block
	dtype        mlxc.DType // Invalid for quantized types
	triple       bool       // becomes weights, scales and biases
}

// ggufTypes holds the types that this package reads, by their number in the format. MLX does not read int64 and
// float64, and converts bfloat16 to float16 (fault gguf-bfloat16).
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

// ggufValueTypes holds the Go types of metadata values by their number in the format. Number 9 is an array of another
// type.
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

// LoadGGUF opens a GGUF file of version 2 or 3 and returns its arrays by name, and its metadata. A metadata value is a
// bool, a string, a float32, a float64, one of the sized integers, or a slice of one of these.
//
// Arrays of unquantized types are lazy, as with [LoadSafetensors]. Quantized tensors are not lazy. Q4_0, Q4_1, Q4_K and
// Q8_0 become the operands of MLX's quantized operations with groups of 32 elements: the weights, packed in uint32,
// under the tensor's name, and the float16 scales and biases under the name in which ".scales" and ".biases" replace
// ".weight". Q2_K and Q6_K become float16. Other types, nested arrays in the metadata, and violations of the format are
// errors.
func LoadGGUF(path string) (arrays map[string]*mlxc.Array, metadata map[string]any, err error) {
	err = loadFile("LoadGGUF", path, func(r io.Reader, size int64, from elementSource) (err error) {
		arrays, metadata, err = readGGUF(r, size, from)
		return err
	})
	return arrays, metadata, err
}

// ReadGGUF is [LoadGGUF] for any reader. It reads all elements before it returns.
func ReadGGUF(r io.Reader) (arrays map[string]*mlxc.Array, metadata map[string]any, err error) {
	err = readFrom("ReadGGUF", r, func(r io.Reader, size int64, from elementSource) (err error) {
		arrays, metadata, err = readGGUF(r, size, from)
		return err
	})
	return arrays, metadata, err
}

// SaveGGUF evaluates the arrays and writes them, and the metadata, which may be nil, to a GGUF file of version 3. It
// replaces the file like [SaveSafetensors]. Equal arrays and metadata give equal bytes, since both are written in the
// order of their names.
//
// The supported dtypes are int8, int16, int32, int64, float16, bfloat16, float32 and float64. An array may have up to 8
// axes (ggml reads 4). Metadata values have the types that [LoadGGUF] returns. The metadata general.alignment, a uint32
// and a multiple of 8, sets the alignment of the arrays in bytes; the default is 32.
func SaveGGUF(path string, arrays map[string]*mlxc.Array, metadata map[string]any) error {
	return saveFile("SaveGGUF", path, func(w io.Writer) error { return writeGGUF(w, arrays, metadata) })
}

// WriteGGUF is [SaveGGUF] for any writer.
func WriteGGUF(w io.Writer, arrays map[string]*mlxc.Array, metadata map[string]any) error {
	if err := writeGGUF(w, arrays, metadata); err != nil {
		return mlxc.NewError("WriteGGUF", err)
	}
	return nil
}

// ggufTensor is the header entry of a tensor.
type ggufTensor struct {
	name       string
	shape      []int
	kind       ggufType
	kindNumber uint32
	begin, end int64 // byte range, relative to the first tensor
}

func readGGUF(
	r io.Reader, size int64, from elementSource,
) (arrays map[string]*mlxc.Array, metadata map[string]any, err error) {
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
			return nil, nil, fmt.Errorf("tensor %q: its elements begin at byte %d, before the end of the preceding ones at %d", t.name, t.begin, end)
		}
		end = t.end
		// A tensor without elements may begin beyond the end of the file.
		if t.begin < end && size != maxBytes && size-start < end {
			return nil, nil, fmt.Errorf("tensor %q: its elements end at byte %d, but the file has %d bytes: %w",
				t.name, end, max(size-start, 0), io.ErrUnexpectedEOF)
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

// load adds the tensor's arrays to arrays.
func (t ggufTensor) load(from elementSource, start int64, arrays map[string]*mlxc.Array) error {
	names := []string{t.name}
	if t.kind.triple {
		stem := strings.TrimSuffix(t.name, ".weight")
		names = append(names, stem+".scales", stem+".biases")
	}
	for _, name := range names {
		if _, ok := arrays[name]; ok {
			return fmt.Errorf("the array name %q is not unique", name)
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

func aligned(n, alignment int64) int64 { return (n + alignment - 1) / alignment * alignment }

package mlxio

import (
	"bytes"
	"cmp"
	endian "encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A safetensors file (https://github.com/huggingface/safetensors, section Format) consists of the length of the header
// in eight bytes, the header in JSON, and the elements.

// safetensorsTypes maps the dtypes of the format to the dtypes of MLX.
var safetensorsTypes = map[string]mlxc.DType{
	"BOOL": mlxc.Bool, "U8": mlxc.Uint8, "U16": mlxc.Uint16, "U32": mlxc.Uint32, "U64": mlxc.Uint64,
	"I8": mlxc.Int8, "I16": mlxc.Int16, "I32": mlxc.Int32, "I64": mlxc.Int64,
	"F16": mlxc.Float16, "F32": mlxc.Float32, "F64": mlxc.Float64, "BF16": mlxc.BFloat16, "C64": mlxc.Complex64,
}

const (
	safetensorsMetadata  = "__metadata__"
	safetensorsMaxHeader = 100_000_000 // limit of the reference implementation
)

// LoadSafetensors opens a safetensors file and returns its arrays by name, and its metadata, which is never nil. The
// arrays are lazy: each reads its elements when it is evaluated. The file stays open until its arrays are evaluated or
// freed, and may be renamed, replaced or removed before that. If it is modified, evaluating the remaining arrays fails.
// While an array reads its elements, other goroutines cannot build or evaluate graphs.
//
// The header is checked first. A truncated file, overlapping, missing or surplus bytes, a duplicate name, a dtype that
// MLX lacks (8-bit floats), and other violations of the format are errors. If path is not a regular file but, for
// example, a pipe, LoadSafetensors reads all elements before it returns, like [ReadSafetensors].
func LoadSafetensors(path string) (arrays map[string]*mlxc.Array, metadata map[string]string, err error) {
	err = loadFile("LoadSafetensors", path, func(r io.Reader, size int64, from elementSource) (err error) {
		arrays, metadata, err = readSafetensors(r, size, from)
		return err
	})
	return arrays, metadata, err
}

// ReadSafetensors is [LoadSafetensors] for any reader, such as a file of an [io/fs.FS]. It reads all elements before it
// returns, and no byte after the last element. The arrays do not use the reader afterwards.
func ReadSafetensors(r io.Reader) (arrays map[string]*mlxc.Array, metadata map[string]string, err error) {
	err = readFrom("ReadSafetensors", r, func(r io.Reader, size int64, from elementSource) (err error) {
		arrays, metadata, err = readSafetensors(r, size, from)
		return err
	})
	return arrays, metadata, err
}

// SaveSafetensors evaluates arrays and writes them, and the metadata, which may be nil, to a safetensors file. Arrays
// that were loaded from an older file at path stay valid. Equal arguments give equal bytes: arrays are written by
// decreasing element size, so that all are aligned, and then by name.
//
// SaveSafetensors writes to a temporary file in the same folder, and renames it to path when it is complete and on the
// disk. After an error or a crash, an older file is still there. The new file has the mode of the older one, or 0666
// less the umask. If path is a symbolic link, its target is replaced. A FIFO, a device or another special file is
// written to as a stream. Temporary files are named .mlxgrad-*.tmp. A killed process may leave one; a save into the
// same folder removes it after a day.
func SaveSafetensors(path string, arrays map[string]*mlxc.Array, metadata map[string]string) error {
	return saveFile("SaveSafetensors", path, func(w io.Writer) error {
		return writeSafetensors(w, arrays, metadata)
	})
}

// WriteSafetensors is [SaveSafetensors] for any writer. After an error, w may have a part of the file.
func WriteSafetensors(w io.Writer, arrays map[string]*mlxc.Array, metadata map[string]string) error {
	if err := writeSafetensors(w, arrays, metadata); err != nil {
		return mlxc.NewError("WriteSafetensors", err)
	}
	return nil
}

// safetensor is the header entry of an array.
type safetensor struct {
	name       string
	dtype      mlxc.DType
	shape      []int
	begin, end int64 // byte range, relative to the first array
}

func readSafetensors(r io.Reader, size int64, from elementSource) (map[string]*mlxc.Array, map[string]string, error) {
	tensors, metadata, start, err := safetensorsHeader(r, size)
	if err != nil {
		return nil, nil, err
	}
	arrays := make(map[string]*mlxc.Array, len(tensors))
	for _, t := range tensors {
		a, err := loadArray(from, start+t.begin, t.shape, t.dtype)
		if err != nil {
			for _, a := range arrays {
				a.Free()
			}
			return nil, nil, fmt.Errorf("array %q: %w", t.name, err)
		}
		arrays[t.name] = a
	}
	return arrays, metadata, nil
}

func writeSafetensors(w io.Writer, arrays map[string]*mlxc.Array, metadata map[string]string) error {
	if err := evalNamed(arrays); err != nil {
		return err
	}
	header, names, err := makeSafetensorsHeader(arrays, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(header); err != nil {
		return err
	}
	for _, name := range names {
		if err := writeElements(w, arrays[name]); err != nil {
			return fmt.Errorf("array %q: %w", name, err)
		}
	}
	return nil
}

// makeSafetensorsHeader returns the bytes before the elements, and the names in the order of the elements.
func makeSafetensorsHeader(
	arrays map[string]*mlxc.Array, metadata map[string]string,
) (header []byte, names []string, err error) {
	byType := map[mlxc.DType]string{}
	for name, d := range safetensorsTypes {
		byType[d] = name
	}
	names = sortedNames(arrays)
	// Write wide elements first, as the reference implementation does: each array is then aligned to its element size.
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Compare(arrays[b].DType().Size(), arrays[a].DType().Size())
	})
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	b.WriteByte('{')
	member := func(name string, value any) error {
		if !utf8.ValidString(name) {
			return fmt.Errorf("the name %q is not UTF-8", name)
		}
		if b.Len() > 9 {
			b.WriteByte(',')
		}
		if err := writeJSON(&b, name); err != nil {
			return err
		}
		b.WriteByte(':')
		return writeJSON(&b, value)
	}
	if len(metadata) > 0 {
		for name, value := range metadata {
			if !utf8.ValidString(name) || !utf8.ValidString(value) {
				return nil, nil, fmt.Errorf("the metadata %q: %q is not UTF-8", name, value)
			}
		}
		if err := member(safetensorsMetadata, metadata); err != nil {
			return nil, nil, err
		}
	}
	type entry struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	var at int64
	for _, name := range names {
		if name == safetensorsMetadata {
			return nil, nil, fmt.Errorf("the name %q is reserved for the metadata", name)
		}
		a := arrays[name]
		shape := a.Shape()
		if len(shape) > maxAxes {
			return nil, nil, fmt.Errorf("array %q has %d axes; the maximum is %d", name, len(shape), maxAxes)
		}
		end := at + int64(a.NBytes())
		if err := member(name, entry{byType[a.DType()], shape, [2]int64{at, end}}); err != nil {
			return nil, nil, err
		}
		at = end
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	if b.Len()-8 > safetensorsMaxHeader {
		return nil, nil, fmt.Errorf("the header has %d bytes; the maximum is %d", b.Len()-8, safetensorsMaxHeader)
	}
	endian.LittleEndian.PutUint64(b.Bytes(), uint64(b.Len()-8))
	return b.Bytes(), names, nil
}

// writeJSON writes a value without HTML escapes. The keys of maps are sorted.
func writeJSON(b *bytes.Buffer, value any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // removes the encoder's newline
	return nil
}

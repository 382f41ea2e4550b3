package mlxio

import (
	"bytes"
	"cmp"
	endian "encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Safetensors files: https://github.com/huggingface/safetensors, section Format. Eight
// bytes with the length of the header, the header in JSON, the elements.

// safetensorsTypes are the dtypes of the format that MLX has.
var safetensorsTypes = map[string]mlxc.DType{
	"BOOL": mlxc.Bool, "U8": mlxc.Uint8, "U16": mlxc.Uint16, "U32": mlxc.Uint32, "U64": mlxc.Uint64,
	"I8": mlxc.Int8, "I16": mlxc.Int16, "I32": mlxc.Int32, "I64": mlxc.Int64,
	"F16": mlxc.Float16, "F32": mlxc.Float32, "F64": mlxc.Float64, "BF16": mlxc.BFloat16, "C64": mlxc.Complex64,
}

const (
	safetensorsMetadata  = "__metadata__"
	safetensorsMaxHeader = 100_000_000 // the limit of the format's own reader
)

// LoadSafetensors opens a safetensors file and returns its arrays by name, and its
// metadata, which is never nil. The arrays are lazy: each is read from the file when it is
// evaluated, and not before. The file may be renamed, replaced by another or removed
// meanwhile; if it is written to instead, what was not yet evaluated fails. While an array
// is being read, other goroutines wait to build or evaluate.
//
// The header is checked first. A file that is cut short, has overlapping, missing or
// surplus bytes, a name twice, a dtype that MLX lacks (the 8-bit floats), or anything else
// that the format forbids, is an error. A path that is no regular file, such as a pipe, is
// read at once, as by ReadSafetensors.
func LoadSafetensors(path string) (arrays map[string]*mlxc.Array, metadata map[string]string, err error) {
	err = loadFile("LoadSafetensors", path, func(r io.Reader, size int64, from elementSource) (err error) {
		arrays, metadata, err = readSafetensors(r, size, from)
		return err
	})
	return arrays, metadata, err
}

// ReadSafetensors is like LoadSafetensors for any reader, a file of an fs.FS for instance.
// It reads everything at once, to the last array's last byte and no further, on the
// calling goroutine: the arrays do not need the reader any more.
func ReadSafetensors(r io.Reader) (arrays map[string]*mlxc.Array, metadata map[string]string, err error) {
	err = readFrom("ReadSafetensors", r, func(r io.Reader, size int64, from elementSource) (err error) {
		arrays, metadata, err = readSafetensors(r, size, from)
		return err
	})
	return arrays, metadata, err
}

// SaveSafetensors writes arrays and metadata, which may be nil, to a safetensors file. It
// evaluates the arrays. Arrays that were loaded from an older file at path stay good. The same arrays always give the same bytes: they are written in the order of
// their names, within those of the widest elements first, so that all are aligned.
//
// The bytes go to a temporary file in the same folder, which replaces path when it is complete
// and on the disk. After an error or a crash an older file is still there. The new file has the
// older one's mode, or 0666 less the umask. Where path is a symbolic link, its target is
// replaced. A FIFO, a device or another special file is written to as a stream. Temporary files
// are named .mlxgrad-*.tmp; a killed process may leave one, which a save into the same folder
// removes after a day.
func SaveSafetensors(path string, arrays map[string]*mlxc.Array, metadata map[string]string) error {
	return saveFile("SaveSafetensors", path, func(w io.Writer) error {
		return writeSafetensors(w, arrays, metadata)
	})
}

// WriteSafetensors is like SaveSafetensors for any writer.
func WriteSafetensors(w io.Writer, arrays map[string]*mlxc.Array, metadata map[string]string) error {
	if err := writeSafetensors(w, arrays, metadata); err != nil {
		return mlxc.NewError("WriteSafetensors", err)
	}
	return nil
}

// safetensor is an array as a file's header tells of it.
type safetensor struct {
	name       string
	dtype      mlxc.DType
	shape      []int
	begin, end int64 // where its bytes are, from the first array's
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

// safetensorsHeader reads and checks the header of a file of size bytes, or of a stream if
// size is maxBytes. It gives the arrays in the order of their bytes, which begin at start.
func safetensorsHeader(r io.Reader, size int64) (tensors []safetensor, metadata map[string]string, start int64, err error) {
	var prefix [8]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, nil, 0, truncated(err)
	}
	n := endian.LittleEndian.Uint64(prefix[:])
	if n > safetensorsMaxHeader {
		return nil, nil, 0, fmt.Errorf("it is no safetensors file: a header of %d bytes, more than the format's %d", n, safetensorsMaxHeader)
	}
	header, err := readN(r, int64(n))
	if err != nil {
		return nil, nil, 0, err
	}
	tensors, metadata, err = parseSafetensorsHeader(header)
	if err != nil {
		return nil, nil, 0, fmt.Errorf("the header: %w", err)
	}
	start = int64(len(prefix)) + int64(n)
	slices.SortFunc(tensors, func(a, b safetensor) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), cmp.Compare(a.name, b.name))
	})
	var end int64
	for _, t := range tensors {
		if t.begin != end {
			return nil, nil, 0, fmt.Errorf("array %q: its bytes begin at %d, but those before it end at %d", t.name, t.begin, end)
		}
		end = t.end
	}
	if size != maxBytes && size != start+end {
		return nil, nil, 0, fmt.Errorf("the file has %d bytes, but its header tells of %d", size, start+end)
	}
	return tensors, metadata, start, nil
}

func parseSafetensorsHeader(header []byte) (tensors []safetensor, metadata map[string]string, err error) {
	if !utf8.Valid(header) {
		return nil, nil, errors.New("it is not UTF-8")
	}
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, errors.New("it does not begin with {")
	}
	d := json.NewDecoder(bytes.NewReader(header))
	d.UseNumber()
	metadata = map[string]string{}
	if err := delimiter(d, '{'); err != nil {
		return nil, nil, err
	}
	err = parseMembers(d, func(name string) error {
		if name == safetensorsMetadata {
			return parseMetadata(d, metadata)
		}
		if err := delimiter(d, '{'); err != nil {
			return err
		}
		t, err := parseTensor(d, name)
		tensors = append(tensors, t)
		return err
	}, map[string]bool{})
	if err != nil {
		return nil, nil, err
	}
	if rest := bytes.TrimRight(header[d.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return nil, nil, errors.New("there is more behind its object")
	}
	return tensors, metadata, nil
}

// parseMembers reads the rest of a JSON object, behind its brace; member reads the value of
// one name. seen takes the names down.
func parseMembers(d *json.Decoder, member func(name string) error, seen map[string]bool) error {
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, ok := t.(string)
		if !ok {
			return fmt.Errorf("%v where a name is wanted", t)
		}
		if seen[name] {
			return fmt.Errorf("the name %q is there twice", name)
		}
		seen[name] = true
		if err := member(name); err != nil {
			return fmt.Errorf("%q: %w", name, err)
		}
	}
	return delimiter(d, '}')
}

func delimiter(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err != nil {
		return truncated(err)
	}
	if t != want {
		return fmt.Errorf("%v where %v is wanted", t, want)
	}
	return nil
}

// parseMetadata reads texts, or a null, which MLX's writer puts in their place.
func parseMetadata(d *json.Decoder, metadata map[string]string) error {
	switch t, err := d.Token(); {
	case err != nil:
		return err
	case t == nil:
		return nil
	case t != json.Delim('{'):
		return fmt.Errorf("%v where { is wanted", t)
	}
	return parseMembers(d, func(name string) error {
		t, err := d.Token()
		if err != nil {
			return err
		}
		value, ok := t.(string)
		if !ok {
			return fmt.Errorf("%v where a text is wanted", t)
		}
		metadata[name] = value
		return nil
	}, map[string]bool{})
}

func parseTensor(d *json.Decoder, name string) (t safetensor, err error) {
	t.name = name
	var dtype string
	var dims, offsets []uint64
	seen := map[string]bool{}
	err = parseMembers(d, func(field string) (err error) {
		switch field {
		case "dtype":
			v, err := d.Token()
			if err != nil {
				return err
			}
			var ok bool
			if dtype, ok = v.(string); !ok {
				return fmt.Errorf("%v where a dtype is wanted", v)
			}
		case "shape":
			dims, err = parseNumbers(d)
		case "data_offsets":
			offsets, err = parseNumbers(d)
		default:
			var ignored json.RawMessage
			err = d.Decode(&ignored)
		}
		return err
	}, seen)
	if err != nil {
		return t, err
	}
	for _, field := range []string{"dtype", "shape", "data_offsets"} {
		if !seen[field] {
			return t, fmt.Errorf("it has no %s", field)
		}
	}
	var ok bool
	if t.dtype, ok = safetensorsTypes[dtype]; !ok {
		return t, fmt.Errorf("MLX has no dtype %q", dtype)
	}
	var n int
	if t.shape, n, err = checkDims(t.dtype, dims); err != nil {
		return t, err
	}
	if len(offsets) != 2 || offsets[1] < offsets[0] || offsets[1] > maxBytes {
		return t, fmt.Errorf("the data_offsets %v are no beginning and end", offsets)
	}
	t.begin, t.end = int64(offsets[0]), int64(offsets[1])
	if want := int64(n) * int64(t.dtype.Size()); t.end-t.begin != want {
		return t, fmt.Errorf("%s takes %d bytes, not the %d of its data_offsets", t.dtype.String()+shapeText(t.shape), want, t.end-t.begin)
	}
	return t, nil
}

// parseNumbers reads an array of integers that are not negative. It stops where no valid
// header could go on.
func parseNumbers(d *json.Decoder) ([]uint64, error) {
	if err := delimiter(d, '['); err != nil {
		return nil, err
	}
	numbers := []uint64{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		number, ok := t.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%v where a number is wanted", t)
		}
		n, err := strconv.ParseUint(string(number), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%v is no size", number)
		}
		if numbers = append(numbers, n); len(numbers) > maxAxes {
			return nil, fmt.Errorf("more than %d numbers", maxAxes)
		}
	}
	return numbers, delimiter(d, ']')
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

// makeSafetensorsHeader gives the first bytes of a file, and the names in the order in
// which the arrays follow.
func makeSafetensorsHeader(arrays map[string]*mlxc.Array, metadata map[string]string) (header []byte, names []string, err error) {
	byType := map[mlxc.DType]string{}
	for name, d := range safetensorsTypes {
		byType[d] = name
	}
	names = sortedNames(arrays)
	// As the format's own writer does: then every array is aligned to its elements.
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
				return nil, nil, fmt.Errorf("the metadata %q: %q are not UTF-8", name, value)
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
			return nil, nil, fmt.Errorf("the name %q is the metadata's", name)
		}
		a := arrays[name]
		shape := a.Shape()
		if len(shape) > maxAxes {
			return nil, nil, fmt.Errorf("array %q has %d axes, more than %d", name, len(shape), maxAxes)
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
		return nil, nil, fmt.Errorf("the header has %d bytes, more than the format's %d", b.Len()-8, safetensorsMaxHeader)
	}
	endian.LittleEndian.PutUint64(b.Bytes(), uint64(b.Len()-8))
	return b.Bytes(), names, nil
}

// writeJSON writes a value without the escapes that are for web pages. Maps come in the
// order of their keys.
func writeJSON(b *bytes.Buffer, value any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1) // the encoder's newline
	return nil
}

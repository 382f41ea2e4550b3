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
)

// safetensorsHeader reads and checks the header of a file of size bytes, or of a stream if size is maxBytes. It returns
// the arrays in the order of their elements, which begin at byte start.
func safetensorsHeader(
	r io.Reader, size int64,
) (tensors []safetensor, metadata map[string]string, start int64, err error) {
	var prefix [8]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, nil, 0, truncated(err)
	}
	n := endian.LittleEndian.Uint64(prefix[:])
	if n > safetensorsMaxHeader {
		return nil, nil, 0, fmt.Errorf("it is not a safetensors file: the header has %d bytes; the maximum is %d", n,
			safetensorsMaxHeader)
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
			return nil, nil, 0, fmt.Errorf("array %q: its elements begin at byte %d, but the preceding ones end at %d",
				t.name, t.begin, end)
		}
		end = t.end
	}
	if size != maxBytes && size != start+end {
		return nil, nil, 0, fmt.Errorf("the file has %d bytes, but its header describes %d", size, start+end)
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
		return nil, nil, errors.New("text follows the object")
	}
	return tensors, metadata, nil
}

// parseMembers parses the members of a JSON object after its opening brace. member parses the value of a name.
// parseMembers adds the names to seen.
func parseMembers(d *json.Decoder, member func(name string) error, seen map[string]bool) error {
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		name, ok := t.(string)
		if !ok {
			return fmt.Errorf("found %v instead of a name", t)
		}
		if seen[name] {
			return fmt.Errorf("the name %q is not unique", name)
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
		return fmt.Errorf("found %v instead of %v", t, want)
	}
	return nil
}

// parseMetadata parses an object of strings, or null, which MLX writes for empty metadata.
func parseMetadata(d *json.Decoder, metadata map[string]string) error {
	switch t, err := d.Token(); {
	case err != nil:
		return err
	case t == nil:
		return nil
	case t != json.Delim('{'):
		return fmt.Errorf("found %v instead of {", t)
	}
	return parseMembers(d, func(name string) error {
		t, err := d.Token()
		if err != nil {
			return err
		}
		value, ok := t.(string)
		if !ok {
			return fmt.Errorf("found %v instead of a string", t)
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
				return fmt.Errorf("found %v instead of a dtype", v)
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
		return t, fmt.Errorf("data_offsets is %v; it must be an ascending pair", offsets)
	}
	t.begin, t.end = int64(offsets[0]), int64(offsets[1])
	if want := int64(n) * int64(t.dtype.Size()); t.end-t.begin != want {
		return t, fmt.Errorf("%s takes %d bytes, but its data_offsets span %d", t.dtype.String()+shapeText(t.shape),
			want, t.end-t.begin)
	}
	return t, nil
}

// parseNumbers parses an array of at most maxAxes non-negative integers.
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
			return nil, fmt.Errorf("found %v instead of a number", t)
		}
		n, err := strconv.ParseUint(string(number), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%v is not a non-negative integer", number)
		}
		if numbers = append(numbers, n); len(numbers) > maxAxes {
			return nil, fmt.Errorf("more than %d numbers", maxAxes)
		}
	}
	return numbers, delimiter(d, ']')
}

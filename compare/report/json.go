package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
)

// Number is a float64 that JSON can hold whatever its value. The values that JSON has no numbers for
// are the strings "NaN", "Infinity" and "-Infinity", as in the JSON form of protocol buffers.
type Number float64

// MarshalJSON implements [json.Marshaler].
func (n Number) MarshalJSON() ([]byte, error) {
	switch v := float64(n); {
	case math.IsNaN(v):
		return []byte(`"NaN"`), nil
	case math.IsInf(v, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(v, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return json.Marshal(v)
	}
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *Number) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"NaN"`:
		*n = Number(math.NaN())
	case `"Infinity"`:
		*n = Number(math.Inf(1))
	case `"-Infinity"`:
		*n = Number(math.Inf(-1))
	default:
		v, err := strconv.ParseFloat(string(data), 64)
		if err != nil {
			return fmt.Errorf("number %s in a report: %w", data, err)
		}
		*n = Number(v)
	}
	return nil
}

// Encode writes the report as indented JSON.
func (r *Report) Encode(w io.Writer) error {
	// Programs index into these, so an empty list must not be null.
	whole := *r
	whole.Suites = append([]Suite{}, r.Suites...)
	whole.Cases = append([]Case{}, r.Cases...)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(&whole)
}

// Decode reads a report that [Report.Encode] wrote.
func Decode(r io.Reader) (*Report, error) {
	var out Report
	if err := json.NewDecoder(r).Decode(&out); err != nil {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	return &out, nil
}

// perm is that of a report's file. CreateTemp makes files that only the owner can read; a report is no
// secret.
const perm = 0o644

// WriteFile writes the report as JSON to path, as the function of this name does.
func (r *Report) WriteFile(path string) error { return WriteFile(path, r.Encode) }

// WriteFile writes a report to path with encode. Readers of path see what was there before or the
// whole report, never a part: the file is written beside it and renamed into place. What is no plain
// file, such as a pipe, a link or /dev/stdout, is written to instead.
func WriteFile(path string, encode func(io.Writer) error) (err error) {
	if !Replaceable(path) {
		return writeInto(path, encode)
	}
	f, err := createBeside(path)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	defer func() {
		if err != nil {
			_ = f.Close() // Closed already when the rename failed; the first error is the one to tell.
			_ = os.Remove(f.Name())
			err = fmt.Errorf("writing the report: %w", err)
		}
	}()
	if err := encode(f); err != nil {
		return err
	}
	if err := f.Chmod(perm); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Writable tells, before a report is made, what would keep [WriteFile] from writing it to path.
func Writable(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder: name a file", path)
	}
	if !Replaceable(path) {
		return nil // To open a pipe would be to wait for its reader.
	}
	f, err := createBeside(path)
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written: %w", path, err)
	}
	return nil
}

// Replaceable reports whether path is a plain file, or nothing yet.
func Replaceable(path string) bool {
	info, err := os.Lstat(path)
	return err != nil || info.Mode().IsRegular()
}

// createBeside makes a temporary file that can be renamed to path.
func createBeside(path string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, &fs.PathError{Op: e.Op, Path: filepath.Dir(path), Err: e.Err} // The name in it is nobody's.
	}
	return f, err
}

// writeInto writes a report to what is there already.
func writeInto(path string, encode func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err == nil {
		err = errors.Join(encode(f), f.Close())
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

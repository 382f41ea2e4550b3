// Package outfile writes the files of reports.
package outfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// perm is the mode of a new file. Files of os.CreateTemp are readable by their owner only.
const perm = 0o644

// Write writes a report to path with encode. It writes a temporary file in the same folder and renames it, so readers
// of path see the previous file or the complete report, never a part. A path that is not a regular file, such as a
// pipe, a link or /dev/stdout, is written to directly, after the report is complete. A new file has the mode 0644, and a
// replaced file keeps its mode.
func Write(path string, encode func(io.Writer) error) (err error) {
	if !Replaceable(path) {
		return writeInto(path, encode)
	}
	f, err := createBeside(path)
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	defer func() {
		if err != nil {
			_ = f.Close() // the first error is returned; after a failed rename the file is closed already
			_ = os.Remove(f.Name())
			err = fmt.Errorf("writing the report: %w", err)
		}
	}()
	if err := encode(f); err != nil {
		return err
	}
	mode := fs.FileMode(perm)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// EncodeJSON writes indented JSON without escaping <, > and &.
func EncodeJSON(w io.Writer, content any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(content)
}

// Writable returns an error if [Write] could not write to path.
func Writable(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder; it must be a file", path)
	}
	if !Replaceable(path) {
		return nil // opening a pipe would block until it has a reader
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

// Replaceable reports whether path is a regular file or does not exist.
func Replaceable(path string) bool {
	info, err := os.Lstat(path)
	return err != nil || info.Mode().IsRegular()
}

// createBeside creates a temporary file in the folder of path. It can be renamed to path.
func createBeside(path string) (*os.File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, &fs.PathError{Op: e.Op, Path: filepath.Dir(path), Err: e.Err} // without the random name
	}
	return f, err
}

// writeInto writes a report to path without replacing the file. If encode fails, the file stays as it is.
func writeInto(path string, encode func(io.Writer) error) error {
	var report bytes.Buffer
	err := encode(&report)
	if err == nil {
		err = os.WriteFile(path, report.Bytes(), perm)
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Package outfile writes the files of reports.
package outfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// perm is that of a report's file. CreateTemp makes files that only the owner can read; a report is no
// secret.
const perm = 0o644

// Write writes a report to path with encode. Readers of path see what was there before or the
// whole report, never a part: the file is written beside it and renamed into place. What is no plain
// file, such as a pipe, a link or /dev/stdout, is written to instead.
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

// EncodeJSON writes indented JSON in which <, > and & stay as they are.
func EncodeJSON(w io.Writer, content any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(content)
}

// Writable tells, before a report is made, what would keep [Write] from writing it to path.
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

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// checkJSONPath finds before a run what would be in the way of writing its report after it.
func checkJSONPath(path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(filepath.Dir(path))
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: filepath.Dir(path), Err: errors.New("not a folder")}
	}
	if err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	return nil
}

// writeJSON writes a report. Readers of path see what was there before or the whole report, never a
// part: the file is written beside it and renamed into place.
func writeJSON(path string, report any) (err error) {
	// CreateTemp makes files that only the owner can read; a report is no secret.
	const perm = 0o644
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
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
	e := json.NewEncoder(f)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(report); err != nil {
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

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mlxgrad/mlxgrad/compare/report"
)

// checkJSONPath is checkFolderOf the file of the flag --json.
func checkJSONPath(path string) error { return checkFolderOf("--json", path) }

// checkFolderOf finds before a run what would be in the way of writing a flag's file after it.
func checkFolderOf(flag, path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(filepath.Dir(path))
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: filepath.Dir(path), Err: errors.New("not a folder")}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// writeJSON writes a report to path, all of it or nothing.
func writeJSON(path string, content any) error {
	return report.WriteFile(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(content)
	})
}

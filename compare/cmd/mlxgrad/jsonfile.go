package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/mlxgrad/mlxgrad/compare/report"
)

// checkFileOf finds before a run what would be in the way of writing a flag's file after it.
func checkFileOf(flag, path string) error {
	if path == "" {
		return nil
	}
	if err := report.Writable(path); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// writeJSON writes a report to path, if there is one, all of it or nothing.
func writeJSON(path string, content any) error {
	if path == "" {
		return nil
	}
	return report.WriteFile(path, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(content)
	})
}

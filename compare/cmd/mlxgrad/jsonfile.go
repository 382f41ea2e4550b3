package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/mlxgrad/mlxgrad/compare/report"
)

// standardOutput is the name with which --json asks for standard output. What is for people goes to
// standard error then.
const standardOutput = "-"

// streams are the outputs of the process.
type streams struct{ out, err io.Writer }

// text is where what is for people goes, beside JSON at a path.
func (s streams) text(path string) io.Writer {
	if path == standardOutput {
		return s.err
	}
	return s.out
}

// writeJSON writes a report to path, which may name standard output.
func (s streams) writeJSON(path string, content any) error {
	if path == standardOutput {
		return encodeJSON(s.out, content)
	}
	return writeJSON(path, content)
}

// checkFileOf finds before a run what would be in the way of writing a flag's file after it.
func checkFileOf(flag, path string) error {
	if path == "" || path == standardOutput {
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
	return report.WriteFile(path, func(w io.Writer) error { return encodeJSON(w, content) })
}

func encodeJSON(w io.Writer, content any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(content)
}

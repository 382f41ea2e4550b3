package metalsan

import (
	"fmt"
	"io"

	"github.com/mlxgrad/mlxgrad/internal/outfile"
)

// standardOutput is the file name that stands for standard output.
const standardOutput = "-"

// Streams are the outputs of the process.
type Streams struct{ Out, Err io.Writer }

// Text returns the stream for people: standard error if a report goes to standard output.
func (s Streams) Text(reports ...string) *Printer {
	for _, path := range reports {
		if path == standardOutput {
			return &Printer{w: s.Err}
		}
	}
	return &Printer{w: s.Out}
}

// WriteJSON writes a report to path, all of it or nothing. The path may be standard output, or empty for no
// report.
func (s Streams) WriteJSON(path string, content any) error {
	switch path {
	case "":
		return nil
	case standardOutput:
		return outfile.EncodeJSON(s.Out, content)
	}
	return outfile.Write(path, func(w io.Writer) error { return outfile.EncodeJSON(w, content) })
}

// CheckOutput returns an error if the file of a flag is not writable. Commands call it before a run, so that the run is
// not lost.
func CheckOutput(flag, path string) error {
	if path == "" || path == standardOutput {
		return nil
	}
	if err := outfile.Writable(path); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// Printer writes text and keeps the first error, so that callers check for an error once, at the end.
type Printer struct {
	w   io.Writer
	err error
}

// Print writes text, unless an error came before.
func (p *Printer) Print(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text)
	}
}

// Err returns the first error.
func (p *Printer) Err() error {
	if p.err != nil {
		return fmt.Errorf("printing the report: %w", p.err)
	}
	return nil
}

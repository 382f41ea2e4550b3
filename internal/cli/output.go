package cli

import (
	"fmt"
	"io"

	"github.com/mlxgrad/mlxgrad/internal/outfile"
	"github.com/mlxgrad/mlxgrad/internal/statusline"
)

// StandardOutput is the file name that stands for standard output.
const StandardOutput = "-"

// Streams are the outputs of the process.
type Streams struct{ Out, Err io.Writer }

// Text returns the printer for people. It writes to standard output, or to standard error if one of the report files is
// [StandardOutput]. It is colored on a terminal. The caller must end its status line.
func (s Streams) Text(reports ...string) *Printer {
	w := s.Out
	for _, path := range reports {
		if path == StandardOutput {
			w = s.Err
		}
	}
	return &Printer{w: Colored(w), Status: statusline.New(s.Err)}
}

// WriteJSON writes a report to path, all of it or nothing. The path may be standard output, or empty for no
// report.
func (s Streams) WriteJSON(path string, content any) error {
	return s.WriteFile(path, func(w io.Writer) error { return outfile.EncodeJSON(w, content) })
}

// WriteFile writes a report to path by encode, like WriteJSON.
func (s Streams) WriteFile(path string, encode func(io.Writer) error) error {
	switch path {
	case "":
		return nil
	case StandardOutput:
		return encode(s.Out)
	}
	return outfile.Write(path, encode)
}

// CheckOutput returns an error if the file of a flag is not writable. Commands call it before a run, so that the run is
// not lost.
func CheckOutput(flag, path string) error {
	if path == "" || path == StandardOutput {
		return nil
	}
	if err := outfile.Writable(path); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// A Printer prints the text of a command and shows the progress of its work.
type Printer struct {
	// Status is the line of progress on standard error. The command ends it.
	Status *statusline.Line
	w      io.Writer
	err    error
}

// Print writes text, unless an earlier write failed. Callers check Err once, at the end.
func (p *Printer) Print(text string) {
	_, _ = io.WriteString(p, text)
}

// Write implements [io.Writer] like Print.
func (p *Printer) Write(text []byte) (int, error) {
	if p.err == nil {
		p.Status.Interrupt(func() { _, p.err = p.w.Write(text) })
	}
	return len(text), p.err
}

// Err returns the first error.
func (p *Printer) Err() error {
	if p.err != nil {
		return fmt.Errorf("printing the report: %w", p.err)
	}
	return nil
}

package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A Result is a [Report] or a [Bench].
type Result interface {
	// Succeeded reports whether the run is complete, has rows and has no failure.
	Succeeded() bool
	// Encode writes the result as JSON.
	Encode(w io.Writer) error
	// WriteText writes the text that the command of the run prints.
	WriteText(w io.Writer) error
	// WriteCSV writes the rows.
	WriteCSV(w io.Writer) error
	// WriteJUnit writes a test case for each row, in the XML of JUnit.
	WriteJUnit(w io.Writer) error
	// WriteBenchstat writes each repetition as a line for benchstat. A comparison has no repetitions.
	WriteBenchstat(w io.Writer) error

	page() page
}

// The kinds of results in JSON.
const (
	kindParity = "parity"
	kindBench  = "bench"
)

// Read reads the JSON of either kind of result.
func Read(r io.Reader) (Result, error) {
	data, kind, err := readKind(r)
	if err != nil {
		return nil, err
	}
	switch kind {
	case kindParity:
		return Decode(bytes.NewReader(data))
	case kindBench:
		return DecodeBench(bytes.NewReader(data))
	}
	return nil, fmt.Errorf("reading a report: its kind is %q; it must be %q or %q", kind, kindParity, kindBench)
}

// Format is a format of [Write].
type Format string

// The formats of [Write].
const (
	Text      Format = "text"
	CSV       Format = "csv"
	JUnit     Format = "junit"
	Markdown  Format = "markdown"
	HTML      Format = "html"
	Benchstat Format = "benchstat"
)

// Formats returns the formats of [Write].
func Formats() []Format { return []Format{Text, CSV, JUnit, Markdown, HTML, Benchstat} }

// Write writes a result in a format. It returns an error for an unknown format, and for Benchstat if r is a [Report].
func Write(w io.Writer, r Result, format Format) error {
	switch format {
	case Text:
		return r.WriteText(w)
	case CSV:
		return r.WriteCSV(w)
	case JUnit:
		return r.WriteJUnit(w)
	case Markdown:
		return writeMarkdown(w, r.page())
	case HTML:
		return writeHTML(w, r.page())
	case Benchstat:
		return r.WriteBenchstat(w)
	}
	var names []string
	for _, f := range Formats() {
		names = append(names, string(f))
	}
	return fmt.Errorf("format %q is none of %s", format, strings.Join(names, ", "))
}

// WriteText implements [Result] with [Report.WriteTable].
func (r *Report) WriteText(w io.Writer) error { return r.WriteTable(w, TableOptions{}) }

// WriteText implements [Result] with [Bench.WriteTable].
func (b *Bench) WriteText(w io.Writer) error { return b.WriteTable(w) }

// WriteBenchstat returns an error: a comparison has no repetitions.
func (*Report) WriteBenchstat(io.Writer) error {
	return errors.New("benchstat reads timings, and this is the report of a comparison; mlxgrad bench writes timings")
}

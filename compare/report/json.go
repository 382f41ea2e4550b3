package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/mlxgrad/mlxgrad/internal/outfile"
)

// Number is a float64 in JSON. NaN and the infinities, which JSON lacks, are the strings "NaN", "Infinity" and
// "-Infinity", as in the JSON form of protocol buffers.
type Number float64

// String returns the number with all its digits. NaN and the infinities are as in JSON, without quotes.
func (n Number) String() string {
	switch v := float64(n); {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "Infinity"
	case math.IsInf(v, -1):
		return "-Infinity"
	default:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
}

// MarshalJSON implements [json.Marshaler].
func (n Number) MarshalJSON() ([]byte, error) {
	if v := float64(n); !math.IsNaN(v) && !math.IsInf(v, 0) {
		return json.Marshal(v)
	}
	return json.Marshal(n.String())
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
	// Programs index into these lists, so an empty one must not be null.
	whole := *r
	whole.Suites = append([]Suite{}, r.Suites...)
	whole.Rows = append([]Row{}, r.Rows...)
	return outfile.EncodeJSON(w, struct {
		Kind string `json:"kind"`
		*Report
	}{kindParity, &whole})
}

// Decode reads a report that [Report.Encode] wrote. It returns an error for another kind of result.
func Decode(r io.Reader) (*Report, error) {
	out, err := decode[Report](r, kindParity)
	if err != nil {
		return nil, err
	}
	out.SetCounts()
	return out, nil
}

// DecodeBench reads a report that [Bench.Encode] wrote, and derives Ratio and OverLimit from the times. It returns an
// error for another kind of result.
func DecodeBench(r io.Reader) (*Bench, error) {
	b, err := decode[Bench](r, kindBench)
	if err != nil {
		return nil, err
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("reading a report: row %d, %s %s: %w", i+1, r.Op, r.Case, err)
		}
		r.Derive(b.Limits)
	}
	return b, nil
}

// check returns an error if the row has no measurement of ours and no error, or lists of different lengths.
func (r *BenchRow) check() error {
	if r.Ours == nil && r.Error == "" {
		return errors.New("it has neither ours nor error")
	}
	for _, s := range r.sides() {
		if n := len(s.timing.Repetitions); n != len(s.timing.WallRepetitions) || n != len(s.timing.BuildRepetitions) {
			return fmt.Errorf("%s has %d repetitions_us, %d wall_repetitions_us and %d build_repetitions_us; they must be equally many",
				s.name, n, len(s.timing.WallRepetitions), len(s.timing.BuildRepetitions))
		}
	}
	return nil
}

func decode[T any](r io.Reader, kind string) (*T, error) {
	data, found, err := readKind(r)
	if err != nil {
		return nil, err
	}
	if found != kind {
		return nil, fmt.Errorf("reading a report: its kind is %q; it must be %q", found, kind)
	}
	out := new(T)
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	return out, nil
}

// readKind reads the JSON of a result and returns it with its kind.
func readKind(r io.Reader) (data []byte, kind string, err error) {
	data, err = io.ReadAll(r)
	var head struct {
		Kind string `json:"kind"`
	}
	if err == nil {
		err = json.Unmarshal(data, &head)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading a report: %w", err)
	}
	return data, head.Kind, nil
}

// WriteFile writes the report as JSON to path. After a failure path is unchanged.
func (r *Report) WriteFile(path string) error { return outfile.Write(path, r.Encode) }

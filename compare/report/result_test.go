package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rendered returns a result in a format, after a round trip through JSON.
func rendered(t *testing.T, r Result, format Format) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Write(&out, reread(t, r), format))
	return out.String()
}

func reread(t *testing.T, r Result) Result {
	t.Helper()
	var encoded bytes.Buffer
	require.NoError(t, r.Encode(&encoded))
	again, err := Read(&encoded)
	require.NoError(t, err)
	require.IsType(t, r, again)
	return again
}

func TestRead(t *testing.T) {
	for _, text := range []string{"", "{", `{"kind": "traffic"}`, "{}", `{"kind": "bench", "rows": 1}`} {
		_, err := Read(strings.NewReader(text))
		require.ErrorContains(t, err, "reading a report: ", text)
	}
	_, err := Read(strings.NewReader(`{"kind": "traffic"}`))
	require.EqualError(t, err, `reading a report: its kind is "traffic"; it must be "parity" or "bench"`)
}

func TestWriteRefusesOtherFormats(t *testing.T) {
	require.EqualError(t, Write(io.Discard, sample(), "pdf"), `format "pdf" is none of text, csv, junit, markdown, html, benchstat`)
	require.ErrorContains(t, Write(io.Discard, sample(), Benchstat), "benchstat reads timings")
}

func TestEveryFormatReportsWriteErrors(t *testing.T) {
	for _, format := range Formats() {
		require.ErrorContains(t, Write(full{}, sampleBench(), format), "disk full", format)
	}
}

func TestGoldenForms(t *testing.T) {
	for name, r := range map[string]Result{"parity": sample(), "bench": sampleBench(), "nothing": &Report{}} {
		for _, format := range []Format{JUnit, Markdown} {
			got := rendered(t, r, format)
			golden := filepath.Join("testdata", name+"."+string(format)+".golden")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		}
	}
}

// The rows of the CSV are the rows of the JSON.
func TestParityCSVReadBack(t *testing.T) {
	want := sample()
	lines, err := csv.NewReader(strings.NewReader(rendered(t, want, CSV))).ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, 1+len(want.Rows))
	for i, row := range want.Rows {
		encoded, err := json.Marshal(row)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(encoded, &fields))
		for column, name := range lines[0] {
			got := lines[1+i][column]
			switch v := fields[name].(type) {
			case nil: // an omitted empty message
				require.Empty(t, got, name)
			case string:
				require.Equal(t, v, got, name)
			case bool:
				require.Equal(t, strconv.FormatBool(v), got, name)
			case float64:
				n, err := strconv.ParseFloat(got, 64)
				require.NoError(t, err, name)
				require.Equal(t, v, n, name)
			case []any:
				var shape []any
				for _, length := range strings.Split(got, "x") {
					n, err := strconv.ParseFloat(length, 64)
					require.NoError(t, err)
					shape = append(shape, n)
				}
				require.Equal(t, v, shape)
			}
			delete(fields, name)
		}
		require.Empty(t, fields, "every field is a column")
	}
}

// dataCells returns the full figures of each row of the tables of an HTML page, in order.
func dataCells(t *testing.T, html string) (rows [][]float64) {
	t.Helper()
	for _, body := range regexp.MustCompile(`(?s)<tbody>(.*?)</tbody>`).FindAllStringSubmatch(html, -1) {
		for _, row := range regexp.MustCompile(`(?s)<tr>.*?</tr>`).FindAllString(body[1], -1) {
			var figures []float64
			for _, v := range regexp.MustCompile(`data-v="([^"]*)"`).FindAllStringSubmatch(row, -1) {
				// html/template escapes the plus of an exponent.
				n, err := strconv.ParseFloat(strings.ReplaceAll(v[1], "&#43;", "+"), 64)
				require.NoError(t, err)
				figures = append(figures, n)
			}
			rows = append(rows, figures)
		}
	}
	return rows
}

// requireSame compares figures bit by bit, since NaN is not equal to itself.
func requireSame(t *testing.T, want, got []float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		if math.IsNaN(want[i]) && math.IsNaN(got[i]) {
			continue
		}
		require.Equal(t, want[i], got[i], "figure %d", i)
	}
}

// The HTML has the figures of the JSON, with all digits.
func TestHTMLFiguresEqualJSON(t *testing.T) {
	r := sample()
	r.Rows[0].MaxErr, r.Rows[0].Ratio = Number(math.Nextafter(1.25e-7, 1)), Number(1+1e-15)
	r.Rows[0].MLXMaxErr = 1e22
	read := reread(t, r).(*Report)
	require.Equal(t, r.Rows[0], read.Rows[0])
	rows := dataCells(t, rendered(t, r, HTML))
	require.Len(t, rows, len(r.Suites)+len(r.Rows))
	for i, s := range read.Suites {
		c := read.count(s.Op, s.DType)
		requireSame(t, []float64{float64(c.rows), float64(c.passed), c.worst, float64(s.Ratio), s.Seconds}, rows[i])
	}
	for i, c := range read.Rows {
		requireSame(t, []float64{
			float64(c.MaxErr), float64(c.MLXMaxErr), float64(c.MeanErr), float64(c.MLXMeanErr), float64(c.Floor), float64(c.Ratio),
		}, rows[len(r.Suites)+i])
	}

	b := reread(t, sampleBench()).(*Bench)
	rows = dataCells(t, rendered(t, b, HTML))
	require.Len(t, rows, len(b.Rows))
	for i, c := range b.Rows {
		want := []float64{math.NaN(), math.NaN(), math.NaN(), math.NaN(), float64(c.Ratio), math.NaN(), math.NaN(), float64(c.OverLimit), math.NaN(), math.NaN()}
		for k, side := range []*Timing{c.Ours, c.MLX} {
			if side == nil {
				continue
			}
			rate, _ := c.Rate(side)
			want[2*k], want[2*k+1], want[5+k], want[8+k] = side.Median, 100*side.Spread(), rate, float64(side.ExtraMemory)/(1<<20)
		}
		requireSame(t, want, rows[i])
	}
}

// The page loads nothing, and text of the report is no markup.
func TestHTMLIsSelfContained(t *testing.T) {
	r := sample()
	r.Rows[1].Message = `<script>alert("x")</script>`
	html := rendered(t, r, HTML)
	require.Contains(t, html, "default-src 'none'", "the policy is part of the page")
	require.NotContains(t, html, `<script>alert`)
	require.Contains(t, html, "1 passed, 2 failed")
	for _, link := range regexp.MustCompile(`(?:src|href|url)\s*[=(]\s*"?([^")]*)`).FindAllStringSubmatch(html, -1) {
		require.Equal(t, "data:,", link[1])
	}
	require.NotContains(t, html, "://")
}

func TestPlotScales(t *testing.T) {
	s := span{1e-3, 1e3}
	require.Equal(t, 0.0, s.at(1e-3, 0, 100))
	require.Equal(t, 50.0, s.at(1, 0, 100))
	require.Equal(t, 100.0, s.at(1e9, 0, 100), "the frame bounds a figure")
	require.Equal(t, []float64{1e-3, 1e-1, 1e1, 1e3}, s.values())
	require.Equal(t, []float64{0.5, 1, 2, 5}, span{0.4, 5}.values())
	require.Equal(t, "1e-7", tickLabel(1e-7))
	require.Equal(t, "5e6", tickLabel(5e6))
	require.Equal(t, "0.05", tickLabel(0.05))
}

// Every row with finite errors is a point below or above the guide, as the rule says.
func TestPlotOfErrors(t *testing.T) {
	r := &Report{}
	for i, ours := range []Number{0.5, 1, 3.9, 4.1, 1.1} {
		mlx := []Number{0, 0, 2, 2, 0}[i]
		r.Rows = append(r.Rows, Row{Op: "op", DType: "float32", MaxErr: ours, MLXMaxErr: mlx, Floor: 1, Pass: i < 3})
	}
	r.Rows = append(r.Rows, r.Rows[0], Row{Op: "op", DType: "float32", MaxErr: 1, MLXMaxErr: Number(math.NaN()), Floor: 1})
	plots := r.plots()
	require.Len(t, plots, 1)
	p := plots[0]
	require.Len(t, p.Points, 5, "two rows share a point")
	require.Contains(t, p.Note, "Not drawn: 1 row")
	failed := 0
	for _, at := range p.Points {
		if at.Series == seriesFailed {
			failed++
		}
	}
	require.Equal(t, 2, failed)
	require.Contains(t, p.Points[0].Name, "and 1 more row")
}

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/outfile"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sample is a report with a pass, a failure, a failing MLX and a failing suite.
func sample() *Report {
	r := &Report{
		MLX: "0.32.2", MLXC: "0.7.0", Device: "cpu", Executor: "host",
		Sample: true, Kernels: 12, CompileSeconds: 7.25,
		Suites: []Suite{
			{Op: "rmsnorm", DType: "float32", Ratio: 1.25, Outputs: 2, Pass: true, Seconds: 0.5},
			{Op: "rmsnorm", DType: "bfloat16", Ratio: 1.5, Outputs: 2, Judged: true},
		},
		Rows: []Row{
			{
				Op: "rmsnorm", Name: "37x4099 w transposed", DType: "float32", Shape: []int{37, 4099},
				Layout: "transposed", Output: "dx", MaxErr: 1.25e-7, MLXMaxErr: 2.5e-7, MeanErr: 1e-9,
				MLXMeanErr: 2e-9, Floor: 1e-6, Ratio: 0.9, Launches: 3, Pass: true,
				OutputDType: "float32", MLX: MLXValid,
			},
			{
				Op: "rmsnorm", Name: "3x7 w", DType: "float16", Shape: []int{3, 7}, Layout: "contiguous",
				Output: "dw", MaxErr: Number(math.Inf(1)), MLXMaxErr: Number(math.NaN()), MeanErr: 0.5,
				MLXMeanErr: Number(math.Inf(-1)), Floor: 0, Ratio: Number(math.NaN()), Launches: 3,
				Message: "off by more than 0.1 in 2 of 7 elements (28.6%)\nmean error 0.5, allowed 0.1", MLX: MLXRefuses, MLXMessage: "panic: no",
			},
		},
	}
	r.SetCounts()
	return r
}

func TestCount(t *testing.T) {
	r := sample()
	require.Equal(t, 1, r.Passed)
	require.Equal(t, 2, r.Failed, "a case and a suite")
	require.False(t, r.Succeeded())
}

func TestSucceeded(t *testing.T) {
	require.False(t, (&Report{}).Succeeded(), "nothing ran")
	require.True(t, (&Report{Passed: 1}).Succeeded())
	require.False(t, (&Report{Passed: 1, Failed: 1}).Succeeded())
	require.False(t, (&Report{Passed: 1, Incomplete: true}).Succeeded())
}

func TestJSONRoundTrip(t *testing.T) {
	var buf bytes.Buffer
	require.NoError(t, sample().Encode(&buf))
	require.True(t, json.Valid(buf.Bytes()))
	text := buf.String()

	got, err := Decode(&buf)
	require.NoError(t, err)
	var again bytes.Buffer
	require.NoError(t, got.Encode(&again))
	require.Equal(t, text, again.String(), "NaN is not equal to itself, its text is")

	got.Rows, got.Suites = got.Rows[:1], nil
	want := sample()
	want.Rows, want.Suites = want.Rows[:1], nil
	require.Equal(t, want, got)
}

func TestJSONNames(t *testing.T) {
	var buf bytes.Buffer
	require.NoError(t, sample().Encode(&buf))
	var top map[string]any
	require.NoError(t, json.Unmarshal(buf.Bytes(), &top))
	for _, key := range []string{"mlx", "mlx_c", "device", "executor", "incomplete", "passed", "failed", "rows"} {
		require.Contains(t, top, key)
	}
	first := top["rows"].([]any)[1].(map[string]any)
	for _, key := range []string{
		"op", "case", "dtype", "shape", "output", "max_err", "mlx_max_err", "mean_err", "mlx_mean_err", "floor", "pass",
	} {
		require.Contains(t, first, key)
	}
	require.Equal(t, "Infinity", first["max_err"])
	require.Equal(t, "NaN", first["mlx_max_err"])
	require.Equal(t, "-Infinity", first["mlx_mean_err"])
	require.Equal(t, 0.5, first["mean_err"])
}

func TestJSONOfNothing(t *testing.T) {
	var buf bytes.Buffer
	require.NoError(t, (&Report{}).Encode(&buf))
	require.Contains(t, buf.String(), `"rows": []`)
	require.Contains(t, buf.String(), `"suites": []`)
}

func TestDecodeRefusesOtherNumbers(t *testing.T) {
	_, err := Decode(strings.NewReader(`{"kind":"parity","rows":[{"max_err":"large"}]}`))
	require.ErrorContains(t, err, "large")
}

// A report's own counts, control characters and lists of times are not trusted.
func TestDecodeOfInconsistentReports(t *testing.T) {
	r, err := Decode(strings.NewReader(`{"kind":"parity","passed":5,"rows":[{"op":"a\u001b[31m","case":"b","error":"\u001b[2J"}]}`))
	require.NoError(t, err)
	require.Equal(t, 0, r.Passed)
	require.Equal(t, 1, r.Failed)
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.NotContains(t, text.String(), "\x1b")

	for rows, message := range map[string]string{
		`{"op":"a","case":"b","ours":null}`: "row 1, a b: it has neither ours nor error",
		`{"op":"a","case":"b","ours":{"repetitions_us":[1,2],"wall_repetitions_us":[1]}}`: "row 1, a b: ours has 2 repetitions_us, " +
			"1 wall_repetitions_us and 0 build_repetitions_us; they must be equally many",
	} {
		_, err = DecodeBench(strings.NewReader(`{"kind":"bench","rows":[` + rows + `]}`))
		require.EqualError(t, err, "reading a report: "+message)
	}
}

func TestDecodeRefusesOtherKinds(t *testing.T) {
	_, err := Decode(strings.NewReader(`{"kind":"bench"}`))
	require.EqualError(t, err, `reading a report: its kind is "bench"; it must be "parity"`)
	_, err = DecodeBench(strings.NewReader(`{"rows":[]}`))
	require.EqualError(t, err, `reading a report: its kind is ""; it must be "bench"`)
}

func TestWriteFileReplacesWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.json")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("old", 1e5)), 0o600))
	require.NoError(t, sample().WriteFile(path))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	_, err = Decode(f)
	require.NoError(t, err)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	requireOnly(t, dir, "report.json")
}

func TestWriteFileFailureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	// A folder at the path makes only the last step fail.
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "report.json", "inside"), 0o755))
	require.ErrorContains(t, sample().WriteFile(filepath.Join(dir, "report.json")), "report.json")
	requireOnly(t, dir, "report.json")
	require.Error(t, sample().WriteFile(filepath.Join(dir, "missing", "report.json")))
}

// A special file stays: /dev/null must not become a regular file.
func TestWriteFileIntoWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	link, target, pipe := filepath.Join(dir, "link"), filepath.Join(dir, "target"), filepath.Join(dir, "pipe")
	require.NoError(t, os.Symlink("target", link))
	require.NoError(t, outfile.Writable(link))
	require.NoError(t, os.WriteFile(target, bytes.Repeat([]byte("x"), 1<<16), 0o644))
	require.NoError(t, sample().WriteFile(link))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.Equal(t, os.ModeSymlink, info.Mode().Type())
	f, err := os.Open(target)
	require.NoError(t, err)
	defer f.Close()
	_, err = Decode(f)
	require.NoError(t, err)
	require.EqualError(t, outfile.Write(link, func(io.Writer) error { return errors.New("no report") }),
		"writing the report: no report")
	_, err = f.Seek(0, io.SeekStart)
	require.NoError(t, err)
	_, err = Decode(f)
	require.NoError(t, err, "a report that fails leaves the file")

	if runtime.GOOS == "windows" {
		return
	}
	require.NoError(t, exec.Command("mkfifo", pipe).Run())
	require.NoError(t, outfile.Writable(pipe), "and it does not wait for a reader")
	read := make(chan error)
	go func() {
		f, err := os.Open(pipe)
		if err == nil {
			_, err = Decode(f)
			_, _ = io.Copy(io.Discard, f)
			f.Close()
		}
		read <- err
	}()
	require.NoError(t, sample().WriteFile(pipe))
	require.NoError(t, <-read)
	info, err = os.Lstat(pipe)
	require.NoError(t, err)
	require.Equal(t, os.ModeNamedPipe, info.Mode().Type())
}

func TestWritable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "report.json")
	require.NoError(t, outfile.Writable(file))
	require.NoFileExists(t, file)
	require.NoError(t, os.WriteFile(file, []byte("before"), 0o644))
	require.NoError(t, outfile.Writable(file))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "before", string(text))
	requireOnly(t, dir, "report.json")

	require.EqualError(t, outfile.Writable(dir), dir+" is a folder; it must be a file")
	missing := filepath.Join(dir, "missing", "report.json")
	require.ErrorContains(t, outfile.Writable(missing), missing+" cannot be written: open "+filepath.Dir(missing))
	require.ErrorContains(t, outfile.Writable(filepath.Join(file, "report.json")), "cannot be written")
	require.ErrorContains(t, outfile.Writable(filepath.Join(dir, strings.Repeat("x", 300))), "cannot be written")
}

func requireOnly(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, name, entries[0].Name())
}

func TestTable(t *testing.T) {
	for name, opt := range map[string]TableOptions{"summary.golden": {}, "table.golden": {Rows: true}} {
		var buf bytes.Buffer
		require.NoError(t, sample().WriteTable(&buf, opt))
		golden := filepath.Join("testdata", name)
		if *update {
			require.NoError(t, os.WriteFile(golden, buf.Bytes(), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), buf.String())
		for line := range strings.Lines(buf.String()) {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 121, line)
		}
	}
}

// The summary fits a screen for any number of rows and dtypes and any size of numbers.
func TestSummaryFitsAScreen(t *testing.T) {
	r := &Report{TF32: "on", Sample: true, Kernels: 300, CompileSeconds: 75}
	for i := range 16 {
		for _, dtype := range []string{"float32", "float16", "bfloat16"} {
			op := fmt.Sprintf("linear-cross-entro-%d", i%10) + strings.Repeat("x", i/10)
			r.Suites = append(r.Suites, Suite{Op: op, DType: dtype, Ratio: 123.456, Pass: true, Seconds: 12345.6})
			for range 1500 {
				r.Rows = append(r.Rows, Row{Op: op, DType: dtype, Ratio: 1e7, Pass: true, MLXMessage: "no"})
			}
		}
	}
	r.SetCounts()
	var buf bytes.Buffer
	require.NoError(t, r.WriteTable(&buf, TableOptions{}))
	require.LessOrEqual(t, strings.Count(buf.String(), "\n"), 30)
	require.Contains(t, buf.String(), " 1500   1500 1e+07   123 12346\n")
	for line := range strings.Lines(buf.String()) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 121, line)
	}
}

func TestTableOfManyFailures(t *testing.T) {
	r := &Report{}
	for i := range 30 {
		for _, output := range []string{"dx", "dw"} {
			r.Rows = append(r.Rows, Row{Op: "op", Name: fmt.Sprint("case", i), DType: "float32", Output: output, Message: "no"})
		}
	}
	r.SetCounts()
	var buf bytes.Buffer
	require.NoError(t, r.WriteTable(&buf, TableOptions{}))
	require.Contains(t, buf.String(), "\nFAIL op case19 float32 dx dw\n  no\n")
	require.NotContains(t, buf.String(), "FAIL op case20")
	require.Contains(t, buf.String(), "and 20 more failures")
}

func TestTableOfNothing(t *testing.T) {
	var buf bytes.Buffer
	require.NoError(t, (&Report{Incomplete: true}).WriteTable(&buf, TableOptions{}))
	require.Contains(t, buf.String(), "interrupted")
	require.True(t, strings.HasSuffix(buf.String(), "nothing ran\n0 passed, 0 failed\n"))
}

// full refuses every write, like a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestTableTellsWriteErrors(t *testing.T) {
	require.ErrorContains(t, sample().WriteTable(full{}, TableOptions{}), "disk full")
	require.ErrorContains(t, sample().Encode(full{}), "disk full")
}

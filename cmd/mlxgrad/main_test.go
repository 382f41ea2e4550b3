package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/cli"
	"github.com/mlxgrad/mlxgrad/internal/quickcompile"
)

func TestMain(m *testing.M) {
	quickcompile.Set(true)
	testscript.Main(m, map[string]func(){"mlxgrad": main})
}

func TestScripts(t *testing.T) {
	// The scripts share the user's kernel cache, so that each kernel is compiled once.
	cache := os.Getenv("MLXGRAD_CACHE")
	if cache == "" {
		base, err := os.UserCacheDir()
		require.NoError(t, err)
		cache = filepath.Join(base, "mlxgrad")
	}
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("MLXGRAD_CACHE", cache)
			env.Setenv("EXAMPLES", examples)
			env.Setenv("CXX", os.Getenv("CXX"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"counts": counts,
			"times":  times,
		},
	})
}

// counts checks a report: "counts FILE", or "! counts FILE" for an incomplete run. The counts must agree with the rows.
func counts(ts *testscript.TestScript, incomplete bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: counts FILE")
	}
	f, err := os.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	r, err := report.Decode(f)
	ts.Check(err)
	passed, failed := r.Passed, r.Failed
	r.SetCounts()
	if passed != r.Passed || failed != r.Failed || passed+failed != len(r.Rows) {
		ts.Fatalf("%d passed and %d failed of %d cases", passed, failed, len(r.Rows))
	}
	if r.Incomplete != incomplete {
		ts.Fatalf("incomplete is %v", r.Incomplete)
	}
	if r.MLX == "" || r.MLXC == "" || r.Device == "" || r.Executor == "" {
		ts.Fatalf("the report does not say what ran: %+v", *r)
	}
	_, _ = fmt.Fprintf(ts.Stdout(), "%d passed\n", passed)
}

// times checks the one row of a "mlxgrad bench" report: "times FILE", or "! times FILE" for an incomplete run.
func times(ts *testscript.TestScript, incomplete bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: times FILE")
	}
	text, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	var r report.Bench
	ts.Check(json.Unmarshal(text, &r))
	if r.Incomplete != incomplete || len(r.Rows) != 1 || r.Rows[0].Error != "" {
		ts.Fatalf("incomplete is %v, rows are %+v", r.Incomplete, r.Rows)
	}
	row := r.Rows[0]
	// x, w and dy are read; dx and dw are written
	const rows, width, float32Size = 256, 1024, 4
	if row.Launches == 0 || row.Bytes != float32Size*(3*rows*width+2*width) || !(row.Difference < 1e-4) || !(row.OverLimit > 0) {
		ts.Fatalf("the row is %+v", row)
	}
	sides := []*report.Timing{row.Ours, row.MLX}
	if r.Device == "cpu" {
		if r.Limits == nil || r.Limits.Bandwidth <= 0 || r.Limits.Arithmetic <= 0 || row.Add != nil {
			ts.Fatalf("the limits are %+v", r.Limits)
		}
	} else {
		if r.Limits != nil || row.AddBytes != float32Size*3*rows*width {
			ts.Fatalf("the row is %+v", row)
		}
		sides = append(sides, row.Add)
	}
	for _, t := range sides {
		if t.Copies < 1 || !(0 < t.Q1 && t.Q1 <= t.Median && t.Median <= t.Q3) || t.Build <= 0 || t.Wall <= 0 || t.Submit <= 0 ||
			len(t.Repetitions) != len(row.Ours.Repetitions) {
			ts.Fatalf("a timing is %+v", *t)
		}
	}
	_, _ = fmt.Fprintf(ts.Stdout(), "%d repetitions of each side\n", len(row.Ours.Repetitions))
}

var update = flag.Bool("update", false, "rewrite the golden files")

func TestDoctorSaysWhatToDo(t *testing.T) {
	findings := []finding{
		{what: "MLX", found: "0.32.2, CPU", needed: true},
		{what: "clang", found: "only the tests' check needs it", remedy: "install clang"},
	}
	var out bytes.Buffer
	require.NoError(t, printFindings(&out, findings), "nothing that is needed is missing")

	findings = append(findings, finding{what: "C++ compiler", found: "none", remedy: "install g++", needed: true})
	out.Reset()
	require.ErrorIs(t, printFindings(&out, findings), cli.ErrFailed)
	golden := filepath.Join("testdata", "doctor.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/compare/report"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mlxgrad": main})
}

func TestScripts(t *testing.T) {
	// Kernels are compiled into the cache that the user has, not once for each script.
	cache := os.Getenv("MLXGRAD_CACHE")
	if cache == "" {
		base, err := os.UserCacheDir()
		require.NoError(t, err)
		cache = filepath.Join(base, "mlxgrad")
	}
	examples, err := filepath.Abs(filepath.Join("..", "..", "..", "examples"))
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
		},
	})
}

// counts checks a report: "counts FILE", or "! counts FILE" for one of an incomplete run. Its numbers
// must agree with its cases.
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
	r.Count()
	if passed != r.Passed || failed != r.Failed || passed+failed != len(r.Cases) {
		ts.Fatalf("%d passed and %d failed of %d cases", passed, failed, len(r.Cases))
	}
	if r.Incomplete != incomplete {
		ts.Fatalf("incomplete is %v", r.Incomplete)
	}
	if r.MLX == "" || r.MLXC == "" || r.Device == "" || r.Executor == "" {
		ts.Fatalf("the report does not say what ran: %+v", *r)
	}
	_, _ = fmt.Fprintf(ts.Stdout(), "%d passed\n", passed)
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
	require.ErrorIs(t, printFindings(&out, findings), errFailed)
	golden := filepath.Join("testdata", "doctor.golden")
	if *update {
		require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String())
}

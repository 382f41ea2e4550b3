// Package long chooses tests that take minutes. They run with a flag, or with MLXGRAD_LONG=1 in the
// environment, which ./build.sh test-long sets:
//
//	go test ./ops -long
//
// The slowest of the other tests run a sample of their cases by default. The sample reaches every operation, dtype,
// kernel and option. A long run has all of their cases. So has a run with MLXGRAD_LONG=full, which skips the tests that
// take minutes.
//
// Only packages whose tests import this package have the flag. Go caches the results of tests that depend on the
// variable, but not of tests with the flag.
package long

import (
	"flag"
	"os"
	"testing"
)

// Variable is the environment variable that replaces the flag if its value is 1. See [Full] for the value full.
const Variable = "MLXGRAD_LONG"

var flagged = flag.Bool("long", false, "also run tests that take minutes")

// Enabled reports whether long tests run.
func Enabled() bool {
	return os.Getenv(Variable) == "1" || *flagged // Getenv first, so that Go's test cache depends on the variable
}

// Full reports whether tests run all of their cases, and compile kernels with the optimization that users get. It is
// true in a long run and if MLXGRAD_LONG is full.
func Full() bool { return os.Getenv(Variable) == "full" || Enabled() }

// Only skips the test unless long tests run. The reason names the work that takes long.
func Only(t testing.TB, reason string) {
	t.Helper()
	if !Enabled() {
		t.Skip(reason + ": run with -long")
	}
}

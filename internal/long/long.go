// Package long chooses tests that take minutes. They run with a flag, or with MLXGRAD_LONG=1 in the
// environment, which ./build.sh test-long sets:
//
//	go test ./ops -long
//
// By default, the slowest of the other tests run a sample of their cases, which reaches every operation, dtype,
// kernel and option. They run all cases in a long run and with MLXGRAD_LONG=full, which does not run the tests of
// minutes.
//
// Only packages whose tests import this one know the flag. Go caches results of tests that depend on the
// environment, but not of tests that were given the flag.
package long

import (
	"flag"
	"os"
	"testing"
)

// Variable is the environment variable that has the meaning of the flag if its value is 1. With the value full, tests
// run all of their cases.
const Variable = "MLXGRAD_LONG"

var flagged = flag.Bool("long", false, "also run tests that take minutes")

// Enabled reports whether long tests run.
func Enabled() bool {
	return os.Getenv(Variable) == "1" || *flagged // in this order: Go's cache of results must see that it is read
}

// Full reports whether tests run all of their cases, and compile kernels with the optimization that users get.
func Full() bool { return os.Getenv(Variable) == "full" || Enabled() }

// Only skips the test unless long tests run. The reason names the work that takes long.
func Only(t testing.TB, reason string) {
	t.Helper()
	if !Enabled() {
		t.Skip(reason + ": run with -long")
	}
}

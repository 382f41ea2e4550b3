// Package long chooses tests that take minutes. They run with a flag, or with MLXGRAD_LONG=1 in the
// environment, which ./build.sh test-long sets:
//
//	go test ./ops -long
//
// Only packages whose tests import this one know the flag. Go caches results of tests that depend on the
// environment, but not of tests that were given the flag.
package long

import (
	"flag"
	"os"
	"testing"
)

// Variable is the environment variable that has the meaning of the flag. Its value is 1.
const Variable = "MLXGRAD_LONG"

var flagged = flag.Bool("long", false, "also run tests that take minutes")

// Enabled reports whether long tests run.
func Enabled() bool {
	return os.Getenv(Variable) == "1" || *flagged // in this order: Go's cache of results must see that it is read
}

// Only skips the test unless long tests run. The reason names the work that takes long.
func Only(t testing.TB, reason string) {
	t.Helper()
	if !Enabled() {
		t.Skip(reason + ": run with -long")
	}
}

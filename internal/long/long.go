// Package long has the flag of tests that take minutes:
//
//	go test ./ops -long
//
// Only packages whose tests import this one know the flag.
package long

import "flag"

var enabled = flag.Bool("long", false, "also run what takes minutes")

// Enabled reports whether -long was given.
func Enabled() bool { return *enabled }

// Package checked reports whether every launch of a kernel runs under the checker.
package checked

import (
	"os"
	"sync/atomic"
)

// Variable is the environment variable that turns the checks on. It is off if it is empty or 0.
const Variable = "MLXGRAD_CHECKED"

// enabled belongs to the variable's value at the start of the process. Every operation reads it, and os.Getenv would take
// as long as several other steps.
var enabled atomic.Bool

func init() { Set(os.Getenv(Variable)) }

// Enabled reports whether the checks are on.
func Enabled() bool { return enabled.Load() }

// Set turns the checks on or off for a value of the variable. It returns a function that restores the state. It is for
// tests.
func Set(value string) (restore func()) {
	before := enabled.Swap(value != "" && value != "0")
	return func() { enabled.Store(before) }
}

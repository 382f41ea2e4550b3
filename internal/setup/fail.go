package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// A failure is an error that a user can act on. It prints as one line: what went
// wrong, then what to do about it.
type failure struct {
	what        string
	todo        string
	unreachable bool // a release could not be had; compiling is another way
}

func (f *failure) Error() string { return f.what + ": " + f.todo }

// failf returns a failure; todo says what to do about it.
func failf(todo, format string, args ...any) error {
	return &failure{what: fmt.Sprintf(format, args...), todo: todo}
}

// noSpace is what the C library, and so every tool that this program runs, says
// of a full disk.
const noSpace = "No space left on device"

// Explain returns err with the one line as its text that says what to do.
func Explain(err error) error { return &explained{describe(err), err} }

type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }

// describe turns any error into the one line that is printed: failures stand as
// they are, a full disk is named as such wherever it struck.
func describe(err error) string {
	if e := (*explained)(nil); errors.As(err, &e) {
		return e.text
	}
	var f *failure
	if errors.As(err, &f) {
		return oneLine(f.Error())
	}
	if isDiskFull(err) {
		return oneLine(diskFull(err.Error()).Error())
	}
	if errors.Is(err, fs.ErrPermission) {
		return oneLine(err.Error()) + ": make the folder writable and run the set-up again"
	}
	return oneLine(err.Error()) + ": run the set-up again; if it persists, report it to the project"
}

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// diskFull reports that the disk is full, or that a limit on a file's size was met.
func diskFull(where string) error {
	return failf("free some 200 MB (CUDA: 8 GB) and run the set-up again", "the disk is full (%s)", oneLine(where))
}

// outOfSpace tells whether a tool's output says that it ran out of disk.
func outOfSpace(output string) bool {
	return strings.Contains(output, noSpace) || strings.Contains(output, "Disk quota exceeded") || strings.Contains(output, "File too large")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

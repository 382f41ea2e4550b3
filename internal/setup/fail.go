package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// A failure is an error with a remedy for the user. It prints as one line: the cause, then the remedy.
type failure struct {
	what        string
	todo        string
	unreachable bool // the release could not be downloaded; compiling is the alternative
}

func (f *failure) Error() string { return f.what + ": " + f.todo }

// failf returns a failure with the remedy todo.
func failf(todo, format string, args ...any) error {
	return &failure{what: fmt.Sprintf(format, args...), todo: todo}
}

// noSpace is the C library's message for a full disk, which tools print.
const noSpace = "No space left on device"

// Explain wraps err. The text of the result is the line that [Report] prints: the cause and a remedy.
func Explain(err error) error { return &explained{describe(err), err} }

type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }

// describe returns the line that is printed for an error. It keeps the text of failures, and adds a remedy to other
// errors, such as a full disk.
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

// diskFull returns the failure for a full disk or an exceeded limit on file sizes.
func diskFull(where string) error {
	return failf("free some 200 MB (CUDA: 8 GB) and run the set-up again", "the disk is full (%s)", oneLine(where))
}

// outOfSpace reports whether a tool's output mentions a full disk.
func outOfSpace(output string) bool {
	return strings.Contains(output, noSpace) || strings.Contains(output, "Disk quota exceeded") ||
		strings.Contains(output, "File too large")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

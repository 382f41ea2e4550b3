package mlxc

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
)

// Errors that callers may test for with errors.Is. Message texts are not part of the API.
var (
	// ErrFreed is the error of an operation on an array after its Free, or after the end of the scope that owned it.
	ErrFreed = errors.New("the array was freed by Free or at the end of a WithScope; Keep takes an array out of its " +
		"scope")
	// ErrNil is the error of an operation on a nil *Array that is not optional.
	ErrNil = errors.New("the array is nil")
	// ErrShutdown is the error of an operation after Shutdown.
	ErrShutdown = errors.New(shutdownMessage)
)

// Error is the error of one operation: its name, its operands, the cause and the caller.
type Error struct {
	Op     string  // the operation, such as "add"
	Shapes [][]int // shapes of the operands, nil for an invalid operand
	DTypes []DType // dtypes of the operands; missing entries count as Invalid
	Err    error   // the cause
	// Caller is the source file and line that called into this module, such as "/home/me/train/main.go:41": the
	// innermost frame outside mlxc, customkernels and ops. It is empty if there is none, and in an Error that was not
	// made by this module.
	Caller string
}

// Error returns the operation, its operands, the cause and the caller in one line. The caller is shortened to its last
// folder and file. For nested *Errors, it is the innermost caller.
func (e *Error) Error() string {
	text, caller := e.text()
	return withPrefix(text, caller)
}

// withPrefix adds the package's name and the shortened caller to a message.
func withPrefix(text, caller string) string {
	if caller != "" {
		dir, file := filepath.Split(caller)
		caller = " (at " + filepath.Join(filepath.Base(dir), file) + ")"
	}
	return "mlxc: " + text + caller
}

// text returns the message without the package's name and the caller, and separately the innermost caller.
func (e *Error) text() (text, caller string) {
	var b strings.Builder
	b.WriteString(e.Op)
	for i, s := range e.Shapes {
		if i > 0 {
			b.WriteString(",")
		}
		d := Invalid
		if i < len(e.DTypes) {
			d = e.DTypes[i]
		}
		fmt.Fprintf(&b, " %s", describe(s, d))
	}
	caller = e.Caller
	if e.Err == nil {
		return b.String(), caller
	}
	cause := e.Err.Error()
	if inner := (*Error)(nil); errors.As(e.Err, &inner) {
		innerText, innerCaller := inner.text()
		// fmt.Errorf may have wrapped the inner error, so its text may be anywhere in the cause.
		cause = strings.Replace(cause, withPrefix(innerText, innerCaller), innerText, 1)
		caller = cmp.Or(innerCaller, caller)
	}
	return b.String() + ": " + cause, caller
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// PanicError is the error of a call in which a Go function panicked.
type PanicError struct {
	Value any    // the argument of panic
	Stack []byte // the stack of the panic
}

func newPanicError(v any) *PanicError { return &PanicError{Value: v, Stack: debug.Stack()} }

// Error returns the panic's value.
func (e *PanicError) Error() string { return fmt.Sprintf("the Go function panicked: %v", e.Value) }

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// describe formats a dtype and a shape, such as float32(2,3).
func describe(shape []int, d DType) string {
	if d == Invalid {
		return "(invalid)"
	}
	return d.String() + shapeText(shape)
}

// shapeText formats a shape as MLX does: (2,3), (4), ().
func shapeText(shape []int) string {
	var b strings.Builder
	b.WriteString("(")
	for i, n := range shape {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprint(&b, n)
	}
	b.WriteString(")")
	return b.String()
}

// NewError returns the error of an operation on operands, some of which may be nil. It is for packages that build
// operations.
func NewError(op string, cause error, operands ...*Array) *Error {
	return opError(op, cause, operands...)
}

// opError returns the error of an operation on operands, some of which may be nil, with the caller.
func opError(op string, cause error, operands ...*Array) *Error {
	e := &Error{Op: op, Err: cause, Caller: callerOutside()}
	for _, a := range operands {
		if a == nil {
			continue
		}
		e.Shapes = append(e.Shapes, a.Shape())
		e.DTypes = append(e.DTypes, a.DType())
	}
	return e
}

// shapeError is opError for operands that are not arrays. The caller passes their dtypes and shapes.
func shapeError(op string, cause error, dtypes []DType, shapes ...[]int) *Error {
	return &Error{Op: op, Shapes: shapes, DTypes: dtypes, Err: cause, Caller: callerOutside()}
}

// withCaller sets the caller of an error that was made without one, such as an error of another goroutine.
func withCaller(err error) error {
	e, ok := err.(*Error) //nolint:errorlint // a wrapped one belongs to another call
	if !ok || e.Caller != "" {
		return err
	}
	c := *e
	c.Caller = callerOutside()
	return &c
}

// internalFunction matches the functions that callerOutside skips: functions of this module's libraries, and functions
// of the standard library that run callbacks.
var internalFunction = regexp.MustCompile(`^_cgoexp_|^(runtime|reflect|sync|slices|maps|iter|sort|internal/.*)\.|^` +
	regexp.QuoteMeta(path.Dir(reflect.TypeFor[Error]().PkgPath())) + `/(mlxc|ops|customkernels)[./]`)

// internalFile matches the files of this module's libraries. internalFunction does not match every function in them: if
// a function is inlined into the user's function, its closures have names of the user's package.
var internalFile = sync.OnceValue(func() *regexp.Regexp {
	_, file, _, _ := runtime.Caller(0)
	root := path.Dir(path.Dir(file))
	return regexp.MustCompile(`^` + regexp.QuoteMeta(root) + `/(mlxc|ops|customkernels)/`)
})

// callerOutside returns the file and line of the innermost function that is outside this module's libraries or in a
// test. It returns "" if there is none.
func callerOutside() string {
	var pcs [32]uintptr
	for skip := 2; ; skip += len(pcs) {
		n := runtime.Callers(skip, pcs[:])
		frames := runtime.CallersFrames(pcs[:n])
		for n > 0 {
			f, more := frames.Next()
			internal := internalFunction.MatchString(f.Function) || internalFile().MatchString(f.File)
			if !internal || strings.HasSuffix(f.File, "_test.go") {
				return fmt.Sprintf("%s:%d", f.File, f.Line)
			}
			if !more {
				break
			}
		}
		if n < len(pcs) {
			return ""
		}
	}
}

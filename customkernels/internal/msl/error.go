package msl

import "fmt"

// Position is a position in a file. Line and Column count from 1, Column in bytes. Offset counts bytes from 0. The zero
// Position is unknown.
type Position struct {
	File   string
	Offset int
	Line   int
	Column int
}

// String returns "file:line:column" without the unknown parts.
func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	case p.File == "":
		return fmt.Sprintf("%d:%d", p.Line, p.Column)
	default:
		return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
	}
}

// Error is a problem with a shader's text. Message contains the problem and the advice. Its wording may change.
type Error struct {
	Position
	Message string
}

// Error returns "position: message".
func (e *Error) Error() string {
	if at := e.Position.String(); at != "" {
		return at + ": " + e.Message
	}
	return e.Message
}

// Errorf returns an [*Error] at a position.
func Errorf(at Position, format string, args ...any) *Error {
	return &Error{Position: at, Message: fmt.Sprintf(format, args...)}
}

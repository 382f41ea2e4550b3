package msl

import "strings"

// Locate translates a line of the text that MLX generated for this kernel, counted from 1,
// into a line of the shader's file or of one that it includes. It is false for lines that MLX wrote itself, such as
// the signature. The columns of the two lines agree but for the body's first line,
// which the prologue moves.
func (k *Kernel) Locate(generated string, line int) (Position, bool) {
	at := strings.LastIndex(generated, k.Body)
	if line < 1 || at < 0 {
		return Position{}, false
	}
	first := 1 + strings.Count(generated[:at], "\n")
	last := first + strings.Count(k.Body, "\n")
	switch {
	case line >= first && line <= last:
		return k.structure.origin(k.structure.Tokens[k.body[0]].Line + line - first), true
	case line <= strings.Count(k.Header, "\n"):
		return k.structure.origin(line), true
	}
	return Position{}, false
}

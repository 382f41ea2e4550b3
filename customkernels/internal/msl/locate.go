package msl

import "strings"

// Locate maps a line of the text that MLX generated for this kernel, counted from 1, to a line of the shader's file
// or of an included file. ok is false for lines that MLX wrote, such as the signature. Columns of the two lines
// agree, except in the first line of the body, which begins with the prologue.
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

package python

import (
	"errors"
	"strconv"
	"strings"
)

// Text is the value of a string, with the offset in the file of each of its bytes.
type Text struct {
	Value   string
	Offsets []int
}

// errUnsupported is the error of a string that only Python can compute.
var errUnsupported = errors.New("the text is no plain string: write a literal, a constant of the module, or an f-string " +
	"without substitutions")

// decode appends the value of a string literal.
func (t *Text) decode(l token) error {
	open := strings.IndexAny(l.text, `"'`)
	prefix, body := strings.ToLower(l.text[:open]), l.text[open:]
	quotes := 1
	if len(body) >= 6 && body[1] == body[0] && body[2] == body[0] {
		quotes = 3
	}
	if len(body) < 2*quotes || body[len(body)-1] != body[0] || strings.ContainsAny(prefix, "bt") {
		return errUnsupported
	}
	raw, formatted := strings.Contains(prefix, "r"), strings.Contains(prefix, "f")
	at, last := l.offset+open+quotes, l.offset+len(l.text)-quotes
	src := func(i int) byte { return l.text[i-l.offset] }
	var b strings.Builder
	add := func(value byte, offset int) {
		b.WriteByte(value)
		t.Offsets = append(t.Offsets, offset)
	}
	for i := at; i < last; i++ {
		switch c := src(i); {
		case formatted && (c == '{' || c == '}'):
			if i+1 >= last || src(i+1) != c {
				return errUnsupported
			}
			add(c, i)
			i++
		case c == '\r' && i+1 < last && src(i+1) == '\n': // Python reads \r\n as \n
		case c != '\\' || raw || i+1 >= last:
			add(c, i)
		default:
			value, n, err := escape(l.text[i-l.offset : last-l.offset])
			if err != nil {
				return err
			}
			for j := range len(value) {
				add(value[j], i)
			}
			i += n - 1
		}
	}
	t.Value += b.String()
	return nil
}

// escape returns the value and the length of the escape sequence that a text begins with.
func escape(text string) (value string, length int, err error) {
	switch c := text[1]; c {
	case '\n':
		return "", 2, nil
	case '\r':
		return "", 3, nil
	case '\\', '\'', '"':
		return string(c), 2, nil
	case 'n', 't', 'r', 'a', 'b', 'f', 'v':
		return string("\n\t\r\a\b\f\v"[strings.IndexByte("ntrabfv", c)]), 2, nil
	case 'x', 'u', 'U', 'N':
		if c == 'x' && len(text) >= 4 {
			if n, err := strconv.ParseUint(text[2:4], 16, 7); err == nil {
				return string(rune(n)), 4, nil
			}
		}
		return "", 0, errUnsupported
	case '0', '1', '2', '3', '4', '5', '6', '7':
		return "", 0, errUnsupported
	}
	return text[:1], 1, nil // an unknown sequence stands for itself
}

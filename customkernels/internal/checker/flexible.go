package checker

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// flexible reports whether a line indexes a flexible array member: the last member of a structure, declared with one
// element as in "uint data[1];". The structure must be accessed through a pointer, a reference or an array, so that
// the member may extend to the end of the memory. The access itself is still checked against that memory.
func flexible(text string, line int) bool {
	tokens := slices.DeleteFunc(msl.Tokenize(text), func(t msl.Token) bool {
		return t.Kind == msl.Comment ||
			t.Directive != 0
	})
	at := func(i int) string {
		if i < 0 || i >= len(tokens) {
			return ""
		}
		return tokens[i].Text
	}
	owners := map[string]string{} // structure of each member
	var open []string             // structure of each open brace, or ""
	for i, t := range tokens {
		switch t.Text {
		case "{":
			owner := ""
			if at(i-2) == "struct" || at(i-2) == "union" || at(i-2) == "class" {
				owner = at(i - 1)
			}
			open = append(open, owner)
		case "}":
			if len(open) == 0 {
				continue
			}
			if at(i-5) != "" && at(i-4) == "[" && at(i-3) == "1" && at(i-2) == "]" && at(i-1) == ";" &&
				open[len(open)-1] != "" {
				owners[at(i-5)] = open[len(open)-1]
			}
			open = open[:len(open)-1]
		}
	}
	value := func(owner, name string) bool {
		for i := range tokens {
			if at(i) == owner && at(i+1) == name {
				return true
			}
		}
		return false
	}
	for i, t := range tokens {
		owner, found := owners[t.Text]
		if t.Line != line || !found || at(i+1) != "[" {
			continue
		}
		if at(i-1) == "->" || at(i-1) == "." && !value(owner, at(i-2)) {
			return true
		}
	}
	return false
}

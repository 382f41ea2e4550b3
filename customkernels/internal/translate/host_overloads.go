package translate

import (
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// overloads drops functions and class specializations that have become equal to an earlier
// one of their scope.
func (h *hostWriter) overloads() error {
	type key struct {
		scope string
		text  string
	}
	type earlier struct {
		original, body string
	}
	seen := map[key]earlier{}
	for _, it := range h.items {
		callable := it.Params >= 0 && (it.Kind == msl.FunctionItem || it.Kind == msl.OtherItem)
		if it.Kernel || !callable && it.Kind != msl.ClassItem {
			continue
		}
		open := it.Last
		if it.Open >= 0 {
			open = it.Open - 1
		}
		head := key{h.scope(it), h.rewritten(it.First, open)}
		body := h.rewritten(open+1, it.Last)
		original := h.JoinSpaced(it.First, open)
		if it.Kind == msl.FunctionItem && it.Scope == msl.NamespaceScope {
			head.text += "{" // a declaration before its definition is no second one
		}
		first, found := seen[head]
		if !found {
			seen[head] = earlier{original, body}
			continue
		}
		if original == first.original {
			continue
		}
		if body != first.body {
			return h.ErrorAt(it.First, "this differs from an earlier declaration in its address spaces and in its body; C++ on the host cannot tell them apart, so give them one body or two names")
		}
		h.dropped[it.First] = true
		h.edits.Blank(h.Tokens[it.First].Offset, h.Tokens[it.Last].End())
	}
	return nil
}

// scope names the scope of an item: a namespace is the same wherever it is opened.
func (h *hostWriter) scope(it msl.Item) string {
	if it.Scope == msl.ClassScope {
		return strconv.Itoa(it.ScopeID)
	}
	return strings.Join(it.Namespaces, "::")
}

// rewritten is the tokens from first to last as they will be on the host.
func (h *hostWriter) rewritten(first, last int) string {
	var words []string
	for i := first; i <= last; i++ {
		t := h.Tokens[i]
		if word, changed := h.words[t.Offset]; !changed {
			words = append(words, t.Text)
		} else if word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

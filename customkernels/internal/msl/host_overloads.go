package msl

import (
	"strconv"
	"strings"
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
		callable := it.params >= 0 && (it.kind == functionItem || it.kind == otherItem)
		if it.kernel || !callable && it.kind != classItem {
			continue
		}
		open := it.last
		if it.open >= 0 {
			open = it.open - 1
		}
		head := key{h.scope(it), h.rewritten(it.first, open)}
		body := h.rewritten(open+1, it.last)
		original := h.join2(it.first, open)
		if it.kind == functionItem && it.scope == namespaceScope {
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
			return h.errorAt(it.first, "this differs from an earlier declaration in its address spaces and in its body; C++ on the host cannot tell them apart, so give them one body or two names")
		}
		h.dropped[it.first] = true
		h.edits.blank(h.tokens[it.first].Offset, h.tokens[it.last].End())
	}
	return nil
}

// scope names the scope of an item: a namespace is the same wherever it is opened.
func (h *hostWriter) scope(it item) string {
	if it.scope == classScope {
		return strconv.Itoa(it.scopeID)
	}
	return strings.Join(it.namespaces, "::")
}

// rewritten is the tokens from first to last as they will be on the host.
func (h *hostWriter) rewritten(first, last int) string {
	var words []string
	for i := first; i <= last; i++ {
		t := h.tokens[i]
		if word, changed := h.words[t.Offset]; !changed {
			words = append(words, t.Text)
		} else if word != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

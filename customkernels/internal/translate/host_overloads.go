package translate

import (
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// overloads removes functions and class specializations that differ from an earlier one in their scope only in address
// spaces. It returns an error if their bodies differ too.
func (h *rewriter) overloads() error {
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
		head := key{h.scope(it), h.rewrittenTokens(it.First, open)}
		body := h.rewrittenTokens(open+1, it.Last)
		original := h.JoinSpaced(it.First, open)
		if it.Kind == msl.FunctionItem && it.Scope == msl.NamespaceScope {
			head.text += "{" // a declaration and its definition are not two overloads
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
			return h.ErrorAt(it.First, "this function differs from an earlier one in address spaces and body, and "+
				"C++ on the host has no address spaces; give both the same body or different names")
		}
		h.dropped[it.First] = true
		h.edits.Blank(h.Tokens[it.First].Offset, h.Tokens[it.Last].End())
	}
	return nil
}

// scope returns a name of the item's scope. A namespace has the same name wherever it is reopened.
func (h *rewriter) scope(it msl.Item) string {
	if it.Scope == msl.ClassScope {
		return strconv.Itoa(it.ScopeID)
	}
	return strings.Join(it.Namespaces, "::")
}

// rewrittenTokens returns the tokens from first to last after rewriting, separated by spaces.
func (h *rewriter) rewrittenTokens(first, last int) string {
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

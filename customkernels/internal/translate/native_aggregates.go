package translate

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// aggregates removes defaulted constructors from classes that have no other constructor. In Metal, which follows C++14,
// such a class is an aggregate, so that {a, b} initializes its members. In C++20 a declared constructor prevents that.
func (h *rewriter) aggregates() {
	for _, class := range h.items {
		if class.Kind != msl.ClassItem {
			continue
		}
		var defaulted []msl.Item
		own := false
		for _, it := range h.items {
			if it.Scope != msl.ClassScope || it.First <= class.Open || it.Last >= h.Match[class.Open] || it.Params < 0 ||
				!slices.Contains(h.classNames(class), h.constructorName(it)) {
				continue
			}
			if h.At(it.Last-1).Is("default") && h.At(it.Last-2).Is("=") {
				defaulted = append(defaulted, it)
			} else {
				own = true
			}
		}
		for _, it := range defaulted {
			if !own {
				h.edits.Blank(h.Tokens[it.First].Offset, h.Tokens[it.Last].End())
			}
		}
	}
}

// classNames returns the name of a class, and the words around it.
func (h *rewriter) classNames(class msl.Item) []string {
	var names []string
	for i := class.Start; i < class.Open && !h.Tokens[i].Is(":"); i++ {
		if h.Tokens[i].Kind == msl.Identifier {
			names = append(names, h.Tokens[i].Text)
		}
	}
	return names
}

// constructorName returns the name before the parentheses of a member function that may be a constructor: name(…) or
// name<T>(…). Otherwise it returns "".
func (h *rewriter) constructorName(it msl.Item) string {
	i := it.Params - 1
	for depth := 0; i >= it.Start && (h.At(i).Is(">") || depth > 0); i-- {
		if h.At(i).Is(">") {
			depth++
		} else if h.At(i).Is("<") {
			depth--
		}
	}
	if i < it.Start || h.At(i).Kind != msl.Identifier {
		return ""
	}
	for j := it.Start; j < i; j++ {
		if t := h.Tokens[j]; !t.Is("constexpr") && !t.Is("explicit") && !t.Is("inline") {
			return "" // a return type
		}
	}
	return h.Tokens[i].Text
}

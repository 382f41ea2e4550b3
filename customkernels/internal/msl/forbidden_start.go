package msl

import "slices"

// startCode refuses variables of program scope whose values are computed when the program starts:
// those of a class with a constructor or destructor that is not constexpr, and those whose initial
// value calls such a function.
func (s *structure) startCode(items []item) error {
	classes, code := map[string]bool{}, map[string]bool{} // code: the names of what is not constexpr
	for _, it := range items {
		if it.kind == classItem {
			for i := it.start; i < it.open; i++ {
				if t := s.tokens[i]; t.is("struct") || t.is("class") || t.is("union") {
					classes[s.tokens[i+1].Text] = true
				}
			}
		}
	}
	for _, it := range items {
		if it.kind != functionItem || it.kernel || it.params < 1 || s.constantExpression(it.start, it.params) {
			continue
		}
		if name := s.tokens[it.params-1]; it.scope == namespaceScope || classes[name.Text] {
			code[name.Text] = true
		}
	}
	for _, it := range items {
		if it.kind != otherItem || it.kernel || !s.initialized(it) || s.constantExpression(it.start, it.last) {
			continue
		}
		for i := it.start; i < it.last; i++ {
			t, next := s.tokens[i], s.at(i+1)
			if code[t.Text] && (classes[t.Text] || next.is("(") || next.is("<")) {
				return s.errorAt(i, "%s is not constexpr and would run before any kernel; a variable of program scope needs a constant value", t.Text)
			}
		}
	}
	return nil
}

// constantExpression reports whether the tokens [first, end) say that a value is constant.
func (s *structure) constantExpression(first, end int) bool {
	return first < end && slices.ContainsFunc(s.tokens[first:end], func(t Token) bool { return t.is("constexpr") || t.is("consteval") })
}

// initialized reports whether an item declares a variable that exists when the program starts.
func (s *structure) initialized(it item) bool {
	static := it.scope == namespaceScope
	for i := it.start; i <= it.last; i++ {
		switch t := s.tokens[i]; {
		case t.is("typedef") || t.is("using") || t.is("friend") || t.is("enum") || t.is("static_assert"):
			return false
		case t.is("static"):
			static = true
		case t.is("="):
			return static && it.params < 0
		}
	}
	// "counter c(1);" is a variable, "counter of(int);" the declaration of a function.
	argument := s.at(it.params + 1)
	return static && (it.params < 0 || argument.Kind == Number || argument.Kind == String)
}

package msl

import "slices"

// startCode rejects variables of program scope whose initialization runs code when the program starts. These have a
// class with a constructor or destructor that is not constexpr, or an initial value that calls a function that is not
// constexpr.
func (s *Structure) startCode(items []Item) error {
	classes, code := map[string]bool{}, map[string]bool{} // code: names of functions that are not constexpr
	for _, it := range items {
		if it.Kind == ClassItem {
			for i := it.Start; i < it.Open; i++ {
				if t := s.Tokens[i]; t.Is("struct") || t.Is("class") || t.Is("union") {
					classes[s.Tokens[i+1].Text] = true
				}
			}
		}
	}
	for _, it := range items {
		if it.Kind != FunctionItem || it.Kernel || it.Params < 1 || s.constantExpression(it.Start, it.Params) {
			continue
		}
		if name := s.Tokens[it.Params-1]; it.Scope == NamespaceScope || classes[name.Text] {
			code[name.Text] = true
		}
	}
	for _, it := range items {
		if it.Kind != OtherItem || it.Kernel || !s.initialized(it) || s.constantExpression(it.Start, it.Last) {
			continue
		}
		for i := it.Start; i < it.Last; i++ {
			t, next := s.Tokens[i], s.At(i+1)
			if s.At(i-1).Is("::") && s.At(i-2).Is(">") {
				continue // a member of a class template, such as numeric_limits<T>::max
			}
			if code[t.Text] && (classes[t.Text] || next.Is("(") || next.Is("<")) {
				return s.ErrorAt(i, "%s is not constexpr and would run before any kernel; a variable of program "+
					"scope needs a constant value", t.Text)
			}
		}
	}
	return nil
}

// constantExpression reports whether the tokens [first, end) contain constexpr or consteval.
func (s *Structure) constantExpression(first, end int) bool {
	return first < end && slices.ContainsFunc(s.Tokens[first:end],
		func(t Token) bool { return t.Is("constexpr") || t.Is("consteval") })
}

// initialized reports whether an item is a variable that is initialized when the program starts.
func (s *Structure) initialized(it Item) bool {
	static := it.Scope == NamespaceScope
	if _, end := s.TypeName(it.Start); end >= it.Last {
		return false // a declaration of a class
	}
	for i := it.Start; i <= it.Last; i++ {
		switch t := s.Tokens[i]; {
		case t.Is("typedef") || t.Is("using") || t.Is("friend") || t.Is("enum") || t.Is("static_assert"):
			return false
		case t.Is("static"):
			static = true
		case t.Is("="):
			return static && it.Params < 0
		}
	}
	// "counter c(1);" is a variable, "counter of(int);" the declaration of a function.
	argument := s.At(it.Params + 1)
	return static && (it.Params < 0 || argument.Kind == Number || argument.Kind == String)
}

package translate

import (
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// keep marks the kernel, and the declarations whose names it uses, directly or through other declarations. more is text
// that uses names, such as template arguments. So a function that the host cannot compile does not stop a kernel that
// does not call it.
//
// Without macros, a declaration is used only through a name that it declares. Overloads share a name, so all of them
// are kept. A declaration without a name, such as an operator, is kept if everything that its head mentions is kept.
func (n *nativeWriter) keep(more string) {
	n.kept = make([]bool, len(n.items))
	byName := map[string][]int{}
	var nameless []int
	for i, it := range n.items {
		if it.Scope != msl.NamespaceScope || it.Kernel && i != n.kernel || n.graphics(it) || n.redeclares(it) {
			continue
		}
		names := n.declared(it)
		for _, name := range names {
			byName[name] = append(byName[name], i)
		}
		if len(names) == 0 {
			nameless = append(nameless, i)
		}
	}
	used := map[string]bool{}
	var todo []int
	var use func(t msl.Token)
	use = func(t msl.Token) {
		if t.Kind == msl.Identifier && !used[t.Text] {
			used[t.Text] = true
			todo = append(todo, byName[t.Text]...)
			if t.Text == "numeric_limits" {
				use(msl.Token{Kind: msl.Identifier, Text: limitsBase})
			}
		}
	}
	for _, t := range msl.Tokenize(more) {
		use(t)
	}
	todo = append(todo, n.kernel)
	for len(todo) > 0 {
		for len(todo) > 0 {
			i := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			if n.kept[i] {
				continue
			}
			n.kept[i] = true
			for j := n.items[i].First; j <= n.items[i].Last; j++ {
				use(n.Tokens[j])
			}
		}
		for _, i := range nameless {
			if !n.kept[i] && n.mentionsOnly(n.items[i], byName, used) {
				todo = append(todo, i)
			}
		}
	}
}

// graphics reports whether an item is a function of another stage, or an instantiation of a kernel.
func (n *nativeWriter) graphics(it msl.Item) bool {
	for i := it.First; i <= it.Last && (it.Open < 0 || i < it.Open); i++ {
		t := n.Tokens[i]
		if (t.Is("vertex") || t.Is("fragment")) && n.At(i+1).Kind == msl.Identifier && it.Params >= 0 && i < it.Params {
			return true
		}
		if n.IsAttribute(i) {
			switch n.At(i + 2).Text {
			case "vertex", "fragment", "object", "mesh", "intersection":
				return true
			}
			i = n.Match[i]
		}
		if it.Kind == msl.Instantiation && (it.Kernel || n.At(it.First+1).Is("[")) {
			return true
		}
	}
	return false
}

// redeclares reports whether an item repeats the declaration of a constexpr member, as C++14 requires outside of the
// class. Compilers of C++20 do not need it.
func (n *nativeWriter) redeclares(it msl.Item) bool {
	if it.Kind != msl.OtherItem || it.Params >= 0 {
		return false
	}
	constant, member := false, false
	for i := it.First; i <= it.Last; i++ {
		constant = constant || n.Tokens[i].Is("constexpr")
		member = member || n.Tokens[i].Is("::")
		if n.Tokens[i].Is("=") || n.Tokens[i].Is("{") {
			return false
		}
	}
	return constant && member
}

// mentionsOnly reports whether every name of the text in the head of an item is used.
func (n *nativeWriter) mentionsOnly(it msl.Item, byName map[string][]int, used map[string]bool) bool {
	for i := it.First; i <= it.Last && (it.Open < 0 || i < it.Open); i++ {
		if t := n.Tokens[i]; t.Kind == msl.Identifier && len(byName[t.Text]) > 0 && !used[t.Text] {
			return false
		}
	}
	return true
}

// declared returns the names that an item declares. It may return more names, which keeps more.
func (n *nativeWriter) declared(it msl.Item) []string {
	switch first := n.Tokens[it.First]; {
	case it.Kind == msl.FunctionItem, it.Kind == msl.OtherItem && it.Params > 0 && !first.Is("typedef") && !first.Is("using") &&
		!first.Is("static_assert"):
		return n.functionNames(it)
	case it.Kind == msl.ClassItem:
		return append(n.tag(it), n.identifiers(n.Match[it.Open]+1, it.Last)...)
	case first.Is("using") && n.At(it.First+1).Is("namespace"), first.Is("static_assert"), it.Kind == msl.Instantiation:
		return nil
	case n.Tokens[it.Start].Is("using") && n.At(it.Start+2).Is("="):
		return []string{n.At(it.Start + 1).Text}
	case first.Is("typedef"):
		return n.typedefNames(it)
	case n.Tokens[it.Start].Is("enum"):
		return n.identifiers(it.Start+1, it.Last)
	}
	return n.variableNames(it)
}

// functionNames returns the name of a function, and the class of a member that is defined outside of it.
func (n *nativeWriter) functionNames(it msl.Item) []string {
	var names []string
	i := it.Params - 1
	for i >= it.Start {
		if n.Tokens[i].Is(">") { // template arguments
			depth := 0
			for ; i >= it.Start; i-- {
				if n.Tokens[i].Is(">") {
					depth++
				} else if n.Tokens[i].Is("<") {
					if depth--; depth == 0 {
						break
					}
				}
			}
			i--
		}
		if n.At(i).Kind != msl.Identifier || n.At(i).Is("operator") {
			return names // an operator
		}
		names = append(names, n.Tokens[i].Text)
		if !n.At(i - 1).Is("::") {
			return names
		}
		i -= 2
	}
	return names
}

// tag returns the name of a class.
func (n *nativeWriter) tag(it msl.Item) []string {
	name := ""
	for i := it.Start; i < it.Open; i++ {
		switch t := n.Tokens[i]; {
		case n.IsAttribute(i):
			i = n.Match[i]
		case (t.Is("alignas") || t.Is("__attribute__")) && n.At(i+1).Is("("):
			i = n.Match[i+1]
		case t.Is("<"), t.Is(":"):
			i = it.Open
		case t.Kind == msl.Identifier && !t.Is("struct") && !t.Is("class") && !t.Is("union") && !t.Is("typedef") &&
			!t.Is("final"):
			name = t.Text
		}
	}
	if name == "" {
		return nil
	}
	return []string{name}
}

// identifiers returns the identifiers among the tokens [first, last].
func (n *nativeWriter) identifiers(first, last int) []string {
	var names []string
	for i := first; i <= last; i++ {
		if n.Tokens[i].Kind == msl.Identifier {
			names = append(names, n.Tokens[i].Text)
		}
	}
	return names
}

// typedefNames returns the names of a typedef: the last word, or the word after '*' or '&' in parentheses.
func (n *nativeWriter) typedefNames(it msl.Item) []string {
	name := ""
	for i := it.First; i <= it.Last; i++ {
		switch t := n.Tokens[i]; {
		case t.Is("(") && (n.At(i+1).Is("*") || n.At(i+1).Is("&")):
			return n.identifiers(i, n.Match[i])
		case t.Is("{"):
			return append(n.identifiers(i, it.Last), n.tag(msl.Item{Start: it.Start, Open: i})...)
		case t.Is("(") || t.Is("["):
			i = n.Match[i]
		case t.Kind == msl.Identifier:
			name = t.Text
		}
	}
	return []string{name}
}

// variableNames returns the names of variables: the last word of each declarator.
func (n *nativeWriter) variableNames(it msl.Item) []string {
	var names []string
	name := ""
	record := func() {
		if name != "" {
			names, name = append(names, name), ""
		}
	}
	for i := it.Start; i <= it.Last; i++ {
		switch t := n.Tokens[i]; {
		case n.IsAttribute(i), t.Is("("), t.Is("["), t.Is("{"):
			if !t.Is("(") {
				record()
			}
			i = n.Match[i]
		case t.Is("<"):
			i = max(i, n.SkipAngles(i, it.Last)-1)
		case t.Is("="):
			record()
			for i < it.Last && !n.At(i+1).Is(",") && !n.At(i+1).Is(";") {
				if i++; n.Match[i] > i {
					i = n.Match[i]
				}
			}
		case t.Is(",") || t.Is(";"):
			record()
		case t.Kind == msl.Identifier:
			name = t.Text
		}
	}
	return names
}

package msl

// ScopeKind is the kind of scope in which an item stands.
type ScopeKind uint8

// The kinds of scopes.
const (
	NamespaceScope ScopeKind = iota
	ClassScope
)

// ItemKind is the kind of a declaration.
type ItemKind uint8

// The kinds of declarations.
const (
	OtherItem     ItemKind = iota // variables, aliases, prototypes, enums, macro calls
	FunctionItem                  // a function with its body
	ClassItem                     // struct, class or union with its members
	usingItem                     // using namespace …
	Instantiation                 // template … without parameters
)

// Item is a declaration at namespace or class scope. Its fields are token indices.
type Item struct {
	Kind       ItemKind
	First      int // index of the first token
	Last       int // index of the last token
	Start      int // index of the token after the headers "template <…>"
	Header     int // '<' of the first template header; -1 if there is none
	Open       int // '{' of the body or the members; -1 if there is none
	Params     int // '(' of a function's parameters; -1 if there is none
	Kernel     bool
	Namespaces []string // enclosing namespaces, outermost first; an unnamed one is ""
	Scope      ScopeKind
	ScopeID    int // differs between scopes
}

// maxNesting is the greatest depth of nested namespaces and classes.
const maxNesting = 64

// Items returns the declarations of the text, including those within namespaces and classes. A class comes before its
// members.
func (s *Structure) Items() ([]Item, error) {
	w := itemWalker{Structure: s}
	if err := w.walk(0, len(s.Tokens), NamespaceScope, nil, 0); err != nil {
		return nil, err
	}
	return w.found, nil
}

type itemWalker struct {
	*Structure
	found  []Item
	scopes int
}

// walk adds the items among the tokens [i, end).
func (w *itemWalker) walk(i, end int, scope ScopeKind, namespaces []string, depth int) error {
	if depth > maxNesting {
		return w.ErrorAt(i, "namespaces and classes are nested more than %d deep; simplify them", maxNesting)
	}
	w.scopes++
	id := w.scopes
	for i < end {
		if w.Tokens[i].Is(";") {
			i++
			continue
		}
		if body, names, ok := w.namespace(i, end); ok {
			inner := append(append([]string{}, namespaces...), names...)
			if err := w.walk(body+1, w.Match[body], NamespaceScope, inner, depth+1); err != nil {
				return err
			}
			i = w.Match[body] + 1
			continue
		}
		if scope == ClassScope && w.At(i+1).Is(":") &&
			(w.Tokens[i].Is("public") || w.Tokens[i].Is("private") || w.Tokens[i].Is("protected")) {
			i += 2
			continue
		}
		it := w.item(i, end, scope)
		it.Namespaces, it.Scope, it.ScopeID = namespaces, scope, id
		w.found = append(w.found, it)
		if it.Kind == ClassItem {
			if err := w.walk(it.Open+1, w.Match[it.Open], ClassScope, namespaces, depth+1); err != nil {
				return err
			}
		}
		i = it.Last + 1
	}
	return nil
}

// namespace recognizes "namespace a::b {", "inline namespace {" and "extern "C" {". It returns the index of the brace
// and the names.
func (w *itemWalker) namespace(i, end int) (body int, names []string, ok bool) {
	if w.Tokens[i].Is("extern") && w.At(i+1).Kind == String && w.At(i+2).Is("{") && i+2 < end {
		return i + 2, nil, true
	}
	if w.Tokens[i].Is("inline") {
		i++
	}
	if !w.At(i).Is("namespace") {
		return 0, nil, false
	}
	for i++; i < end; i++ {
		switch t := w.Tokens[i]; {
		case t.Is("{"):
			if len(names) == 0 {
				names = []string{""}
			}
			return i, names, true
		case t.Kind == Identifier:
			if t.Text != "inline" {
				names = append(names, t.Text)
			}
		case w.IsAttribute(i):
			i = w.Match[i]
		case !t.Is("::"):
			return 0, nil, false
		}
	}
	return 0, nil, false
}

// beginsItem holds keywords that begin a declaration. After a ')' at namespace scope they show that the tokens before
// them are a macro call without a semicolon.
var beginsItem = map[string]bool{
	"template": true, "kernel": true, "struct": true, "class": true, "union": true, "namespace": true,
	"using": true, "typedef": true, "inline": true, "static": true, "constexpr": true, "enum": true,
}

// item reads the declaration that begins at token i.
func (w *itemWalker) item(i, end int, scope ScopeKind) Item {
	it := Item{First: i, Start: i, Header: -1, Open: -1, Params: -1}
	if w.Tokens[i].Is("using") && w.At(i+1).Is("namespace") {
		it.Kind = usingItem
	}
	for w.At(it.Start).Is("template") && it.Start < end {
		if !w.At(it.Start + 1).Is("<") {
			it.Kind = Instantiation
			break
		}
		next := w.SkipAngles(it.Start+1, end)
		if next == it.Start+1 {
			break
		}
		if it.Header < 0 {
			it.Header = it.Start + 1
		}
		it.Start = next
	}
	var class, assigned, initializers bool
	for j := it.Start; j < end; j++ {
		switch t := w.Tokens[j]; {
		case t.Is(";"):
			it.Last = j
			return it
		case w.IsAttribute(j):
			for k := j; k < w.Match[j]; k++ {
				if w.Tokens[k].Is("kernel") && scope == NamespaceScope && j > it.Start && w.At(j-1).Is(")") {
					it.Last = j - 1 // a macro call without a semicolon
					return it
				}
				it.Kernel = it.Kernel || w.Tokens[k].Is("kernel")
			}
			j = w.Match[j]
		case t.Is("("):
			if it.Params < 0 && !assigned && !w.At(j-1).Is("alignas") && !w.At(j-1).Is("__attribute__") &&
				!w.At(j-1).Is("decltype") {
				it.Params = j
				if w.At(j-1).Is("operator") && w.At(w.Match[j]+1).Is("(") { // operator()(…)
					it.Params = w.Match[j] + 1
				}
			}
			j = w.Match[j]
		case t.Is("["):
			j = w.Match[j]
		case t.Is("<") && it.Params < 0:
			if k := w.SkipAngles(j, end); k > j {
				j = k - 1
			}
		case t.Is("{"):
			body := it.Params >= 0 && !assigned
			if body && initializers { // a constructor's list: a{1}, b(2) { body }
				previous, next := w.At(j-1), w.At(w.Match[j]+1)
				body = !(previous.Kind == Identifier || previous.Is(">")) && !next.Is(",")
			}
			if body && it.Kind != Instantiation {
				it.Kind, it.Open, it.Last = FunctionItem, j, w.Match[j]
				return it
			}
			if class && it.Params < 0 && it.Open < 0 && !assigned {
				it.Kind, it.Open = ClassItem, j
			}
			j = w.Match[j]
		case t.Is("=") && !w.At(j-1).Is("operator"):
			assigned = true
		case t.Is(":") && it.Params >= 0:
			initializers = true
		case t.Kind == Identifier:
			previous := w.At(j - 1)
			if scope == NamespaceScope && j > it.Start && previous.Is(")") && beginsItem[t.Text] {
				it.Last = j - 1 // a macro call without a semicolon
				return it
			}
			switch t.Text {
			case "kernel":
				it.Kernel = it.Kernel || w.At(j+1).Kind == Identifier || w.IsAttribute(j+1)
			case "struct", "class", "union":
				class = class || it.Params < 0 && !assigned
			case "enum":
				assigned = true // enumerators are not members
			}
		}
		it.Last = j
	}
	it.Last = end - 1
	return it
}

package msl

// scopeKind says what a scope's items are.
type scopeKind uint8

const (
	namespaceScope scopeKind = iota
	classScope
)

// itemKind says what a declaration is, as far as this package must know.
type itemKind uint8

const (
	otherItem     itemKind = iota // variables, aliases, prototypes, enums, macro calls
	functionItem                  // a function with its body
	classItem                     // struct, class or union with its members
	usingItem                     // using namespace …
	instantiation                 // template … without parameters
)

// item is a declaration at namespace or class scope.
type item struct {
	kind       itemKind
	first      int // index of the first token
	last       int // index of the last token
	start      int // index behind "template <…>" headers
	header     int // index of the '<' of the first template header, -1 if there is none
	open       int // the '{' of the body or the members, -1 if there is none
	params     int // the '(' of a function's parameters, -1 if there is none
	kernel     bool
	namespaces []string // enclosing namespaces, outermost first; "" for an unnamed one
	scope      scopeKind
	scopeID    int // differs between scopes
}

// maxNesting bounds the nesting of namespaces and classes.
const maxNesting = 64

// items lists the declarations of the text, those within namespaces and classes too; a
// class comes before its members.
func (s *structure) items() ([]item, error) {
	w := itemWalker{structure: s}
	if err := w.walk(0, len(s.tokens), namespaceScope, nil, 0); err != nil {
		return nil, err
	}
	return w.found, nil
}

type itemWalker struct {
	*structure
	found  []item
	scopes int
}

// walk adds the items of the tokens [i, end).
func (w *itemWalker) walk(i, end int, scope scopeKind, namespaces []string, depth int) error {
	if depth > maxNesting {
		return w.errorAt(i, "namespaces and classes are nested more than %d deep; simplify them", maxNesting)
	}
	w.scopes++
	id := w.scopes
	for i < end {
		if w.tokens[i].is(";") {
			i++
			continue
		}
		if body, names, ok := w.namespace(i, end); ok {
			inner := append(append([]string{}, namespaces...), names...)
			if err := w.walk(body+1, w.match[body], namespaceScope, inner, depth+1); err != nil {
				return err
			}
			i = w.match[body] + 1
			continue
		}
		if scope == classScope && w.at(i+1).is(":") &&
			(w.tokens[i].is("public") || w.tokens[i].is("private") || w.tokens[i].is("protected")) {
			i += 2
			continue
		}
		it := w.item(i, end, scope)
		it.namespaces, it.scope, it.scopeID = namespaces, scope, id
		w.found = append(w.found, it)
		if it.kind == classItem {
			if err := w.walk(it.open+1, w.match[it.open], classScope, namespaces, depth+1); err != nil {
				return err
			}
		}
		i = it.last + 1
	}
	return nil
}

// namespace recognizes "namespace a::b {", "inline namespace {" and "extern "C" {", and
// returns the index of the brace and the names.
func (w *itemWalker) namespace(i, end int) (body int, names []string, ok bool) {
	if w.tokens[i].is("extern") && w.at(i+1).Kind == String && w.at(i+2).is("{") && i+2 < end {
		return i + 2, nil, true
	}
	if w.tokens[i].is("inline") {
		i++
	}
	if !w.at(i).is("namespace") {
		return 0, nil, false
	}
	for i++; i < end; i++ {
		switch t := w.tokens[i]; {
		case t.is("{"):
			if len(names) == 0 {
				names = []string{""}
			}
			return i, names, true
		case t.Kind == Identifier:
			if t.Text != "inline" {
				names = append(names, t.Text)
			}
		case w.isAttribute(i):
			i = w.match[i]
		case !t.is("::"):
			return 0, nil, false
		}
	}
	return 0, nil, false
}

// beginsItem holds the words that begin a declaration; behind a ')' at namespace
// scope they show that a macro call without a semicolon came before.
var beginsItem = map[string]bool{
	"template": true, "kernel": true, "struct": true, "class": true, "union": true, "namespace": true,
	"using": true, "typedef": true, "inline": true, "static": true, "constexpr": true, "enum": true,
}

// item reads the declaration that begins at i.
func (w *itemWalker) item(i, end int, scope scopeKind) item {
	it := item{first: i, start: i, header: -1, open: -1, params: -1}
	if w.tokens[i].is("using") && w.at(i+1).is("namespace") {
		it.kind = usingItem
	}
	for w.at(it.start).is("template") && it.start < end {
		if !w.at(it.start + 1).is("<") {
			it.kind = instantiation
			break
		}
		next := w.skipAngles(it.start+1, end)
		if next == it.start+1 {
			break
		}
		if it.header < 0 {
			it.header = it.start + 1
		}
		it.start = next
	}
	var class, assigned, initializers bool
	for j := it.start; j < end; j++ {
		switch t := w.tokens[j]; {
		case t.is(";"):
			it.last = j
			return it
		case w.isAttribute(j):
			for k := j; k < w.match[j]; k++ {
				if w.tokens[k].is("kernel") && scope == namespaceScope && j > it.start && w.at(j-1).is(")") {
					it.last = j - 1 // a macro call without a semicolon
					return it
				}
				it.kernel = it.kernel || w.tokens[k].is("kernel")
			}
			j = w.match[j]
		case t.is("("):
			if it.params < 0 && !assigned && !w.at(j-1).is("alignas") && !w.at(j-1).is("__attribute__") &&
				!w.at(j-1).is("decltype") {
				it.params = j
				if w.at(j-1).is("operator") && w.at(w.match[j]+1).is("(") { // operator()(…)
					it.params = w.match[j] + 1
				}
			}
			j = w.match[j]
		case t.is("["):
			j = w.match[j]
		case t.is("<") && it.params < 0:
			if k := w.skipAngles(j, end); k > j {
				j = k - 1
			}
		case t.is("{"):
			body := it.params >= 0 && !assigned
			if body && initializers { // a constructor's list: a{1}, b(2) { body }
				previous, next := w.at(j-1), w.at(w.match[j]+1)
				body = !(previous.Kind == Identifier || previous.is(">")) && !next.is(",")
			}
			if body && it.kind != instantiation {
				it.kind, it.open, it.last = functionItem, j, w.match[j]
				return it
			}
			if class && it.params < 0 && it.open < 0 && !assigned {
				it.kind, it.open = classItem, j
			}
			j = w.match[j]
		case t.is("=") && !w.at(j-1).is("operator"):
			assigned = true
		case t.is(":") && it.params >= 0:
			initializers = true
		case t.Kind == Identifier:
			previous := w.at(j - 1)
			if scope == namespaceScope && j > it.start && previous.is(")") && beginsItem[t.Text] {
				it.last = j - 1 // a macro call without a semicolon
				return it
			}
			switch t.Text {
			case "kernel":
				it.kernel = it.kernel || w.at(j+1).Kind == Identifier || w.isAttribute(j+1)
			case "struct", "class", "union":
				class = class || it.params < 0 && !assigned
			case "enum":
				assigned = true // enumerators are no members
			}
		}
		it.last = j
	}
	it.last = end - 1
	return it
}

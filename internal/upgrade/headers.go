package upgrade

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A headerReader turns clang's tree of MLX's headers into declarations.
type headerReader struct {
	include string // MLX's include folder, absolute
	texts   map[string][]byte
	found   []declaration
	bases   map[string][]string // base classes by class
}

// readHeaders returns the declarations of the given headers (relative to the include folder) and of the headers of MLX
// that they include, and the base classes of each class.
func readHeaders(c clang, include string, headers []string) ([]declaration, map[string][]string, error) {
	var text strings.Builder
	for _, h := range headers {
		fmt.Fprintf(&text, "#include <%s>\n", h)
	}
	// The filter leaves out the standard library, which is most of the tree.
	out, errs, err := c.run(include, text.String(), "-I"+include, "-Xclang", "-ast-dump=json", "-Xclang", "-ast-dump-filter=mlx")
	if err != nil {
		return nil, nil, err
	}
	if len(errs) > 0 {
		return nil, nil, fmt.Errorf("the headers in %s do not compile: %s: %s", include, errs[0].Place(), errs[0].Message)
	}
	tree, err := readTree(out)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.name, err)
	}
	r := &headerReader{include: include, texts: map[string][]byte{}, bases: map[string][]string{}}
	for i := range tree {
		r.read(scope{}, &tree[i])
	}
	macros, err := c.macros(include, text.String())
	if err != nil {
		return nil, nil, err
	}
	return append(r.found, macros...), r.bases, nil
}

// A scope is the namespace or class around a declaration.
type scope struct {
	name     string // without the final ::
	owner    string // the class, or ""
	private  bool
	template string // the parameters of the template that the next declaration belongs to
}

func (s scope) qualify(name string) string {
	if s.name == "" {
		return name
	}
	return s.name + "::" + name
}

// read adds the declarations of a node in a scope.
func (r *headerReader) read(s scope, n *node) {
	switch n.Kind {
	case "NamespaceDecl":
		if n.Name != "" {
			r.readAll(scope{name: s.qualify(n.Name)}, n.Inner)
		}
		return
	case "LinkageSpecDecl":
		r.readAll(s, n.Inner)
		return
	}
	header, inMLX := r.header(n)
	if !inMLX || n.IsImplicit || n.Previous != "" && r.known(s, n) {
		return
	}
	switch n.Kind {
	case "FunctionTemplateDecl", "ClassTemplateDecl", "TypeAliasTemplateDecl", "VarTemplateDecl":
		r.readTemplate(s, n)
	case "CXXRecordDecl", "ClassTemplateSpecializationDecl":
		r.readClass(s, n, header)
	case "EnumDecl":
		r.readEnum(s, n, header)
	case "FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXDestructorDecl", "CXXConversionDecl":
		if !s.private || n.Virtual {
			r.add(s, n, r.function(n), header)
		}
	case "FieldDecl", "VarDecl":
		if !s.private {
			d := declaration{Kind: kindVariable, Type: n.Type.Written, Marks: marks(n)}
			if n.Kind == "FieldDecl" {
				d.Kind = kindField
			}
			if n.Default != "" || n.InClass {
				d.Value = r.value(n)
			}
			r.add(s, n, d, header)
		}
	case "TypedefDecl", "TypeAliasDecl":
		if !s.private {
			r.add(s, n, declaration{Kind: kindAlias, Type: n.Type.Written}, header)
		}
	}
}

// known reports whether an earlier declaration of a redeclared node was read. The first declaration of a function may be
// a friend of a class, and friends are not read.
func (r *headerReader) known(s scope, n *node) bool {
	return n.Kind != "FunctionDecl" || slices.ContainsFunc(r.found, func(d declaration) bool {
		return d.Name == s.qualify(n.Name) && d.Type == n.Type.Written
	})
}

func (r *headerReader) readAll(s scope, nodes []node) {
	for i := range nodes {
		r.read(s, &nodes[i])
	}
}

func (r *headerReader) add(s scope, n *node, d declaration, header string) {
	d.Name, d.Owner, d.Header, d.Template = s.qualify(n.Name), s.owner, header, s.template
	r.found = append(r.found, d)
}

// readTemplate adds a template. Its instantiations follow the pattern in the tree and are left out.
func (r *headerReader) readTemplate(s scope, n *node) {
	var params []string
	for i := range n.Inner {
		switch child := &n.Inner[i]; child.Kind {
		case "TemplateTypeParmDecl", "NonTypeTemplateParmDecl", "TemplateTemplateParmDecl":
			params = append(params, r.source(child.Range.Begin.at(), child.Range.End.at()))
		case "CXXRecordDecl", "FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXConversionDecl", "TypeAliasDecl", "VarDecl":
			s.template = strings.Join(params, ", ")
			r.read(s, child)
			return
		}
	}
}

func (r *headerReader) readClass(s scope, n *node, header string) {
	if !n.Complete || s.private || n.Name == "" {
		return
	}
	name := n.Name
	for i := range n.Inner {
		if n.Kind == "ClassTemplateSpecializationDecl" && n.Inner[i].Kind == "TemplateArgument" {
			name += "<" + n.Inner[i].Type.Written + ">"
		}
	}
	d := declaration{Kind: kindClass, Name: s.qualify(name), Owner: s.owner, Header: header, Template: s.template}
	for _, b := range n.Bases {
		d.Marks = append(d.Marks, b.Access+" "+b.Type.Written)
		r.bases[d.Name] = append(r.bases[d.Name], b.Type.full())
	}
	r.found = append(r.found, d)
	inner := scope{name: d.Name, owner: d.Name, private: n.Tag == "class"}
	for i := range n.Inner {
		child := &n.Inner[i]
		if child.Kind == "AccessSpecDecl" {
			inner.private = child.Access == "private"
			continue
		}
		r.read(inner, child)
	}
}

func (r *headerReader) readEnum(s scope, n *node, header string) {
	if s.private {
		return
	}
	if n.Name != "" {
		r.add(s, n, declaration{Kind: kindEnum}, header)
		s.name = s.qualify(n.Name)
		s.owner = s.name
	}
	s.template = ""
	next := 0
	for i := range n.Inner {
		c := &n.Inner[i]
		if c.Kind != "EnumConstantDecl" {
			continue
		}
		if len(c.Inner) > 0 {
			if text, ok := c.Inner[0].Value.(string); ok {
				if value, err := strconv.Atoi(text); err == nil {
					next = value
				}
			}
		}
		r.add(s, c, declaration{Kind: kindEnumerator, Type: fmt.Sprint(next)}, header)
		next++
	}
}

func (r *headerReader) function(n *node) declaration {
	d := declaration{Kind: kindFunction, Type: n.Type.Written}
	var rest string
	d.Result, rest = splitFunctionType(n.Type.Written)
	if n.Kind == "CXXConstructorDecl" || n.Kind == "CXXDestructorDecl" {
		d.Result = ""
	}
	d.Marks = append(marks(n), strings.Fields(rest)...)
	for i := range n.Inner {
		switch c := &n.Inner[i]; c.Kind {
		case "ParmVarDecl":
			p := parameter{Name: c.Name, Type: c.Type.Written}
			if c.Default != "" {
				p.Default = r.value(c)
			}
			d.Params = append(d.Params, p)
		case "OverrideAttr", "FinalAttr":
			d.Marks = append(d.Marks, strings.ToLower(strings.TrimSuffix(c.Kind, "Attr")))
			if !slices.Contains(d.Marks, "virtual") {
				d.Marks = append(d.Marks, "virtual")
			}
		}
	}
	return d
}

// splitFunctionType splits "array (const array &, int) const" into the result's type and the words after the parameters.
func splitFunctionType(text string) (result, rest string) {
	depth := 0
	begin := -1
	for i, c := range text {
		switch c {
		case '<':
			depth++
		case '>':
			depth--
		case '(':
			if depth == 0 && begin < 0 {
				begin = i
			}
			depth++
		case ')':
			if depth--; depth == 0 && begin >= 0 {
				rest = text[i+1:]
			}
		}
	}
	if begin < 0 {
		return text, ""
	}
	return strings.TrimSpace(text[:begin]), strings.TrimSpace(rest)
}

func marks(n *node) (m []string) {
	for _, mark := range []struct {
		set  bool
		text string
	}{
		{n.Virtual, "virtual"},
		{n.Pure, "pure"},
		{n.Storage == "static", "static"},
		{n.Constexpr && n.Kind != "CXXDestructorDecl", "constexpr"},
		{n.Deleted, "deleted"},
	} {
		if mark.set {
			m = append(m, mark.text)
		}
	}
	return m
}

// value returns the text of the default or initial value of a declaration: the text after its name, without "=".
func (r *headerReader) value(n *node) string {
	name, end := n.Loc.at(), n.Range.End.at()
	if n.Name != "" {
		name.Offset += name.Length
	}
	text := r.source(location{File: name.File, Offset: name.Offset}, end)
	if _, after, found := strings.Cut(text, "="); found {
		return strings.TrimSpace(after)
	}
	return text
}

// source returns the text of a header from begin to end with single spaces.
func (r *headerReader) source(begin, end location) string {
	text, read := r.texts[begin.File]
	if !read {
		text, _ = os.ReadFile(begin.File) // clang has just read it; without it the text is empty
		r.texts[begin.File] = text
	}
	to := end.Offset + end.Length
	if begin.Offset > to || to > len(text) {
		return ""
	}
	return strings.Join(strings.Fields(string(text[begin.Offset:to])), " ")
}

// header returns the header of a node, and whether it is one of MLX's.
func (r *headerReader) header(n *node) (string, bool) {
	rel, err := filepath.Rel(r.include, n.Loc.at().File)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

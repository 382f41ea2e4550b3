package upgrade

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// uses maps MLX's declarations, by the keys below, to the functions of mlx-c and libmlxg that use them.
type uses map[string][]string

func (u uses) add(place, key string) {
	if place != "" && !slices.Contains(u[key], place) {
		u[key] = append(u[key], place)
	}
}

// The keys of uses. Types and members have the name without namespaces.
func callKey(name, signature string) string       { return "call " + name + " " + signature }
func nameKey(name string) string                  { return "name " + name }
func memberKey(class, name string) string         { return "member " + class + "::" + name }
func constructKey(class, signature string) string { return "construct " + class + " " + signature }
func typeKey(name string) string                  { return "type " + name }
func baseKey(class string) string                 { return "base " + class }
func wordKey(word string) string                  { return "word " + word }

// A sourceCheck is the result of parsing mlx-c and libmlxg against a release of MLX.
type sourceCheck struct {
	uses   uses
	errors []compileError
}

// checkSources parses the translation units of mlx-c and libmlxg in the folder dir against the MLX in include. It
// precompiles MLX's headers: clang then leaves their declarations out of the tree, which shrinks to a tenth.
func checkSources(c clang, dir, include string, units []string) (*sourceCheck, error) {
	tmp, err := os.MkdirTemp("", "mlxgrad-upgrade-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	precompiled := filepath.Join(tmp, "mlx.pch")
	header := filepath.Join(tmp, "mlx.h")
	if err := os.WriteFile(header, []byte("#include \"mlx/mlx.h\"\n#include \"mlx/primitives.h\"\n"), 0o600); err != nil {
		return nil, err
	}
	_, errs, err := c.start(dir, "", "-std=c++20", "-w", "-I"+include, "-x", "c++-header", header, "-o", precompiled)
	if err != nil {
		return nil, err
	}
	check := &sourceCheck{uses: uses{}, errors: errs}
	if len(errs) > 0 {
		return check, nil
	}
	for _, unit := range units {
		out, errs, err := c.run(dir, fmt.Sprintf("#include \"%s\"\n", unit), "-I.", "-I"+include, "-include-pch", precompiled,
			`-DMLXGRAD_MLX_C_VERSION=""`, "-Xclang", "-ast-dump=json")
		if err != nil {
			return nil, err
		}
		tree, err := readTree(out)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		var functions []functionRange
		for i := range tree {
			for j := range tree[i].Inner {
				walkSource(&tree[i].Inner[j], "", check.uses, &functions)
			}
		}
		for _, e := range errs {
			e.Function = around(functions, e)
			if !slices.ContainsFunc(check.errors, func(o compileError) bool { return o.Place() == e.Place() && o.Message == e.Message }) {
				check.errors = append(check.errors, e)
			}
		}
	}
	return check, check.uses.addWords(dir)
}

// A functionRange is the range of lines of a function.
type functionRange struct {
	file       string
	begin, end int // lines
	name       string
}

// around returns the name of the innermost function around an error.
func around(functions []functionRange, e compileError) (name string) {
	size := -1
	for _, f := range functions {
		if f.file == e.File && f.begin <= e.Line && e.Line <= f.end && (size < 0 || f.end-f.begin <= size) {
			name, size = f.name, f.end-f.begin
		}
	}
	return name
}

// inSources returns the file of a node, and whether it is a file of mlx-c or libmlxg. Only their names are relative,
// since clang runs in their folder.
func inSources(n *node) (string, bool) {
	file := n.Loc.at().File
	return filepath.ToSlash(filepath.Clean(file)), file != "" && file[0] != '<' && !filepath.IsAbs(file)
}

// walkSource adds the uses of MLX below a node to u, and its functions to functions. place is the function around it.
func walkSource(n *node, place string, u uses, functions *[]functionRange) {
	switch n.Kind {
	case "NamespaceDecl", "LinkageSpecDecl":
	case "FunctionDecl", "CXXMethodDecl", "CXXConstructorDecl", "CXXDestructorDecl", "CXXConversionDecl":
		file, ours := inSources(n)
		if place == "" && !ours || n.IsImplicit {
			return
		}
		*functions = append(*functions, functionRange{file, n.Range.Begin.at().Line, n.Range.End.at().Line, n.Name})
		if place == "" || !strings.Contains(place, "(") {
			place = n.Name + " (" + file + ")"
		}
	case "CXXRecordDecl":
		_, ours := inSources(n)
		if place == "" && !ours || n.IsImplicit {
			return
		}
		if place == "" {
			place = n.Name
		}
		for _, b := range n.Bases {
			u.add(place, baseKey(className(b.Type.full())))
		}
	default:
		if _, ours := inSources(n); place == "" && !ours {
			return
		}
	}
	u.addNode(n, place)
	for i := range n.Inner {
		walkSource(&n.Inner[i], place, u, functions)
	}
}

// addNode adds the uses of MLX in a node, without its children.
func (u uses) addNode(n *node, place string) {
	for _, t := range []typeName{n.Type, n.CtorType} {
		for _, text := range []string{t.Written, t.Full} {
			for _, w := range word.FindAllString(text, -1) {
				u.add(place, typeKey(w))
			}
		}
	}
	switch n.Kind {
	case "DeclRefExpr":
		if r := n.Referenced; r != nil {
			switch r.Kind {
			case "EnumConstantDecl":
				u.add(place, memberKey(className(r.Type.full()), r.Name))
			case "VarDecl":
				u.add(place, nameKey(r.Name))
			default:
				u.add(place, callKey(r.Name, r.Type.Written))
				u.add(place, nameKey(r.Name))
			}
		}
	case "UnresolvedLookupExpr":
		u.add(place, nameKey(n.Name))
	case "MemberExpr":
		if len(n.Inner) > 0 {
			u.add(place, memberKey(className(n.Inner[0].Type.full()), n.Name))
		}
	case "CXXConstructExpr", "CXXTemporaryObjectExpr":
		u.add(place, constructKey(className(n.Type.full()), n.CtorType.Written))
	}
}

var word = regexp.MustCompile(`[A-Za-z_]\w*`)

// className returns the name of a class without namespaces, template arguments, qualifiers, pointers and references.
func className(text string) string {
	text, _, _ = strings.Cut(text, "<")
	text = strings.TrimRight(text, " *&")
	for _, q := range []string{"const ", "volatile ", "enum ", "class ", "struct "} {
		text = strings.TrimPrefix(text, q)
	}
	return last(strings.TrimSuffix(text, " const"))
}

// addWords adds the words of the sources that may name macros, which a syntax tree does not have.
func (u uses) addWords(dir string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || d.IsDir() || ext != ".cpp" && ext != ".h" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		for _, w := range word.FindAllString(string(text), -1) {
			if macroName.MatchString(w) {
				u.add(filepath.ToSlash(rel), wordKey(w))
			}
		}
		return err
	})
}

var macroName = regexp.MustCompile(`^[A-Z][A-Z0-9_]+$`)

// ofAdded returns the functions that an added declaration may affect. For a function these are the users of its name,
// since it may be a better overload.
func (u uses) ofAdded(d declaration, bases map[string][]string) []string {
	if d.Kind == kindFunction && d.Owner == "" {
		return u[nameKey(last(d.Name))]
	}
	return u.of(d, bases)
}

// of returns the functions that use a declaration. bases has the base classes of MLX's classes: a class also depends on
// the virtual functions of its bases.
func (u uses) of(d declaration, bases map[string][]string) []string {
	name, owner := last(d.Name), className(d.Owner)
	var places []string
	switch d.Kind {
	case kindMacro:
		return u[wordKey(d.Name)]
	case kindClass, kindEnum, kindAlias:
		return u[typeKey(className(d.Name))]
	case kindField, kindEnumerator:
		return u[memberKey(owner, name)]
	case kindVariable:
		return append(slices.Clone(u[memberKey(owner, name)]), u[nameKey(name)]...)
	}
	switch {
	case owner == "" && d.Template != "":
		places = u[nameKey(name)]
	case owner == "":
		places = u[callKey(name, d.Type)]
	case name == owner:
		places = u[constructKey(owner, d.Type)]
	default:
		places = append(slices.Clone(u[memberKey(owner, name)]), u[callKey(name, d.Type)]...)
	}
	if d.virtual() {
		for key, users := range u {
			if class, isBase := strings.CutPrefix(key, "base "); isBase && derives(class, owner, bases) {
				places = append(places[:len(places):len(places)], users...)
			}
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// derives reports whether a class, by its name without namespaces, is the other or derives from it.
func derives(class, other string, bases map[string][]string) bool {
	if class == other {
		return true
	}
	for name, of := range bases {
		if className(name) != class {
			continue
		}
		for _, b := range of {
			if derives(className(b), other, bases) {
				return true
			}
		}
	}
	return false
}

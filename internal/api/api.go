// Package api lists the exported declarations of the packages that users import. Its test compares the lists with
// the files in testdata, so that no change of the public interface goes unnoticed.
package api

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Packages returns the folders of the module at root, relative to it, that hold a package which other modules can
// import. It leaves out commands, examples, internal packages and modules below root.
func Packages(root string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		name := entry.Name()
		nested := false
		if dir != root {
			_, err := os.Stat(filepath.Join(dir, "go.mod"))
			nested = err == nil
		}
		switch {
		case nested, dir != root && strings.HasPrefix(name, "."), name == "internal", name == "testdata", name == "examples":
			return filepath.SkipDir
		}
		p, err := platform().ImportDir(dir, 0)
		if err != nil || p.Name == "main" {
			return nil //nolint:nilerr // a folder without Go files
		}
		relative, err := filepath.Rel(root, dir)
		found = append(found, filepath.ToSlash(relative))
		return err
	})
	return found, err
}

// platform returns the build context of the lists: one platform, so that they are the same on every machine.
func platform() *build.Context {
	c := build.Default
	c.GOOS, c.GOARCH, c.CgoEnabled, c.BuildTags = "linux", "amd64", true, nil
	return &c
}

// List returns the exported declarations of the package in dir, sorted, one per line, without comments. Fields of
// structs and methods of interfaces have lines of their own. Values of constants and variables are left out.
func List(dir string) (string, error) {
	p, err := platform().ImportDir(dir, 0)
	if err != nil {
		return "", err
	}
	l := lister{files: token.NewFileSet()}
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
		file, err := parser.ParseFile(l.files, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		for _, d := range file.Decls {
			l.declaration(d)
		}
	}
	slices.Sort(l.lines)
	return strings.Join(append(l.lines, ""), "\n"), l.err
}

type lister struct {
	files *token.FileSet
	lines []string
	err   error
}

func (l *lister) add(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// text returns the source of a node on one line.
func (l *lister) text(node any) string {
	var b strings.Builder
	if err := printer.Fprint(&b, l.files, node); err != nil {
		l.err = err
	}
	oneLine := strings.Join(strings.Fields(b.String()), " ")
	return strings.NewReplacer("( ", "(", ", )", ")").Replace(oneLine) // parameters on several lines
}

func (l *lister) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() || d.Recv != nil && !ast.IsExported(typeName(d.Recv.List[0].Type)) {
			return
		}
		l.add("%s", l.text(&ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type}))
	case *ast.GenDecl:
		var constant ast.Expr // the type of constants without a type of their own
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					l.namedType(s)
				}
			case *ast.ValueSpec:
				if s.Type != nil || len(s.Values) > 0 {
					constant = s.Type
				}
				l.values(d.Tok, s, constant)
			}
		}
	}
}

// values adds the exported names of one line of a var or const declaration.
func (l *lister) values(kind token.Token, s *ast.ValueSpec, declared ast.Expr) {
	for _, name := range s.Names {
		switch {
		case !name.IsExported():
		case declared != nil:
			l.add("%s %s %s", kind, name.Name, l.text(declared))
		default:
			l.add("%s %s", kind, name.Name)
		}
	}
}

// namedType adds a type, its exported fields and the methods of an interface.
func (l *lister) namedType(s *ast.TypeSpec) {
	head := "type " + s.Name.Name
	if s.TypeParams != nil {
		var list []string
		for _, f := range s.TypeParams.List {
			for _, n := range f.Names {
				list = append(list, n.Name+" "+l.text(f.Type))
			}
		}
		head += "[" + strings.Join(list, ", ") + "]"
	}
	if s.Assign != token.NoPos {
		head += " ="
	}
	switch t := s.Type.(type) {
	case *ast.StructType:
		l.add("%s struct", head)
		for _, f := range t.Fields.List {
			if len(f.Names) == 0 && ast.IsExported(typeName(f.Type)) {
				l.add("field %s: %s (embedded)", s.Name.Name, l.text(f.Type))
			}
			for _, n := range f.Names {
				if n.IsExported() {
					l.add("field %s.%s %s", s.Name.Name, n.Name, l.text(f.Type))
				}
			}
		}
	case *ast.InterfaceType:
		l.add("%s interface", head)
		for _, f := range t.Methods.List {
			if len(f.Names) == 0 {
				l.add("constraint %s: %s", s.Name.Name, l.text(f.Type))
			}
			for _, n := range f.Names {
				l.add("method %s.%s%s", s.Name.Name, n.Name, strings.TrimPrefix(l.text(f.Type), "func"))
			}
		}
	default:
		l.add("%s %s", head, l.text(s.Type))
	}
}

// typeName returns the name of the type in a receiver or an embedded field, without package and type parameters.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

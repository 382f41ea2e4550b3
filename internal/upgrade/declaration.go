package upgrade

import (
	"fmt"
	"slices"
	"strings"
)

// The kinds of declarations.
const (
	kindFunction   = "function"
	kindField      = "field"
	kindVariable   = "variable"
	kindClass      = "class"
	kindEnum       = "enum"
	kindEnumerator = "enumerator"
	kindAlias      = "alias"
	kindMacro      = "macro"
)

// A declaration is a public or protected declaration of MLX's headers, or a macro.
type declaration struct {
	Kind     string
	Name     string // with namespaces and classes, such as mlx::core::array::size
	Owner    string // the class of a member, or ""
	Header   string // relative to the include folder, such as mlx/ops.h
	Template string // the template's parameters, such as "typename T, int N = 4"
	Type     string // of a function its complete type, of an alias its target, of an enumerator its value
	Result   string // of a function
	Value    string // the initial value of a variable or field, a macro's text
	Params   []parameter
	Marks    []string // virtual, pure, static, constexpr, deleted, const, noexcept, final, base classes
}

type parameter struct{ Name, Type, Default string }

func (p parameter) String() string {
	text := p.Type
	if p.Name != "" {
		text += " " + p.Name
	}
	if p.Default != "" {
		text += " = " + p.Default
	}
	return text
}

// last returns the part of a qualified name after the last ::.
func last(name string) string {
	if i := strings.LastIndex(name, "::"); i >= 0 {
		return name[i+2:]
	}
	return name
}

// String returns the declaration in C++'s notation, in one line.
func (d declaration) String() string {
	var text string
	switch d.Kind {
	case kindFunction:
		params := make([]string, len(d.Params))
		for i, p := range d.Params {
			params[i] = p.String()
		}
		text = fmt.Sprintf("%s %s(%s)", d.Result, d.Name, strings.Join(params, ", "))
	case kindField, kindVariable:
		text = d.Type + " " + d.Name
		if d.Value != "" {
			text += " = " + d.Value
		}
	case kindAlias:
		text = "using " + d.Name + " = " + d.Type
	case kindEnumerator:
		text = d.Name + " = " + d.Type
	case kindMacro:
		text = "#define " + d.Name + " " + d.Value
	default:
		text = d.Kind + " " + d.Name
	}
	if d.Template != "" {
		text = "template <" + d.Template + "> " + text
	}
	if len(d.Marks) > 0 {
		text += " [" + strings.Join(d.Marks, ", ") + "]"
	}
	return strings.TrimSpace(text)
}

// group returns the key that all overloads of a function share. Other declarations have a key of their own.
func (d declaration) group() string { return d.Kind + " " + d.Name }

// virtual reports whether derived classes may override the function.
func (d declaration) virtual() bool { return slices.Contains(d.Marks, "virtual") }

package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// NativeSource is one kernel of a shader file with the declarations that it uses, for running it as Metal would.
type NativeSource struct {
	// Text is the shader's text with blanks in place of all other declarations. Its lines and columns are those of the
	// preprocessed text. An instantiation of a template follows the last line.
	Text string
	// Unset names the function constants that the kernel uses and that have no value.
	Unset []string
}

// Native returns the text of a kernel of [msl.ParseNative] with template arguments and the values of its function
// constants.
func Native(k *msl.Kernel, arguments []string, values Values) (NativeSource, error) {
	s, body := k.Structure()
	items, err := s.Items()
	if err != nil {
		return NativeSource{}, err
	}
	n := nativeWriter{Structure: s, items: items, edits: msl.Edits{Text: s.Text}, values: values}
	n.kernel = n.itemAt(body[0])
	n.keep(strings.Join(arguments, " , "))
	out := NativeSource{Unset: n.constants(k)}
	n.blank()
	out.Text = strings.TrimRight(n.edits.Apply(), "\n") + "\n"
	out.Text += strings.Repeat("\n", max(0, strings.Count(s.Text, "\n")-strings.Count(out.Text, "\n")))
	if len(k.Template) > 0 {
		name := strings.Join(append(named(k.Namespaces), k.Name), "::") + "<" + strings.Join(arguments, ", ") + ">"
		out.Text += fmt.Sprintf("template [[host_name(%q)]] [[kernel]] decltype(%s) %[2]s;\n", k.Name, name)
	}
	return out, nil
}

// named returns the namespaces that have a name.
func named(namespaces []string) []string {
	var list []string
	for _, n := range namespaces {
		if n != "" {
			list = append(list, n)
		}
	}
	return list
}

// nativeWriter is the state of [Native].
type nativeWriter struct {
	*msl.Structure
	items  []msl.Item
	kernel int    // index of its item
	kept   []bool // by item
	edits  msl.Edits
	values Values
}

// itemAt returns the index of the function whose body begins at a token.
func (n *nativeWriter) itemAt(open int) int {
	for i, it := range n.items {
		if it.Kind == msl.FunctionItem && it.Open == open {
			return i
		}
	}
	return -1
}

// blank removes the items that are not kept, with the members of classes.
func (n *nativeWriter) blank() {
	for i, it := range n.items {
		if !n.kept[i] && it.Scope == msl.NamespaceScope {
			n.edits.Blank(n.Tokens[it.First].Offset, n.Tokens[it.Last].End())
		}
	}
}

// constants gives the function constants their values, and returns the names of those without one. If the text calls
// is_function_constant_defined for a constant without a value, the constant becomes 0, and the kernel must not depend
// on that value.
func (n *nativeWriter) constants(k *msl.Kernel) (unset []string) {
	queried := map[string]bool{}
	for i, t := range n.Tokens {
		if t.Is("is_function_constant_defined") && n.At(i+1).Is("(") && n.At(i+2).Kind == msl.Identifier {
			name := n.Tokens[i+2].Text
			_, set := n.values.Constants[name]
			queried[name] = true
			n.edits.Replace(t.Offset, n.Tokens[n.Match[i+1]].End(), fmt.Sprint(set))
		}
	}
	for i, it := range n.items {
		if !n.kept[i] || it.Kind != msl.OtherItem {
			continue
		}
		for j := it.First + 1; j < it.Last; j++ {
			if !n.IsAttribute(j) || !n.At(j+2).Is("function_constant") {
				continue
			}
			name := n.At(j - 1).Text
			value, set := n.values.Constants[name]
			hidden := k.HasArgument(name) || slices.ContainsFunc(k.Template, func(p msl.TemplateParameter) bool { return p.Name == name })
			if !set && !queried[name] && !hidden {
				unset = append(unset, name)
			}
			n.edits.Replace(n.Tokens[j].Offset, n.Tokens[n.Match[j]].End(), "= "+cmp.Or(value, "{}"))
		}
	}
	return unset
}

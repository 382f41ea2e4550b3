// Package addrspace finds errors about address spaces that Apple's compiler reports, on machines without it.
//
// [Check] rewrites the complete text that MLX generates for a kernel into C++ for OpenCL, whose address spaces obey
// the same rules. Lines keep their numbers. Clang reads the declarations of package prelude and then the text, and its
// diagnostics are translated back to Metal's words. Clang generates no code.
//
// The check does not accept a text that clang did not read completely. It inserts a violation into the kernel's body
// and another one after the text, and clang must report both. Any diagnostic that is not about address spaces makes the
// result incomplete ([UncheckedError]).
package addrspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/addrspace/prelude"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// ErrNoClang is the error of [Check] on a machine without clang.
var ErrNoClang = errors.New("the address-space check needs clang 14 or later on PATH; install it, " +
	"for instance with \"apt-get install clang\" or \"dnf install clang\"")

// Finding is a place in the text that Apple's compiler rejects.
type Finding struct {
	// Line and Column are the position in the generated text. The column is approximate.
	Line, Column int
	// Message is clang's message with Metal's names of the address spaces.
	Message string
	// Notes are clang's notes, such as the candidates of a call.
	Notes []string
	// Ambiguous is set for a call of a Metal function that matches several overloads, which is not an error about
	// address spaces.
	Ambiguous bool
}

// String returns "line:column: message".
func (f Finding) String() string { return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Message) }

// UncheckedError reports that clang could not read all of a text, so that findings may be missing. Diagnostics holds
// the constructs that clang rejected. The usual cause is a function of Metal's library that the prelude does not
// declare.
type UncheckedError struct {
	Diagnostics []Finding
}

// Error describes the first diagnostic and counts the others.
func (e *UncheckedError) Error() string {
	if len(e.Diagnostics) == 0 {
		return "the address-space check could not read the text"
	}
	more := ""
	if n := len(e.Diagnostics) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("the address-space check could not read line %d: %s%s; correct the shader, or add the "+
		"missing declaration to the prelude",
		e.Diagnostics[0].Line, e.Diagnostics[0].Message, more)
}

// Check finds errors about address spaces in the complete text that MLX generates for a kernel, and ambiguous calls
// of Metal's functions with arguments of two types. Clang instantiates the kernel's template as the text does.
// Pointers and references without an address space are in thread memory.
//
// A text without findings is not proven correct; the package's tests show the errors that are found. If clang stops
// early or rejects a construct, Check returns the findings so far and an [*UncheckedError]. If clang does not report
// the two inserted violations, Check returns an error. Without clang it returns [ErrNoClang].
func Check(ctx context.Context, text string) ([]Finding, error) {
	s, err := msl.NewStructure("", text, nil)
	if err != nil {
		return nil, err
	}
	items, err := s.Items()
	if err != nil {
		return nil, err
	}
	w := &rewriter{Structure: s, items: items, code: msl.NewCode(s.Kept())}
	diagnostics, err := w.read(ctx)
	if err != nil {
		return nil, err
	}
	diagnostics, err = w.readTemporaries(ctx, diagnostics)
	if err != nil {
		return nil, err
	}
	findings := w.programScope()
	var unread []Finding
	canaries := map[string]bool{}
	for _, d := range diagnostics {
		switch {
		case d.file == canaryKernel || d.file == canaryEnd:
			canaries[d.file] = canaries[d.file] || d.aboutSpaces()
		case d.harmless():
		case d.file != checkedText:
			unread = append(unread, d.Finding)
		case d.aboutSpaces():
			findings = appendOnce(findings, d.explained())
		case d.ambiguous():
			d.Ambiguous = true
			findings = appendOnce(findings, d.Finding)
		default:
			unread = appendOnce(unread, d.Finding)
		}
	}
	if len(unread) > 0 {
		return findings, &UncheckedError{unread}
	}
	if !canaries[canaryKernel] {
		return findings, errors.New("the address-space check did not reach the kernel's body; " +
			"give it the complete text that MLX generates, with the instantiation")
	}
	if !canaries[canaryEnd] {
		return findings, errors.New("the address-space check did not reach the end of the text; " +
			"look for a construct that hides the rest, such as an open conditional")
	}
	return findings, nil
}

// read translates the text and returns clang's diagnostics.
func (w *rewriter) read(ctx context.Context) ([]diagnostic, error) {
	w.edits = msl.Edits{Text: w.Text}
	translated, err := w.translate()
	if err != nil {
		return nil, err
	}
	before := prelude.Text
	if w.definesMLX() {
		before = "#define MLXG_NO_MLX_PRELUDE\n" + prelude.Text
	}
	if w.UsesTextures() {
		before += prelude.Textures
	}
	return readWithClang(ctx, before+"\n#line 1 \""+checkedText+"\"\n"+translated)
}

// definesMLX reports whether the text defines classes that MLX declares before a kernel, as MLX's own headers do.
func (w *rewriter) definesMLX() bool {
	return slices.ContainsFunc([]string{"complex_t", "complex64_t", "Limits", "ConditionalType"},
		func(name string) bool { return w.code.Classes[name] })
}

// readTemporaries reads the text again if clang rejected a temporary object as an argument in thread memory. In the
// second reading, references to const in thread memory accept objects of any address space. On the affected lines its
// diagnostics replace the rejections of the first reading.
func (w *rewriter) readTemporaries(ctx context.Context, first []diagnostic) ([]diagnostic, error) {
	lines := map[int]bool{}
	for _, d := range first {
		if d.file == checkedText && d.refusesTemporary() {
			lines[d.Line] = true
		}
	}
	if len(lines) == 0 {
		return first, nil
	}
	w.anyReference = true
	second, err := w.read(ctx)
	if err != nil {
		return nil, err
	}
	first = slices.DeleteFunc(first, func(d diagnostic) bool { return d.file == checkedText && d.refusesTemporary() })
	for _, d := range second {
		if d.file == checkedText && lines[d.Line] {
			first = append(first, d)
		}
	}
	return first, nil
}

// appendOnce adds a finding unless the list has it. Template instantiations repeat findings.
func appendOnce(list []Finding, f Finding) []Finding {
	for _, other := range list {
		if other.Line == f.Line && other.Column == f.Column && other.Message == f.Message {
			return list
		}
	}
	return append(list, f)
}

// programScope finds variables of program scope and static members that are not in constant memory. OpenCL places
// them in device memory; Metal rejects them.
func (w *rewriter) programScope() []Finding {
	var findings []Finding
	for _, it := range w.items {
		if it.Kind == msl.OtherItem && it.Params < 0 && w.staticVariable(it) {
			t := w.Tokens[it.First]
			findings = append(findings, Finding{
				Line: t.Line, Column: t.Column,
				Message: "a program-scope variable must be in constant memory: " +
					strings.TrimSpace(w.Join(it.First, min(it.First+6, it.Last))),
			})
		}
	}
	return findings
}

// staticVariable reports whether an item is a variable of program scope or a static member, without the word
// constant. It returns false if a macro may contain the type or the address space.
func (w *rewriter) staticVariable(it msl.Item) bool {
	i, static := it.Start, it.Scope == msl.NamespaceScope
	for ; i <= it.Last; i++ {
		t := w.Tokens[i]
		if w.IsAttribute(i) {
			i = w.Match[i]
		} else if t.Is("static") {
			static = true
		} else if !t.Is("const") && !t.Is("constexpr") && !t.Is("inline") && !t.Is("volatile") {
			break
		}
	}
	first, end := w.TypeName(i)
	if !static || end == first || w.At(end).Kind != msl.Identifier {
		return false
	}
	for j := it.Start; j < end; j++ {
		if t := w.Tokens[j]; t.Is("constant") || w.IsMacro(t.Text) || t.Is("typedef") || t.Is("using") || t.Is("enum") ||
			t.Is("friend") || t.Is("namespace") {
			return false
		}
	}
	next := w.At(end + 1)
	return !w.At(end).Is("constant") && !w.IsMacro(w.At(end).Text) &&
		(next.Is("=") || next.Is("[") || next.Is("{") || next.Is(";") || next.Is(","))
}

// canary inserts a violation at the beginning of the kernel's body. In a template it depends on a template parameter,
// so that clang reports it only if it instantiates the kernel.
func (w *rewriter) canary() error {
	kernel, _, err := w.NativeKernel(w.items)
	if err != nil {
		return err
	}
	value := "metal::mlxg_canary_type<>()"
	for _, p := range kernel.Template {
		switch {
		case p.Kind == msl.TypeParameter:
			value = "metal::mlxg_canary_type<" + p.Name + ">()"
		case p.Kind != msl.OtherParameter:
			value = "metal::mlxg_canary_value<" + p.Name + ">()"
		default:
			continue
		}
		break
	}
	w.insert(kernel.BodyPos.Offset, fmt.Sprintf("\n#line 1 %q\n{ __global float* mlxg_canary = %s; }\n#line %d %q\n",
		canaryKernel, value, kernel.BodyPos.Line, checkedText))
	return nil
}

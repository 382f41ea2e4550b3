package msl

import (
	"slices"
	"strings"
)

// header sets the kernel's header and function constants.
func (p *parser) header(k *Kernel) {
	end := p.Tokens[k.body[1]].End()
	blanks := p.kernelText()
	prototypes := false
	for _, it := range p.items {
		if it.First < k.body[0] && it.Kind == OtherItem && it.Params >= 0 && !it.Kernel &&
			it.Scope == NamespaceScope && p.Tokens[it.Last].Is(";") {
			prototypes = true
		}
		if it.First < k.body[0] || prototypes {
			p.functionConstant(k, it)
		}
	}
	if !prototypes {
		blanks = append(blanks, p.textAfter(end)...)
	}
	k.Header = p.blanked(blanks)
}

// span is the piece [Start, End) of a text, in bytes.
type span struct{ Start, End int }

// kernelText returns the pieces that no header keeps: kernels, their instantiations, calls of macros that expand to
// either, aliases of kernel types, includes of Metal's headers, and "using namespace metal".
func (p *parser) kernelText() []span {
	var spans []span
	add := func(first, last int) {
		spans = append(spans, span{p.Tokens[first].Offset, p.Tokens[last].End()})
	}
	makers := p.kernelMacros()
	for _, it := range p.items {
		drop := it.Kernel && it.Kind != ClassItem
		if it.Kernel && it.Kind == OtherItem && it.Params < 0 {
			drop = false // a variable with the name kernel
		}
		if it.Kind == usingItem && p.Join(it.First, it.Last) == "using namespace metal;" {
			drop = true
		}
		for i := it.First; i <= it.Last && !drop && it.Kind != FunctionItem; i++ {
			t := p.Tokens[i]
			switch {
			case t.Is("decltype") && p.At(i+1).Is("(") && p.isKernel(p.At(i+2)): // an alias of a kernel's type
				drop = true
			case t.Is("(") || t.Is("{"):
				i = p.Match[i]
			case it.Kind == Instantiation && t.Kind == Identifier:
				drop = p.isKernel(t)
			case it.Kind == OtherItem && makers[t.Text] && p.At(i+1).Is("("):
				drop = true
			}
		}
		if drop {
			add(it.First, it.Last)
		}
	}
	for i, t := range p.All {
		if t.Kind == HeaderName && IsMetalHeader(strings.Trim(t.Text, `<>"`)) {
			first := i
			for first > 0 && p.All[first-1].Directive == t.Directive {
				first--
			}
			spans = append(spans, span{p.All[first].Offset, t.End()})
		}
	}
	return spans
}

// isKernel reports whether a token is the name of a kernel.
func (p *parser) isKernel(t Token) bool {
	return slices.ContainsFunc(p.file.Kernels, func(k *Kernel) bool { return t.Is(k.Name) })
}

// kernelMacros returns the names of macros that define or instantiate kernels.
func (p *parser) kernelMacros() map[string]bool {
	bodies := map[string][]string{}
	for i := range p.All {
		if p.BeginsDirective(i) {
			if name, words := p.Directive(i); name == "define" && len(words) > 1 {
				bodies[words[0]] = words[1:]
			}
		}
	}
	makers := map[string]bool{}
	for changed := true; changed; {
		changed = false
		for name, words := range bodies {
			if !makers[name] && slices.ContainsFunc(words, func(w string) bool {
				return w == "host_name" || w == "kernel" || makers[w]
			}) {
				makers[name], changed = true, true
			}
		}
	}
	return makers
}

// textAfter returns the pieces after an offset, except the #endif lines of conditionals that begin before it.
func (p *parser) textAfter(offset int) []span {
	var spans []span
	depth, start := 0, offset
	for i, t := range p.All {
		if t.Offset < offset || !p.BeginsDirective(i) {
			continue
		}
		switch name, _ := p.Directive(i); name {
		case "if", "ifdef", "ifndef":
			depth++
		case "endif":
			if depth > 0 {
				depth--
				continue
			}
			spans = append(spans, span{start, t.Offset})
			start = p.All[p.DirectiveEnd(i)-1].End()
		}
	}
	return append(spans, span{start, len(p.Text)})
}

// blanked returns the text with blanks in place of the spans and without white space at its end. Newlines stay, so that
// lines keep their numbers.
func (p *parser) blanked(spans []span) string {
	text := []byte(p.Text)
	for _, s := range spans {
		for i := s.Start; i < s.End; i++ {
			if text[i] != '\n' && text[i] != '\r' {
				text[i] = ' '
			}
		}
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) == "" {
			lines[i] = ""
		}
	}
	header := strings.TrimRight(strings.Join(lines, "\n"), "\n \t\r")
	if header == "" {
		return ""
	}
	return header + "\n"
}

// functionConstant adds a declaration such as "constant bool x [[function_constant(0)]];" to the kernel's constants.
func (p *parser) functionConstant(k *Kernel, it Item) {
	if it.Kind != OtherItem {
		return
	}
	for i := it.First; i < it.Last; i++ {
		if !p.IsAttribute(i) || !p.At(i+2).Is("function_constant") || i < it.First+2 {
			continue
		}
		index, ok := p.integer(i+4, p.Match[i]-3)
		if !ok {
			index = -1
		}
		var words []int
		for j := it.First; j < i-1; j++ {
			if t := p.Tokens[j]; !t.Is("constant") && !t.Is("const") && !t.Is("static") {
				words = append(words, j)
			}
		}
		name := p.Tokens[i-1]
		k.Constants = append(k.Constants, FunctionConstant{
			name.Text,
			p.element(words), index, p.Position(name), name.Line,
		})
		return
	}
}

package msl

import (
	"slices"
	"strings"
)

// header fills in the kernel's header and its function constants.
func (p *parser) header(k *Kernel) {
	end := p.tokens[k.body[1]].End()
	blanks := p.kernelText()
	prototypes := false
	for _, it := range p.items {
		if it.first < k.body[0] && it.kind == otherItem && it.params >= 0 && !it.kernel &&
			it.scope == namespaceScope && p.tokens[it.last].is(";") {
			prototypes = true
		}
		if it.first < k.body[0] || prototypes {
			p.functionConstant(k, it)
		}
	}
	if !prototypes {
		blanks = append(blanks, p.behind(end)...)
	}
	k.Header = p.without(blanks)
}

// span is a piece of the text by offsets, the end excluded.
type span struct{ start, end int }

// kernelText lists what no header keeps: kernels, their instantiations and names for their types,
// Metal's includes and "using namespace metal".
func (p *parser) kernelText() []span {
	var spans []span
	add := func(first, last int) {
		spans = append(spans, span{p.tokens[first].Offset, p.tokens[last].End()})
	}
	makers := p.kernelMacros()
	for _, it := range p.items {
		drop := it.kernel && it.kind != classItem
		if it.kernel && it.kind == otherItem && it.params < 0 {
			drop = false // a variable that is called kernel
		}
		if it.kind == usingItem && p.join(it.first, it.last) == "using namespace metal;" {
			drop = true
		}
		for i := it.first; i <= it.last && !drop && it.kind != functionItem; i++ {
			t := p.tokens[i]
			switch {
			case t.is("decltype") && p.at(i+1).is("(") && p.isKernel(p.at(i+2)): // a name for a kernel's type
				drop = true
			case t.is("(") || t.is("{"):
				i = p.match[i]
			case it.kind == instantiation && t.Kind == Identifier:
				drop = p.isKernel(t)
			case it.kind == otherItem && makers[t.Text] && p.at(i+1).is("("):
				drop = true
			}
		}
		if drop {
			add(it.first, it.last)
		}
	}
	for i, t := range p.all {
		if t.Kind == HeaderName && isMetalHeader(strings.Trim(t.Text, `<>"`)) {
			first := i
			for first > 0 && p.all[first-1].Directive == t.Directive {
				first--
			}
			spans = append(spans, span{p.all[first].Offset, t.End()})
		}
	}
	return spans
}

// isKernel reports whether a token is the name of a kernel.
func (p *parser) isKernel(t Token) bool {
	return slices.ContainsFunc(p.file.Kernels, func(k *Kernel) bool { return t.is(k.Name) })
}

// kernelMacros returns the names of the macros that make kernels or their instantiations.
func (p *parser) kernelMacros() map[string]bool {
	bodies := map[string][]string{}
	for i := range p.all {
		if p.beginsDirective(i) {
			if name, words := p.directive(i); name == "define" && len(words) > 1 {
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

// behind lists what comes behind an offset, but for the #endif lines of conditionals that
// began before it.
func (p *parser) behind(offset int) []span {
	var spans []span
	depth, start := 0, offset
	for i, t := range p.all {
		if t.Offset < offset || !p.beginsDirective(i) {
			continue
		}
		switch name, _ := p.directive(i); name {
		case "if", "ifdef", "ifndef":
			depth++
		case "endif":
			if depth > 0 {
				depth--
				continue
			}
			spans = append(spans, span{start, t.Offset})
			start = p.all[p.directiveEnd(i)-1].End()
		}
	}
	return append(spans, span{start, len(p.text)})
}

// without is the text with these spans blank. Newlines stay, so that lines keep their
// numbers; white space at the end goes.
func (p *parser) without(spans []span) string {
	text := []byte(p.text)
	for _, s := range spans {
		for i := s.start; i < s.end; i++ {
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

// functionConstant notes a declaration such as "constant bool x [[function_constant(0)]];".
func (p *parser) functionConstant(k *Kernel, it item) {
	if it.kind != otherItem {
		return
	}
	for i := it.first; i < it.last; i++ {
		if !p.isAttribute(i) || !p.at(i+2).is("function_constant") || i < it.first+2 {
			continue
		}
		index, ok := p.integer(i+4, p.match[i]-3)
		if !ok {
			index = -1
		}
		var words []int
		for j := it.first; j < i-1; j++ {
			if t := p.tokens[j]; !t.is("constant") && !t.is("const") && !t.is("static") {
				words = append(words, j)
			}
		}
		name := p.tokens[i-1]
		k.Constants = append(k.Constants, FunctionConstant{name.Text, p.element(words), index, p.position(name), name.Line})
		return
	}
}

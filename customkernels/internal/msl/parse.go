package msl

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Parse reads a complete Metal shader file and what it includes: #include "name.h" stands for
// the text of that file, whose path counts from the folder of the file that includes it.
// Each file is read once, as with #pragma once. A shader without a kernel is an error, as is
// everything that a launch could not express; every error but that of opening the file is an
// [*Error] with its place in the file that it is in.
//
// Constructs of C++ compilers that could escape the checker or act before a kernel runs, such as
// assembly and most of __attribute__, are errors.
//
// The text is not preprocessed: branches that the text itself excludes, such as those under "#if 0" or
// "#if __METAL_VERSION__ < 300", are ignored, of other conditionals every branch is read, and a kernel's signature must be spelled out, not made by a macro.
func Parse(fsys fs.FS, filename string) (*File, error) {
	s, err := readShader(fsys, filename)
	if err != nil {
		return nil, err
	}
	items, err := s.items()
	if err != nil {
		return nil, err
	}
	if err := s.forbidden(items); err != nil {
		return nil, err
	}
	p := parser{structure: s, items: items, file: &File{Name: filename}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	return p.file, nil
}

// parser is the state of [Parse].
type parser struct {
	*structure
	items  []item
	file   *File
	macros map[string]string // the object-like macros of one token
}

func (p *parser) parse() error {
	p.collectMacros()
	var prototypes []item
	for _, it := range p.items {
		if !it.kernel {
			continue
		}
		if it.scope == classScope {
			return p.errorAt(it.first, "a kernel cannot be a member of a class; move it out")
		}
		switch it.kind {
		case functionItem:
			if err := p.kernel(it); err != nil {
				return err
			}
		case otherItem:
			if it.params > 0 && p.tokens[it.last].is(";") {
				prototypes = append(prototypes, it)
			}
		}
	}
	for _, it := range prototypes {
		name := p.at(it.params - 1)
		if !slices.ContainsFunc(p.file.Kernels, func(k *Kernel) bool { return k.Name == name.Text }) {
			return p.errorAt(it.params-1, "the kernel %s has no body; add one in braces", name.Text)
		}
	}
	if len(p.file.Kernels) == 0 {
		return p.errorAt(0, "the file has no kernel; write a function such as \"kernel void f(device float* x [[buffer(0)]]) { … }\"")
	}
	for _, k := range p.file.Kernels {
		p.header(k)
	}
	return nil
}

// collectMacros notes the macros that stand for one token, a number or an address space.
func (p *parser) collectMacros() {
	p.macros = map[string]string{}
	for i := range p.all {
		if p.beginsDirective(i) && !p.off[i] {
			if name, words := p.directive(i); name == "define" && len(words) == 2 {
				p.macros[words[0]] = words[1]
			}
		}
	}
}

// kernel reads one kernel function.
func (p *parser) kernel(it item) error {
	k := &Kernel{structure: p.structure, namespaces: it.namespaces, body: [2]int{it.open, it.last}}
	name := p.at(it.params - 1)
	if name.Kind != Identifier {
		return p.errorAt(it.params-1, "the kernel has no name; write \"kernel void name(…)\"")
	}
	k.Name, k.Pos = name.Text, p.position(name)
	for _, other := range p.file.Kernels {
		if other.Name == k.Name {
			return p.errorAt(it.params-1, "the kernel %s is defined twice, first at %s; give each its own name", k.Name, other.Pos)
		}
	}
	if err := p.kernelSpecifiers(k, it); err != nil {
		return err
	}
	if it.header >= 0 {
		if err := p.template(k, it); err != nil {
			return err
		}
	}
	end := p.match[it.params]
	for _, part := range p.split(it.params+1, end) {
		if part[0]+1 == part[1] && p.tokens[part[0]].is("void") && part[1] == end && part[0] == it.params+1 {
			continue
		}
		if err := p.parameter(k, part[0], part[1]); err != nil {
			return err
		}
	}
	if err := p.number(k); err != nil {
		return err
	}
	open := p.tokens[it.open]
	k.Body = p.text[open.End():p.tokens[it.last].Offset]
	k.BodyPos = p.position(open)
	k.BodyPos.Offset++
	k.BodyPos.Column++
	p.file.Kernels = append(p.file.Kernels, k)
	return nil
}

// kernelSpecifiers checks what stands before the name and between ')' and '{'.
func (p *parser) kernelSpecifiers(k *Kernel, it item) error {
	void := false
	read := func(i, end int) error {
		for ; i < end; i++ {
			switch t := p.tokens[i]; {
			case p.isAttribute(i):
				for j := i; j < p.match[i]; j++ {
					if p.tokens[j].is("max_total_threads_per_threadgroup") && p.at(j+1).is("(") {
						n, ok := p.integer(j+2, p.match[j+1]-1)
						if ok && (n < 1 || n > 1024) {
							return p.errorAt(j, "max_total_threads_per_threadgroup needs a number from 1 to 1024")
						}
						k.MaxThreads = n
					}
				}
				i = p.match[i]
			case t.is("void"):
				void = true
			case t.is("__attribute__") && p.at(i+1).is("("):
				i = p.match[i+1]
			case t.is("kernel") || t.is("static") || t.is("inline") || t.is("extern") || t.Kind == String:
			case t.Kind == Identifier && strings.ToUpper(t.Text) == t.Text: // a macro
			default:
				return p.errorAt(i, "%q is not understood before a kernel's name; write \"kernel void %s(…)\"", t.Text, k.Name)
			}
		}
		return nil
	}
	if err := read(it.start, it.params-1); err != nil {
		return err
	}
	if !void {
		return p.errorAt(it.params-1, "the kernel %s must return void", k.Name)
	}
	return read(p.match[it.params]+1, it.open)
}

// integer reads tokens [first, last] as one number, through a macro if need be.
func (p *parser) integer(first, last int) (int, bool) {
	if first != last || first >= len(p.tokens) {
		return 0, false
	}
	text := p.tokens[first].Text
	if m, ok := p.macros[text]; ok {
		text = m
	}
	n, err := strconv.ParseUint(strings.TrimRight(text, "uUlL"), 0, 31)
	return int(n), err == nil
}

// template reads the template parameters of a kernel.
func (p *parser) template(k *Kernel, it item) error {
	if p.at(it.start-1).is(">") && p.skipAngles(it.header, it.start) != it.start {
		return p.errorAt(it.header, "a kernel can have only one list of template parameters")
	}
	for _, part := range p.split(it.header+1, it.start-1) {
		first, end := part[0], part[1]
		equal := end
		for i := first; i < end; i++ {
			if p.tokens[i].is("=") {
				equal = i
				break
			}
		}
		if equal-first < 2 || p.tokens[equal-1].Kind != Identifier {
			return p.errorAt(first, "this template parameter is not understood; use \"typename T\", \"int N\", \"uint N\" or \"bool B\", each with a name")
		}
		name := p.tokens[equal-1]
		parameter := TemplateParameter{Name: name.Text, Type: p.join(first, equal-2)}
		if equal < end {
			parameter.Default = strings.TrimSpace(p.source(equal+1, end-1))
		}
		switch parameter.Type {
		case "typename", "class":
			parameter.Kind = TypeParameter
		case "bool", "const bool":
			parameter.Kind = BoolParameter
		case "uint", "const uint", "uint32_t", "unsigned", "unsigned int":
			parameter.Kind = UintParameter
		case "int", "const int", "int32_t", "short", "ushort", "char", "uchar", "long", "ulong", "size_t",
			"int8_t", "uint8_t", "int16_t", "uint16_t", "int64_t", "uint64_t":
			parameter.Kind = IntParameter
		default:
			return p.errorAt(first, "a template parameter of type %q cannot be given at launch; use typename, int, uint or bool", parameter.Type)
		}
		if slices.ContainsFunc(k.Template, func(o TemplateParameter) bool { return o.Name == name.Text }) {
			return p.errorAt(equal-1, "the template parameter %s occurs twice; rename one", name.Text)
		}
		k.Template = append(k.Template, parameter)
	}
	return nil
}

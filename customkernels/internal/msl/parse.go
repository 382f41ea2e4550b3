package msl

import (
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// Parse reads a complete shader file and the files that it includes. #include "name.h" is replaced by the text of
// that file, whose path is relative to the folder of the including file. Each file is read once, as with #pragma
// once.
//
// A shader without a kernel is an error, and so is a kernel that a launch cannot express. Compiler extensions that let
// a shader escape the checker or run code before a kernel are errors too, such as assembly and most of __attribute__.
// Every error, except a failure to open the file itself, is an [*Error] with its position in the file or in an included
// file.
//
// Parse runs no preprocessor. It leaves out branches that the text itself excludes, such as "#if 0" or "#if
// __METAL_VERSION__ < 300". It reads every branch of other conditionals. A kernel's signature must be spelled out; a
// macro must not produce it.
func Parse(fsys fs.FS, filename string) (*File, error) {
	s, err := readShader(fsys, filename)
	if err != nil {
		return nil, err
	}
	items, err := s.Items()
	if err != nil {
		return nil, err
	}
	if err := s.forbidden(items); err != nil {
		return nil, err
	}
	p := parser{Structure: s, items: items, file: &File{Name: filename}}
	if err := p.parse(); err != nil {
		return nil, err
	}
	for _, k := range p.file.Kernels {
		p.header(k)
	}
	return p.file, nil
}

// ParseNative reads the preprocessed text of a shader file, for running its kernels as Metal would. It accepts what
// MLX's custom kernels cannot express: any template parameter, references to threadgroup memory, arrays of arguments,
// kernels without an output. A kernel that cannot run has a Problem and does not stop the others. A file without a
// kernel is no error.
func ParseNative(s *Structure) (*File, error) {
	items, err := s.Items()
	if err != nil {
		return nil, err
	}
	if err := s.forbidden(items); err != nil {
		return nil, err
	}
	if err := s.reserved(); err != nil {
		return nil, err
	}
	p := parser{Structure: s, items: items, file: &File{Name: s.file}, native: true}
	if err := p.parse(); err != nil {
		return nil, err
	}
	p.instances()
	var all Kernel
	for _, it := range items {
		p.functionConstant(&all, it)
	}
	for _, k := range p.file.Kernels {
		k.Constants = all.Constants
	}
	return p.file, nil
}

// parser is the state of [Parse] and [ParseNative].
type parser struct {
	*Structure
	items  []Item
	file   *File
	macros map[string]string // object-like macros that expand to one token
	native bool              // set by ParseNative
}

func (p *parser) parse() error {
	p.collectMacros()
	var prototypes []Item
	for _, it := range p.items {
		if !it.Kernel {
			continue
		}
		if it.Scope == ClassScope {
			return p.ErrorAt(it.First, "a kernel cannot be a member of a class; move it out")
		}
		switch it.Kind {
		case FunctionItem:
			if err := p.kernel(it); err != nil {
				return err
			}
		case OtherItem:
			if it.Params > 0 && p.Tokens[it.Last].Is(";") {
				prototypes = append(prototypes, it)
			}
		}
	}
	for _, it := range prototypes {
		if p.native {
			break
		}
		name := p.At(it.Params - 1)
		if !slices.ContainsFunc(p.file.Kernels, func(k *Kernel) bool { return k.Name == name.Text }) {
			return p.ErrorAt(it.Params-1, "the kernel %s has no body; add one in braces", name.Text)
		}
	}
	if len(p.file.Kernels) == 0 && !p.native {
		return p.ErrorAt(0, "the file has no kernel; write a function such as \"kernel void f(device float* x "+
			"[[buffer(0)]]) { … }\"")
	}
	return nil
}

// collectMacros records the macros that expand to one token, such as a number or an address space.
func (p *parser) collectMacros() {
	p.macros = map[string]string{}
	for i := range p.All {
		if p.BeginsDirective(i) && !p.Excluded[i] {
			if name, words := p.Directive(i); name == "define" && len(words) == 2 {
				p.macros[words[0]] = words[1]
			}
		}
	}
}

// kernel adds one kernel function to the file. A native file keeps a kernel with a problem.
func (p *parser) kernel(it Item) error {
	k := &Kernel{structure: p.Structure, Namespaces: it.Namespaces, body: [2]int{it.Open, it.Last}}
	name := p.At(it.Params - 1)
	if name.Kind != Identifier {
		return p.ErrorAt(it.Params-1, "the kernel has no name; write \"kernel void name(…)\"")
	}
	k.Name, k.Pos, k.HostName = name.Text, p.Position(name), name.Text
	for _, other := range p.file.Kernels {
		if other.Name == k.Name && !p.native {
			return p.ErrorAt(it.Params-1, "the kernel %s is defined twice, first at %s; give each its own name", k.Name,
				other.Pos)
		}
	}
	err := p.signature(k, it)
	if err != nil && !p.native {
		return err
	}
	k.Problem = err
	p.file.Kernels = append(p.file.Kernels, k)
	return nil
}

// signature reads the kernel of an item.
func (p *parser) signature(k *Kernel, it Item) error {
	if err := p.kernelSpecifiers(k, it); err != nil {
		return err
	}
	if it.Header >= 0 {
		if err := p.template(k, it); err != nil {
			return err
		}
	}
	end := p.Match[it.Params]
	for _, part := range p.Split(it.Params+1, end) {
		if part[0]+1 == part[1] && p.Tokens[part[0]].Is("void") && part[1] == end && part[0] == it.Params+1 {
			continue
		}
		if err := p.parameter(k, part[0], part[1]); err != nil {
			return err
		}
	}
	if err := p.number(k); err != nil {
		return err
	}
	open := p.Tokens[it.Open]
	k.Body = p.Text[open.End():p.Tokens[it.Last].Offset]
	k.BodyPos = p.Position(open)
	k.BodyPos.Offset++
	k.BodyPos.Column++
	return nil
}

// kernelSpecifiers checks the tokens before the name and those between ')' and '{'.
func (p *parser) kernelSpecifiers(k *Kernel, it Item) error {
	void := false
	read := func(i, end int) error {
		for ; i < end; i++ {
			switch t := p.Tokens[i]; {
			case p.IsAttribute(i):
				for j := i; j < p.Match[i]; j++ {
					if p.native && p.Tokens[j].Is("host_name") {
						k.HostName = p.hostName(j)
					}
					if p.Tokens[j].Is("max_total_threads_per_threadgroup") && p.At(j+1).Is("(") {
						n, ok := p.integer(j+2, p.Match[j+1]-1)
						if ok && (n < 1 || n > 1024) {
							return p.ErrorAt(j, "max_total_threads_per_threadgroup is %d; it must be from 1 to 1024", n)
						}
						k.MaxThreads = n
					}
				}
				i = p.Match[i]
			case t.Is("void"):
				void = true
			case t.Is("__attribute__") && p.At(i+1).Is("("):
				i = p.Match[i+1]
			case t.Is("kernel") || t.Is("static") || t.Is("inline") || t.Is("extern") || t.Kind == String:
			case t.Is("constexpr") && p.native:
			case t.Kind == Identifier && strings.ToUpper(t.Text) == t.Text: // a macro
			default:
				return p.ErrorAt(i, "unexpected %q in a kernel's declaration; write \"kernel void %s(…)\"", t.Text, k.Name)
			}
		}
		return nil
	}
	if err := read(it.Start, it.Params-1); err != nil {
		return err
	}
	if !void {
		return p.ErrorAt(it.Params-1, "the kernel %s must return void", k.Name)
	}
	return read(p.Match[it.Params]+1, it.Open)
}

// integer returns the number at tokens [first, last], which may be a macro. ok is false unless it is a single
// integer.
func (p *parser) integer(first, last int) (int, bool) {
	if first != last || first >= len(p.Tokens) {
		return 0, false
	}
	text := p.Tokens[first].Text
	if m, ok := p.macros[text]; ok {
		text = m
	}
	n, err := strconv.ParseUint(strings.TrimRight(text, "uUlL"), 0, 31)
	return int(n), err == nil
}

// template reads the template parameters of a kernel.
func (p *parser) template(k *Kernel, it Item) error {
	if p.At(it.Start-1).Is(">") && p.SkipAngles(it.Header, it.Start) != it.Start {
		return p.ErrorAt(it.Header, "a kernel can have only one list of template parameters")
	}
	for _, part := range p.Split(it.Header+1, it.Start-1) {
		if p.native && !p.launchable(part) {
			k.Template = append(k.Template, p.otherParameter(part))
			continue
		}
		first, end := part[0], part[1]
		equal := end
		for i := first; i < end; i++ {
			if p.Tokens[i].Is("=") {
				equal = i
				break
			}
		}
		if equal-first < 2 || p.Tokens[equal-1].Kind != Identifier {
			return p.ErrorAt(first, "unsupported template parameter; use \"typename T\", \"int N\", \"uint N\" or "+
				"\"bool B\", each with a name")
		}
		name := p.Tokens[equal-1]
		parameter := TemplateParameter{Name: name.Text, Type: p.Join(first, equal-2)}
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
			return p.ErrorAt(first, "a template parameter of type %q cannot be given at launch; use typename, int, "+
				"uint or bool", parameter.Type)
		}
		if slices.ContainsFunc(k.Template, func(o TemplateParameter) bool { return o.Name == name.Text }) {
			return p.ErrorAt(equal-1, "the template parameter %s occurs twice; rename one", name.Text)
		}
		k.Template = append(k.Template, parameter)
	}
	return nil
}

package msl

import (
	"slices"
	"strings"
)

// Instance is an explicit instantiation of a kernel template:
//
//	template [[host_name("copy_float")]] [[kernel]] decltype(copy<float>) copy<float>;
type Instance struct {
	Name      string // of [[host_name("…")]]; empty if there is none
	Kernel    *Kernel
	Arguments []string
	Pos       Position
}

// instances adds the explicit instantiations of the file's kernel templates.
func (p *parser) instances() {
	templates := map[string]*Kernel{}
	for _, k := range p.file.Kernels {
		if len(k.Template) > 0 {
			templates[k.Name] = k
		}
	}
	for _, it := range p.items {
		if it.Kind != Instantiation {
			continue
		}
		in, last := Instance{Pos: p.Position(p.Tokens[it.First])}, -1
		for i := it.First; i < it.Last; i++ {
			switch t := p.Tokens[i]; {
			case t.Is("host_name"):
				in.Name = p.hostName(i)
			case templates[t.Text] != nil && p.At(i+1).Is("<"):
				in.Kernel, last = templates[t.Text], i
			}
		}
		if last < 0 {
			continue
		}
		for _, part := range p.Split(last+2, p.SkipAngles(last+1, it.Last)-1) {
			in.Arguments = append(in.Arguments, p.Join(part[0], part[1]-1))
		}
		p.file.Instances = append(p.file.Instances, in)
	}
}

// hostName returns the name in the attribute host_name("…") at token i, which may have several literals.
func (p *parser) hostName(i int) string {
	name := ""
	for i++; i < len(p.Tokens) && !p.Tokens[i].Is(")"); i++ {
		if t := p.Tokens[i]; t.Kind == String {
			name += strings.Trim(t.Text, `"`)
		}
	}
	return name
}

// launchable reports whether the template parameter in a token range is a plain type, integer or bool with a name.
func (p *parser) launchable(part [2]int) bool {
	end := part[1]
	if i := slices.IndexFunc(p.Tokens[part[0]:end], func(t Token) bool { return t.Is("=") }); i >= 0 {
		end = part[0] + i
	}
	if end-part[0] < 2 || p.Tokens[end-1].Kind != Identifier {
		return false
	}
	kind := p.Join(part[0], end-2)
	return kind == "typename" || kind == "class" || slices.Contains(launchableTypes, strings.TrimPrefix(kind, "const "))
}

// launchableTypes are the types of template parameters whose arguments are numbers or bools.
var launchableTypes = []string{
	"bool", "uint", "uint32_t", "unsigned", "unsigned int", "int", "int32_t", "short", "ushort", "char", "uchar", "long",
	"ulong", "size_t", "int8_t", "uint8_t", "int16_t", "uint16_t", "int64_t", "uint64_t",
}

// otherParameter returns a template parameter of any form, such as "void (*f)(device const T*)" or "typename... Ts".
func (p *parser) otherParameter(part [2]int) TemplateParameter {
	t := TemplateParameter{Kind: OtherParameter, Type: p.JoinSpaced(part[0], part[1]-1)}
	for i := part[0]; i < part[1]; i++ {
		switch {
		case p.Tokens[i].Is("="):
			t.Default = strings.TrimSpace(p.source(i+1, part[1]-1))
			return t
		case p.Tokens[i].Is("(") && (p.At(i+1).Is("*") || p.At(i+1).Is("&")):
			if p.At(i+2).Kind == Identifier {
				t.Name = p.At(i + 2).Text
			}
			i = p.Match[p.Match[i]+1]
		case p.Tokens[i].Is("<"):
			i = max(i, p.SkipAngles(i, part[1])-1)
		case p.Tokens[i].Kind == Identifier && i > part[0]:
			t.Name = p.Tokens[i].Text
		}
	}
	return t
}

// Find returns the kernel or instantiation with a host name, and the template arguments of an instantiation. The empty
// name selects the only one of a file.
func (f *File) Find(name string) (k *Kernel, arguments []string, err error) {
	if name == "" {
		if names := f.Names(); len(names) == 1 {
			name = names[0]
		}
	}
	for _, in := range f.Instances {
		if in.Name == name && name != "" {
			return in.Kernel, in.Arguments, in.Kernel.Problem
		}
	}
	for _, k := range f.Kernels {
		if k.HostName == name || k.Name == name {
			return k, nil, k.Problem
		}
	}
	k, err = f.Kernel(name)
	return k, nil, err
}

// Names returns the names by which a launch can choose: the host names of plain kernels and of instantiations, and the
// names of templates without one.
func (f *File) Names() []string {
	var names []string
	for _, k := range f.Kernels {
		named := false
		for _, in := range f.Instances {
			if in.Kernel == k && in.Name != "" {
				names, named = append(names, in.Name), true
			}
		}
		if !named {
			names = append(names, k.HostName)
		}
	}
	return names
}

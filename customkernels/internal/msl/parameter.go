package msl

import (
	"slices"
	"strings"
)

// parameter reads one argument of a kernel, the tokens [first, end).
func (p *parser) parameter(k *Kernel, first, end int) error {
	if first >= end {
		return p.ErrorAt(first, "an argument is missing here; remove the comma")
	}
	var (
		attributes         [][2]int // token range [first, end) of each attribute; first is its name
		spaces             []Token
		words              []int // tokens of the element type and the name
		pointer, reference bool
		isConst            bool
		volatile, coherent bool
	)
	for i := first; i < end; i++ {
		t := p.Tokens[i]
		switch {
		case p.IsAttribute(i):
			attributes = append(attributes, p.Split(i+2, p.Match[i]-1)...)
			i = p.Match[i]
		case IsAddressSpace(t.Text):
			spaces = append(spaces, t)
		case IsAddressSpace(p.macros[t.Text]) && t.Kind == Identifier:
			t.Text = p.macros[t.Text]
			spaces = append(spaces, t)
		case t.Is("const"):
			isConst = isConst || !pointer && !reference
		case t.Is("restrict") || t.Is("__restrict") || t.Is("__restrict__"):
		case t.Is("volatile"):
			volatile = volatile || !pointer && !reference
		case t.Is("coherent"):
			coherent = true
			if p.At(i + 1).Is("(") {
				i = p.Match[i+1]
			}
		case t.Is("*") || t.Is("&"):
			if pointer || reference {
				return p.ErrorAt(i, "a pointer to a pointer cannot be a kernel's argument; declare an argument for "+
					"each buffer")
			}
			pointer, reference = t.Is("*"), t.Is("&")
		case t.Is("="):
			return p.ErrorAt(i, "a kernel's argument cannot have a default value; remove it")
		case t.Is("[") && p.native && !pointer && !reference && len(words) > 1:
			pointer, i = true, p.Match[i]
		case t.Is("["):
			return p.ErrorAt(i, "an array of arguments is not supported; declare an argument for each buffer")
		case t.Is("<"):
			next := p.SkipAngles(i, end)
			if next == i {
				return p.ErrorAt(i, "these template arguments do not end; add '>'")
			}
			for ; i < next; i++ {
				words = append(words, i)
			}
			i--
		case t.Kind == Identifier || t.Is("::"):
			words = append(words, i)
		default:
			return p.ErrorAt(i, "unexpected %q in a kernel's argument; write \"device float* name [[buffer(0)]]\"",
				t.Text)
		}
	}
	if err := p.unsupported(words, attributes); err != nil {
		return err
	}
	if len(words) < 2 || p.Tokens[words[len(words)-1]].Kind != Identifier {
		return p.ErrorAt(first, "this argument has no type or no name; write \"device float* name [[buffer(0)]]\"")
	}
	name := words[len(words)-1]
	if err := p.unusedName(k, name); err != nil {
		return err
	}
	element := p.element(words[:len(words)-1])
	if p.native && !pointer && !reference {
		if ok, err := p.pixelArgument(k, name, element, attributes); ok {
			return err
		}
	}
	if pointer || reference {
		b := Buffer{
			Name: p.Tokens[name].Text, Element: element, Reference: reference, Const: isConst,
			Volatile: volatile, Coherent: coherent,
		}
		return p.bufferArgument(k, name, b, spaces, attributes)
	}
	return p.positionArgument(k, name, element, attributes)
}

// unsupported rejects arguments that only graphics functions or argument buffers have.
func (p *parser) unsupported(words []int, attributes [][2]int) error {
	for _, w := range words {
		text := p.Tokens[w].Text
		if w == words[len(words)-1] {
			break
		}
		if p.native && (isTexture(text) || text == "sampler") {
			if text == "sampler" && len(words) == 2 || w == words[0] || w == words[2] && p.Tokens[words[0]].Is("metal") {
				return nil
			}
			return p.ErrorAt(w, "arrays and references of textures and samplers are not supported; declare an argument for each")
		}
		for _, prefix := range []string{"texture", "depth2d", "depthcube"} {
			if strings.HasPrefix(text, prefix) {
				if p.native {
					return p.ErrorAt(w, "arguments of type %s are not supported; use one of %s", text, joined(textureKinds))
				}
				return p.ErrorAt(w, "texture arguments are not supported; pass the pixels as a device buffer")
			}
		}
		switch text {
		case "sampler":
			return p.ErrorAt(w, "sampler arguments are not supported; index a device buffer instead")
		case "visible_function_table", "intersection_function_table", "acceleration_structure",
			"instance_acceleration_structure", "primitive_acceleration_structure", "command_buffer", "imageblock":
			return p.ErrorAt(w, "arguments of type %s are not supported; use device buffers only", text)
		}
	}
	for _, a := range attributes {
		switch t := p.Tokens[a[0]]; t.Text {
		case "texture", "sampler":
			if p.native {
				return p.ErrorAt(a[0], "the type of this %s argument is an alias, which is not supported; write it out", t.Text)
			}
			return p.ErrorAt(a[0], "%s arguments are not supported; pass the pixels as a device buffer", t.Text)
		case "stage_in":
			return p.ErrorAt(a[0], "stage_in arguments are not supported; pass the data as a device buffer")
		}
	}
	return nil
}

// unusedName rejects a second argument with the same name.
func (p *parser) unusedName(k *Kernel, name int) error {
	text := p.Tokens[name].Text
	used := k.HasArgument(text) ||
		slices.ContainsFunc(k.Template, func(t TemplateParameter) bool { return t.Name == text })
	if used {
		return p.ErrorAt(name, "the name %s occurs twice in the signature; rename one", text)
	}
	return nil
}

// element returns an element type as written, with single spaces.
func (p *Structure) element(words []int) string {
	var b strings.Builder
	for n, w := range words {
		t := p.Tokens[w]
		if n > 0 {
			previous := p.Tokens[words[n-1]]
			if t.Kind != Punct && previous.Kind != Punct || previous.Is(",") {
				b.WriteByte(' ')
			}
		}
		b.WriteString(t.Text)
	}
	text := strings.TrimPrefix(b.String(), "struct ")
	text = strings.TrimPrefix(text, "typename ")
	return strings.TrimPrefix(text, "metal::")
}

// bufferArgument adds a pointer or reference argument. b holds everything but its position, address space and index.
func (p *parser) bufferArgument(k *Kernel, name int, b Buffer, spaces []Token, attributes [][2]int) error {
	text := b.Name
	if len(spaces) == 0 {
		return p.ErrorAt(name, "the argument %s has no address space; write device, constant or threadgroup before "+
			"its type", text)
	}
	if len(spaces) > 1 {
		return Errorf(p.Position(spaces[1]), "the argument %s has two address spaces; keep one", text)
	}
	space, index := spaces[0].Text, -1
	for _, a := range attributes {
		kind := p.Tokens[a[0]].Text
		switch {
		case kind == "buffer" && space != "threadgroup", kind == "threadgroup" && space == "threadgroup":
			n, ok := p.integer(a[0]+2, a[1]-2)
			if !ok && !p.native {
				return p.ErrorAt(a[0], "[[%s(n)]] needs a number for n", kind)
			}
			if ok {
				index = n
			}
		case kind == "function_constant", kind == "maybe_unused":
		default:
			return p.ErrorAt(a[0], "the attribute %s does not fit the %s argument %s; use [[%s(n)]]", kind, space, text,
				map[bool]string{true: "threadgroup", false: "buffer"}[space == "threadgroup"])
		}
	}
	switch {
	case space == "thread":
		return Errorf(p.Position(spaces[0]), "a kernel's argument cannot be in thread memory; use device or constant")
	case space == "threadgroup" && b.Reference && !p.native:
		return Errorf(p.Position(spaces[0]), "a threadgroup argument must be a pointer")
	case space == "threadgroup":
		k.Threadgroup = append(k.Threadgroup, ThreadgroupArgument{
			text, p.Position(p.Tokens[name]), b.Element, index, b.Reference,
		})
	default:
		b.Pos, b.Space, b.Index = p.Position(p.Tokens[name]), AddressSpace(space), index
		b.Const = b.Const || b.Space == Constant
		b.Atomic = strings.HasPrefix(b.Element, "atomic<") || strings.HasPrefix(b.Element, "atomic_")
		k.Buffers = append(k.Buffers, &b)
	}
	return nil
}

// positionArgument adds an argument that is passed by value, which must be a thread position.
func (p *parser) positionArgument(k *Kernel, name int, element string, attributes [][2]int) error {
	text := p.Tokens[name].Text
	for _, a := range attributes {
		attribute := p.Tokens[a[0]].Text
		if attribute == "maybe_unused" {
			continue
		}
		mlx, known := PositionTypes[attribute]
		if !known {
			return p.ErrorAt(a[0], "unsupported attribute %s; use a buffer or a thread "+
				"position such as [[thread_position_in_grid]]", attribute)
		}
		element = normalUint(element)
		switch element {
		case "uint", "ushort":
		case "uint2", "uint3", "ushort2", "ushort3":
			if mlx == "uint" {
				return p.ErrorAt(a[0], "%s is a single number; declare %s as uint", attribute, text)
			}
		default:
			return p.ErrorAt(name, "%s has the type %s; a thread position is uint, uint2, uint3 or ushort, ushort2, "+
				"ushort3", text, element)
		}
		k.Attributes = append(k.Attributes, Attribute{text, p.Position(p.Tokens[name]), element, attribute})
		return nil
	}
	return p.ErrorAt(name, "the argument %s is passed by value; make it \"constant %s& %s [[buffer(n)]]\", or give "+
		"it a thread-position attribute", text, element, text)
}

// normalUint returns Metal's short name of an unsigned type of 32 or 16 bits, or of a vector of it: uint for uint32_t,
// uint2 for vec<uint, 2>. It returns other types unchanged.
func normalUint(text string) string {
	switch text {
	case "unsigned", "unsigned int", "uint32_t":
		return "uint"
	case "unsigned short", "uint16_t":
		return "ushort"
	}
	if inner, ok := strings.CutPrefix(text, "vec<"); ok {
		parts := strings.Split(strings.TrimSuffix(inner, ">"), ",")
		if len(parts) == 2 {
			return normalUint(parts[0]) + strings.TrimSpace(parts[1])
		}
	}
	return text
}

// number assigns a slot to every buffer and marks the buffers that MLX adds itself. Two buffers with one index and a
// kernel without an output are errors.
func (p *parser) number(k *Kernel) error {
	used := map[int]*Buffer{}
	for _, b := range k.Buffers {
		if b.Index < 0 || b.Texture != "" {
			continue
		}
		if other := used[b.Index]; other != nil {
			return Errorf(b.Pos, "%s and %s both have [[buffer(%d)]]; give each its own number", other.Name, b.Name,
				b.Index)
		}
		used[b.Index], b.Slot = b, b.Index
	}
	free := 0
	for _, b := range k.Buffers {
		if b.Index < 0 && b.Texture == "" {
			for used[free] != nil {
				free++
			}
			used[free], b.Slot = b, free
		}
	}
	for _, b := range k.Buffers {
		for suffix, types := range ImplicitTypes {
			input, found := strings.CutSuffix(b.Name, suffix)
			if !found || b.Space != Constant {
				continue
			}
			owner := slices.IndexFunc(k.Buffers, func(o *Buffer) bool { return o.Name == input && !o.Writable() })
			if owner >= 0 && b.Reference == (suffix == "_ndim") && slices.Contains(types, b.Element) {
				b.Implicit = input
			}
		}
	}
	if len(k.Outputs()) == 0 && !p.native {
		return Errorf(k.Pos, "the kernel %s has no output; give it a device pointer that is not const", k.Name)
	}
	return p.numberTextures(k)
}

// ImplicitTypes maps the suffixes of the arguments that MLX adds for an input to their element types.
var ImplicitTypes = map[string][]string{
	"_shape":   {"int", "int32_t"},
	"_strides": {"int64_t", "long"},
	"_ndim":    {"int", "int32_t"},
}

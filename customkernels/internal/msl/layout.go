package msl

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Layout is a structure in memory, as Metal lays it out.
type Layout struct {
	Size, Align int
	Fields      []Field
}

// A Field is a member of a structure, or of a structure within it: numbers, a pointer, a texture or a sampler.
type Field struct {
	Name   string // such as size.width or inner[1].x
	Type   string // of one element, as written
	Offset int    // in bytes
	Size   int
	// Element is the type of each number, such as "float", and Offsets are the places of the numbers. Padding lies between
	// the numbers of float3 elements. Both are empty for a pointer, texture or sampler.
	Element string
	Offsets []int
	// Buffer is set for a pointer and a texture. It has no name.
	Buffer *Buffer
}

// Pointer reports whether the field refers to a buffer or texture.
func (f Field) Pointer() bool { return f.Buffer != nil }

// Sampler reports whether the field is a sampler.
func (f Field) Sampler() bool { return f.Element == "" && f.Buffer == nil }

// FieldAt returns the field that contains a byte. ok is false for padding.
func (l *Layout) FieldAt(offset int) (f Field, ok bool) {
	for _, f := range l.Fields {
		if offset >= f.Offset && offset < f.Offset+f.Size {
			return f, true
		}
	}
	return Field{}, false
}

// The limits of a structure's layout, which keep the cost of a hostile text low.
const (
	maxFields = 4096
	maxDepth  = 16
)

// layouts computes the layouts of the structures of a text.
type layouts struct {
	*Structure
	items []Item
	known map[string]memoryType // structures
}

// Layout returns the layout of a structure of the text, which its name or an alias names.
func (s *Structure) Layout(items []Item, name string) (*Layout, error) {
	w := layouts{s, items, map[string]memoryType{}}
	t, err := w.typeOf(name, 0)
	if err != nil {
		return nil, err
	}
	if t.fields == nil {
		return nil, fmt.Errorf("%s is not a structure with fields: give its numbers", name)
	}
	return &Layout{t.size, t.align, t.fields}, nil
}

// memoryType is the layout of a type.
type memoryType struct {
	size, align int
	element     string  // of a number or vector
	lanes       []int   // offsets of the numbers
	fields      []Field // of a structure
	buffer      *Buffer // of a pointer or texture
	sampler     bool
}

var scalarSizes = map[string]int{
	"bool": 1, "char": 1, "uchar": 1, "int8_t": 1, "uint8_t": 1, "signed char": 1, "unsigned char": 1,
	"short": 2, "ushort": 2, "int16_t": 2, "uint16_t": 2, "unsigned short": 2, "half": 2, "bfloat": 2,
	"float16_t": 2, "bfloat16_t": 2,
	"int": 4, "uint": 4, "int32_t": 4, "uint32_t": 4, "unsigned": 4, "unsigned int": 4, "float": 4,
	"long": 8, "ulong": 8, "int64_t": 8, "uint64_t": 8, "size_t": 8, "ptrdiff_t": 8, "unsigned long": 8,
}

var (
	vectorType   = regexp.MustCompile(`^(packed_|vector_|simd_)?([a-z]+)([234])$`)
	vectorOf     = regexp.MustCompile(`^(packed_)?vec<(.+), ?([234])>$`)
	matrixType   = regexp.MustCompile(`^(float|half)([234])x([234])$`)
	arrayType    = regexp.MustCompile(`^array<(.+), ?(\w+)>$`)
	atomicType   = regexp.MustCompile(`^(?:atomic_([a-z]+)|_?atomic<(.+)>)$`)
	handleSize   = 8 // of a pointer, texture or sampler
	unsizedTypes = "the checker lays out numbers, vectors, matrices, enumerations, arrays, structures, pointers, textures and samplers"
)

// typeOf returns the layout of a type.
func (w layouts) typeOf(name string, depth int) (memoryType, error) {
	name = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(name), "struct "), "metal::")
	if depth > maxDepth {
		return memoryType{}, fmt.Errorf("the type %s is nested more than %d deep", name, maxDepth)
	}
	if n := scalarSizes[name]; n > 0 {
		return vector(name, n, 1, true), nil
	}
	if m := vectorType.FindStringSubmatch(name); m != nil && scalarSizes[m[2]] > 0 {
		return vector(m[2], scalarSizes[m[2]], int(m[3][0]-'0'), m[1] == "packed_"), nil
	}
	if m := vectorOf.FindStringSubmatch(name); m != nil && scalarSizes[m[2]] > 0 {
		return vector(m[2], scalarSizes[m[2]], int(m[3][0]-'0'), m[1] != ""), nil
	}
	if m := matrixType.FindStringSubmatch(name); m != nil {
		return repeat(vector(m[1], scalarSizes[m[1]], int(m[3][0]-'0'), false), int(m[2][0]-'0')), nil
	}
	if m := atomicType.FindStringSubmatch(name); m != nil {
		return w.typeOf(m[1]+m[2], depth+1)
	}
	if kind, component, access, ok := TextureType(name); ok {
		readOnly := access == "read" || access == "sample"
		return handle(&Buffer{Space: Device, Const: readOnly, Element: component, Texture: kind}), nil
	}
	if name == "sampler" {
		return memoryType{size: handleSize, align: handleSize, sampler: true}, nil
	}
	if m := arrayType.FindStringSubmatch(name); m != nil {
		n, err := w.length(m[2])
		if err != nil {
			return memoryType{}, err
		}
		t, err := w.typeOf(m[1], depth+1)
		if err != nil {
			return t, err
		}
		return w.array(t, []int{n})
	}
	return w.declaredType(name[strings.LastIndex(name, ":")+1:], depth)
}

// vector returns a vector of n numbers. Three lanes of one that is not packed have the size of four.
func vector(element string, size, n int, packed bool) memoryType {
	t := memoryType{size: size * n, align: size, element: element}
	for i := range n {
		t.lanes = append(t.lanes, i*size)
	}
	if !packed {
		t.size = size * (n + n%2)
		t.align = t.size
	}
	return t
}

// repeat returns n successive numbers or vectors.
func repeat(t memoryType, n int) memoryType {
	lanes := t.lanes
	t.lanes = nil
	for i := range n {
		for _, at := range lanes {
			t.lanes = append(t.lanes, i*t.size+at)
		}
	}
	t.size *= n
	return t
}

func handle(b *Buffer) memoryType { return memoryType{size: handleSize, align: handleSize, buffer: b} }

// array returns an array of a type.
func (w layouts) array(t memoryType, dimensions []int) (memoryType, error) {
	for _, n := range slices.Backward(dimensions) {
		if n < 1 || n > maxFields || n*max(len(t.lanes), len(t.fields), 1) > maxFields {
			return t, fmt.Errorf("an array of %d elements has more than %d numbers or fields", n, maxFields)
		}
		if t.element != "" {
			t = repeat(t, n)
			continue
		}
		all := memoryType{size: n * t.size, align: t.align}
		for i := range n {
			all.fields = append(all.fields, t.members(fmt.Sprintf("[%d]", i), "", i*t.size)...)
		}
		t = all
	}
	return t, nil
}

// members returns the fields of a member of this type, whose name precedes theirs.
func (t memoryType) members(name, written string, offset int) []Field {
	if t.fields == nil {
		f := Field{Name: name, Type: written, Offset: offset, Size: t.size, Element: t.element, Buffer: t.buffer}
		for _, at := range t.lanes {
			f.Offsets = append(f.Offsets, offset+at)
		}
		return []Field{f}
	}
	var list []Field
	for _, f := range t.fields {
		if !strings.HasPrefix(f.Name, "[") {
			f.Name = "." + f.Name
		}
		f.Name, f.Offset, f.Offsets = name+f.Name, f.Offset+offset, slices.Clone(f.Offsets)
		if f.Type == "" {
			f.Type = written
		}
		for i := range f.Offsets {
			f.Offsets[i] += offset
		}
		list = append(list, f)
	}
	return list
}

// declaredType returns the layout of a structure, enumeration or alias of the text.
func (w layouts) declaredType(name string, depth int) (memoryType, error) {
	for _, it := range w.items {
		if it.Scope != NamespaceScope {
			continue
		}
		first, end := it.Start, it.Last
		if w.At(first).Is("typedef") {
			first++
		}
		aliased := w.At(it.Start).Is("typedef") && w.At(end-1).Is(name)
		switch {
		case it.Kind == ClassItem && (aliased || w.tagged(it, name)):
			return w.class(it, name, depth)
		case w.At(first).Is("enum") && (aliased || slices.ContainsFunc(w.Tokens[first:min(first+4, end)],
			func(t Token) bool { return t.Is(name) })):
			return w.enumeration(first, end, depth)
		case w.At(first).Is("using") && w.At(first+1).Is(name) && w.At(first+2).Is("="):
			return w.typeOf(w.Join(first+3, end-1), depth+1)
		case it.Kind == OtherItem && aliased && it.Params < 0:
			return w.typeOf(w.Join(first, end-2), depth+1)
		}
	}
	return memoryType{}, fmt.Errorf("the layout of the type %s is unknown: %s", name, unsizedTypes)
}

// tagged reports whether a class has a name.
func (w layouts) tagged(it Item, name string) bool {
	for i := it.Start; i < it.Open && !w.Tokens[i].Is(":"); i++ {
		if w.Tokens[i].Is(name) {
			return true
		}
	}
	return false
}

// enumeration returns the layout of an enumeration, which is an int unless it names another type.
func (w layouts) enumeration(first, end, depth int) (memoryType, error) {
	for i := first; i < end && !w.Tokens[i].Is("{"); i++ {
		if w.Tokens[i].Is(":") {
			open := i
			for open < end && !w.Tokens[open].Is("{") {
				open++
			}
			return w.typeOf(w.Join(i+1, open-1), depth+1)
		}
	}
	return vector("int", 4, 1, true), nil
}

// class returns the layout of a structure.
func (w layouts) class(it Item, name string, depth int) (memoryType, error) {
	for i := it.Start; i < it.Open; i++ {
		if t := w.Tokens[i]; t.Is("union") || t.Is(":") || t.Is("alignas") || t.Is("__attribute__") {
			return memoryType{}, fmt.Errorf("%s is a structure with %q, whose layout is unknown", name, t.Text)
		}
	}
	if it.Header >= 0 {
		return memoryType{}, fmt.Errorf("%s is a template, whose layout is unknown", name)
	}
	if t, ok := w.known[name]; ok {
		return t, nil
	}
	t := memoryType{align: 1, fields: []Field{}}
	scope := 0
	for _, m := range w.items {
		if m.Scope != ClassScope || m.First <= it.Open || m.Last >= w.Match[it.Open] {
			continue
		}
		if scope == 0 {
			scope = m.ScopeID
		}
		if m.ScopeID != scope || m.Kind == FunctionItem || m.Params >= 0 {
			continue
		}
		if m.Kind == ClassItem {
			return t, fmt.Errorf("%s contains a definition of a structure, whose layout is unknown", name)
		}
		if err := w.member(&t, m, depth); err != nil {
			return t, err
		}
	}
	t.size = max((t.size+t.align-1)/t.align*t.align, 1)
	w.known[name] = t
	return t, nil
}

// member adds the fields of a declaration such as "float a, b[4];".
func (w layouts) member(t *memoryType, it Item, depth int) error {
	switch first := w.Tokens[it.Start]; {
	case first.Is("static"), first.Is("using"), first.Is("typedef"), first.Is("friend"), first.Is("enum"),
		first.Is("static_assert"):
		return nil
	}
	var words []int // tokens of the type
	var b Buffer
	pointer := false
	for _, part := range w.Split(it.Start, it.Last) {
		name, dimensions := -1, []int(nil)
		for i := part[0]; i < part[1]; i++ {
			switch tok := w.Tokens[i]; {
			case w.IsAttribute(i):
				i = w.Match[i]
			case tok.Is("="), tok.Is("{"):
				i = part[1]
			case tok.Is(":"), tok.Is("alignas"), tok.Is("__attribute__"), tok.Is("&"):
				return fmt.Errorf("a member with %q has an unknown layout: give the structure's numbers", tok.Text)
			case tok.Is("["):
				n, err := w.length(w.Join(i+1, w.Match[i]-1))
				if err != nil {
					return err
				}
				dimensions, i = append(dimensions, n), w.Match[i]
			case tok.Is("*"):
				pointer = true
			case tok.Is("const"):
				b.Const = b.Const || !pointer
			case tok.Is("volatile"), tok.Is("mutable"), tok.Is("restrict"), tok.Is("coherent"):
			case IsAddressSpace(tok.Text):
				b.Space = AddressSpace(tok.Text)
			case tok.Is("<"):
				if name >= 0 {
					words, name = append(words, name), -1
				}
				next := max(w.SkipAngles(i, part[1]), i+1)
				for ; i < next; i++ {
					words = append(words, i)
				}
				i--
			default:
				if name >= 0 && part[0] == it.Start {
					words = append(words, name)
				}
				name = i
			}
		}
		if name < 0 || len(words) == 0 {
			return fmt.Errorf("the member %q has no type or no name", w.Join(part[0], part[1]-1))
		}
		if err := w.declarator(t, w.Tokens[name].Text, w.element(words), b, pointer, dimensions, depth); err != nil {
			return err
		}
	}
	return nil
}

// declarator adds the fields of one declarator.
func (w layouts) declarator(
	t *memoryType, name, element string, b Buffer, pointer bool, dimensions []int, depth int,
) error {
	member := handle(&b)
	written := element
	if pointer {
		if b.Space != Device && b.Space != Constant {
			return fmt.Errorf("the pointer %s has the address space %q; it must be device or constant", name, b.Space)
		}
		b.Element, b.Const = element, b.Const || b.Space == Constant
		written = fmt.Sprintf("%s %s*", b.Space, element)
	} else {
		var err error
		if member, err = w.typeOf(element, depth+1); err != nil {
			return fmt.Errorf("the member %s: %w", name, err)
		}
	}
	member, err := w.array(member, dimensions)
	if err != nil {
		return fmt.Errorf("the member %s: %w", name, err)
	}
	t.size = (t.size + member.align - 1) / member.align * member.align
	t.fields = append(t.fields, member.members(name, written, t.size)...)
	t.size += member.size
	t.align = max(t.align, member.align)
	if len(t.fields) > maxFields {
		return fmt.Errorf("the structure has more than %d fields", maxFields)
	}
	return nil
}

// length returns the length of an array: a number, or a constant of the text.
func (w layouts) length(text string) (int, error) {
	if n, err := strconv.ParseUint(strings.TrimRight(text, "uUlL"), 0, 31); err == nil {
		return int(n), nil
	}
	for i, t := range w.Tokens {
		if t.Is(text) && w.At(i+1).Is("=") && w.At(i+3).Is(";") && !w.At(i-1).Is(".") {
			if n, err := strconv.ParseUint(strings.TrimRight(w.At(i+2).Text, "uUlL"), 0, 31); err == nil {
				return int(n), nil
			}
		}
	}
	return 0, fmt.Errorf("the length %s of an array is not a plain number: give the structure's numbers", text)
}

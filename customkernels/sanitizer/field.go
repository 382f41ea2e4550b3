package sanitizer

// A Field is a member of a structure in a buffer, or of a structure within it.
type Field struct {
	Name string // such as "size.width" or "inner[1].x"
	Type string // of one element, as the shader declares it
	// DType is the dtype of each number. It is Invalid for a pointer, texture or sampler.
	DType DType
	// Offsets are the places in bytes of the numbers, or of the pointer, texture or sampler, which has 8 bytes.
	Offsets []int
	// Pointer reports whether the field refers to a buffer or texture of the launch.
	Pointer bool
}

// Fields returns the fields and the size in bytes of the structure that a buffer holds, for a kernel of LoadNative. The
// error is for a buffer without a structure, and for a structure whose layout is unknown, such as a union.
func (k *Kernel) Fields(buffer string) (fields []Field, size int, err error) {
	layout, err := k.loaded.Layout(buffer)
	if err != nil {
		return nil, 0, err
	}
	for _, f := range layout.Fields {
		field := Field{Name: f.Name, Type: f.Type, Offsets: f.Offsets, Pointer: f.Pointer()}
		if f.Element == "" {
			field.Offsets = []int{f.Offset}
		} else {
			field.DType = numberType(f.Element)
		}
		fields = append(fields, field)
	}
	return fields, layout.Size, nil
}

// numberType returns the dtype of a number of a structure.
func numberType(element string) DType {
	switch element {
	case "char", "signed char":
		return Int8
	case "ptrdiff_t":
		return Int64
	}
	return dtypeOf(element)
}

// fieldAt returns the field at an offset of a buffer that the launch describes by fields, such as "params.rows", or "".
func (s *checkerRun) fieldAt(slot int, offset int64) string {
	if slot < 0 || slot >= len(s.buffers) || !s.kernel.loaded.Described(s.names[slot]) {
		return ""
	}
	layout, err := s.kernel.loaded.Layout(s.names[slot])
	if err != nil || offset < 0 {
		return ""
	}
	if f, ok := layout.FieldAt(int(offset)); ok {
		return s.names[slot] + "." + f.Name
	}
	return ""
}

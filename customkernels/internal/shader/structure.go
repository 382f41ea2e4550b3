package shader

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

// A Pointer is a field of a structure that holds the address of a buffer or a texture.
type Pointer struct {
	Buffer string // with the structure
	Offset int    // in bytes
	To     string
}

// Structure marks a buffer as described by its fields. references holds the buffers and textures to which fields refer,
// by the name of the field. Those that are no arguments of the kernel become inputs or outputs of the launch.
func Structure(buffer string, references map[string]string) Option {
	return func(*msl.Kernel) (translate.Option, error) { return translate.Structure(buffer, references), nil }
}

// Layout returns the layout of the structure that a buffer holds, for a kernel of [LoadNative].
func (k *Kernel) Layout(buffer string) (*msl.Layout, error) {
	b := bufferOf(k.Parsed, buffer)
	if k.Native == nil || b == nil {
		return nil, fmt.Errorf("the kernel has no buffer %s whose fields a launch can give", buffer)
	}
	return layoutOf(k.Parsed, b)
}

// Described reports whether the launch describes a buffer by its fields.
func (k *Kernel) Described(buffer string) bool {
	if k.Native == nil {
		return false
	}
	_, ok := k.Native.values.Structures[buffer]
	return ok
}

func layoutOf(k *msl.Kernel, b *msl.Buffer) (*msl.Layout, error) {
	if b.Texture != "" {
		return nil, fmt.Errorf("%s is a texture, which has no fields", b.Name)
	}
	s, _ := k.Structure()
	items, err := s.Items()
	if err != nil {
		return nil, err
	}
	layout, err := s.Layout(items, b.Element)
	if err != nil {
		return nil, fmt.Errorf("the fields of %s: %w", b.Name, err)
	}
	return layout, nil
}

func bufferOf(k *msl.Kernel, name string) *msl.Buffer {
	if i := slices.IndexFunc(k.Buffers, func(b *msl.Buffer) bool { return b.Name == name }); i >= 0 {
		return k.Buffers[i]
	}
	return nil
}

// indirectSlot is the slot of the first buffer that is no argument. These buffers follow all arguments.
const indirectSlot = 1 << 20

// structures adds the buffers to which structures refer, and returns the places of their addresses. A structure may lie
// in a buffer to which another one refers.
func structures(k *msl.Kernel, values *translate.Values) (pointers []Pointer, err error) {
	pending := slices.Sorted(maps.Keys(values.Structures))
	for len(pending) > 0 {
		i := slices.IndexFunc(pending, func(name string) bool { return bufferOf(k, name) != nil })
		if i < 0 {
			return nil, fmt.Errorf("there is no buffer %s to describe by fields", pending[0])
		}
		b := bufferOf(k, pending[i])
		pending = slices.Delete(pending, i, i+1)
		layout, err := layoutOf(k, b)
		if err != nil {
			return nil, err
		}
		if b.Slot < indirectSlot {
			values.Layouts[b.Element] = layout
		}
		references := values.Structures[b.Name]
		for _, field := range slices.Sorted(maps.Keys(references)) {
			at, err := FieldOf(b.Name, layout, field)
			if err == nil && !at.Pointer() {
				err = fmt.Errorf("the field %s.%s is a %s: give its value instead of the name %s", b.Name, field, at.Type,
					references[field])
			}
			if err == nil {
				err = refer(k, values, b.Name+"."+field, at, references[field])
			}
			if err != nil {
				return nil, err
			}
			pointers = append(pointers, Pointer{b.Name, at.Offset, references[field]})
		}
	}
	return pointers, nil
}

// FieldOf returns a field of a structure. The error lists the fields that exist.
func FieldOf(buffer string, layout *msl.Layout, name string) (msl.Field, error) {
	const shown = 20
	var names []string
	for _, f := range layout.Fields {
		if f.Name == name {
			return f, nil
		}
		if len(names) < shown {
			names = append(names, fmt.Sprintf("%s (%s)", f.Name, f.Type))
		}
	}
	if len(layout.Fields) > shown {
		names = append(names, "…")
	}
	return msl.Field{}, fmt.Errorf("%s has no field %s: its fields are %s", buffer, name, strings.Join(names, ", "))
}

// refer makes a field refer to a buffer or texture, which it adds if the kernel has none of this name.
func refer(k *msl.Kernel, values *translate.Values, field string, f msl.Field, name string) error {
	to := bufferOf(k, name)
	if to == nil {
		if k.HasArgument(name) {
			return fmt.Errorf("the field %s is a %s, and %s is no buffer or texture", field, f.Type, name)
		}
		added := *f.Buffer
		added.Name, added.Pos, added.Index, added.Slot = name, k.Pos, -1, indirectSlot+len(values.Indirect)
		k.Buffers = append(k.Buffers, &added)
		values.Indirect = append(values.Indirect, translate.HostBuffer{
			Name: name, Element: added.Element, Writable: added.Writable(),
		})
		return nil
	}
	switch {
	case to.Texture != f.Buffer.Texture:
		return fmt.Errorf("the field %s is a %s, and %s is %s", field, f.Type, name, describe(to))
	case f.Buffer.Writable() && !to.Writable():
		return fmt.Errorf("the kernel writes through %s, and only reads the argument %s", field, name)
	}
	return nil
}

func describe(b *msl.Buffer) string {
	if b.Texture != "" {
		return "a " + string(b.Texture)
	}
	return "a buffer"
}

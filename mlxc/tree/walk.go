package tree

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

var (
	arrayType   = reflect.TypeFor[*mlxc.Array]()
	arrayStruct = arrayType.Elem()
)

// walker copies a tree and replaces each array by the result of leaf.
type walker struct {
	leaf func(name string, a *mlxc.Array) (*mlxc.Array, error)
	// wanted reports whether leaf has an array for the name of a nil optional array. A nil wanted reports false.
	wanted func(name string) bool
	names  map[string]bool
	above  map[place]bool // references on the current path
}

// omitEmpty is the tag option of an optional array.
const omitEmpty = "omitempty"

// place identifies a reference. The length tells slices apart that begin at the same element.
type place struct {
	address uintptr
	length  int
	kind    reflect.Type
}

// walk returns a copy of t with each array replaced by the result of leaf.
func walk[T any](t T, leaf func(name string, a *mlxc.Array) (*mlxc.Array, error)) (T, error) {
	return walkWanted(t, leaf, nil)
}

// walkWanted is walk, but also calls leaf for a nil optional array if wanted reports true for its name.
func walkWanted[T any](t T, leaf func(name string, a *mlxc.Array) (*mlxc.Array, error),
	wanted func(name string) bool,
) (T, error) {
	w := walker{leaf: leaf, wanted: wanted, names: map[string]bool{}, above: map[place]bool{}}
	out := t
	// Pass a pointer: reflect.ValueOf would lose an interface type.
	v, err := w.value(reflect.ValueOf(&t).Elem(), "")
	if err == nil {
		reflect.ValueOf(&out).Elem().Set(v)
	}
	return out, err
}

func fail(name, format string, args ...any) error {
	if name == "" {
		name = "the tree"
	}
	return fmt.Errorf("tree: %s: %w", name, fmt.Errorf(format, args...))
}

func (w *walker) value(v reflect.Value, name string) (reflect.Value, error) {
	t := v.Type()
	if t == arrayType {
		if w.names[name] {
			return v, fail(name, "two arrays have this name: rename one with a tag `mlx:\"name\"` or another key")
		}
		w.names[name] = true
		a, err := w.leaf(name, v.Interface().(*mlxc.Array))
		return reflect.ValueOf(a), err
	}
	switch t.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v, nil
		}
		return w.within(v, 0, name, func() (reflect.Value, error) {
			elem, err := w.value(v.Elem(), name)
			if err != nil {
				return v, err
			}
			p := reflect.New(t.Elem())
			p.Elem().Set(elem)
			return p.Convert(t), nil
		})
	case reflect.Interface:
		if v.IsNil() {
			return v, fail(name, "the interface is nil: put an array or a tree into it")
		}
		return w.value(v.Elem(), name)
	case reflect.Struct:
		if t == arrayStruct {
			return v, fail(name, "it is an mlxc.Array, which must not be copied: use *mlxc.Array")
		}
		s := reflect.New(t).Elem()
		s.Set(v)
		return s, w.fields(s, name)
	case reflect.Map:
		if v.IsNil() {
			return v, nil
		}
		return w.within(v, 0, name, func() (reflect.Value, error) { return w.entries(v, name) })
	case reflect.Slice:
		if v.IsNil() {
			return v, nil
		}
		return w.within(v, v.Len(), name, func() (reflect.Value, error) {
			s := reflect.MakeSlice(t, v.Len(), v.Len())
			return s, w.elements(s, v, name)
		})
	case reflect.Array:
		s := reflect.New(t).Elem()
		return s, w.elements(s, v, name)
	}
	return v, fail(name, "it is of type %v: a tree holds *mlxc.Array in structs, maps, slices and arrays; leave a "+
		"field out with the tag `mlx:\"-\"`", t)
}

// within runs f for a reference, or returns an error if the reference is part of a cycle.
func (w *walker) within(
	v reflect.Value, length int, name string, f func() (reflect.Value, error),
) (reflect.Value, error) {
	p := place{v.Pointer(), length, v.Type()}
	if w.above[p] {
		return v, fail(name, "the %v is part of a cycle", v.Type())
	}
	w.above[p] = true
	defer delete(w.above, p)
	return f()
}

// fields replaces the arrays of an addressable struct.
func (w *walker) fields(s reflect.Value, name string) error {
	for i := range s.NumField() {
		f, at := s.Type().Field(i), s.Field(i)
		tag, tagged := f.Tag.Lookup("mlx")
		if tag == "-" {
			continue
		}
		tag, option, optional := strings.Cut(tag, ",")
		embedded := f.Anonymous && !tagged
		if embedded && f.Type.Kind() == reflect.Struct && f.Type != arrayStruct {
			// Work in place: the fields of an embedded struct can be set even if its type is not exported.
			if err := w.fields(at, name); err != nil {
				return err
			}
			continue
		}
		inner := name
		if pointer := f.Type.Kind() == reflect.Pointer && f.Type != arrayType; !embedded || !pointer {
			if !tagged || optional && tag == "" {
				tag = snake(f.Name)
			}
			inner = dotted(name, tag)
		}
		switch {
		case !f.IsExported():
			return fail(inner, "the field %s of %v is not exported: export it, or leave it out with the tag `mlx:\"-\"`", f.Name, s.Type())
		case tagged && tag == "":
			return fail(inner, "the tag of the field %s of %v has no name", f.Name, s.Type())
		case optional && (option != omitEmpty || f.Type != arrayType):
			return fail(inner, "the tag of the field %s of %v has the option %q: the only option is %s, for *mlxc.Array",
				f.Name, s.Type(), option, omitEmpty)
		case optional && at.IsNil() && (w.wanted == nil || !w.wanted(inner)):
			continue
		}
		v, err := w.value(at, inner)
		if err != nil {
			return err
		}
		at.Set(v)
	}
	return nil
}

func (w *walker) entries(v reflect.Value, name string) (reflect.Value, error) {
	t, keys := v.Type(), v.MapKeys()
	var text func(reflect.Value) string
	var order func(a, b reflect.Value) int
	switch key := reflect.Zero(t.Key()); {
	case key.Kind() == reflect.String:
		text = reflect.Value.String
		order = func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) }
	case key.CanInt():
		text = func(k reflect.Value) string { return strconv.FormatInt(k.Int(), 10) }
		order = func(a, b reflect.Value) int { return cmp.Compare(a.Int(), b.Int()) }
	case key.CanUint():
		text = func(k reflect.Value) string { return strconv.FormatUint(k.Uint(), 10) }
		order = func(a, b reflect.Value) int { return cmp.Compare(a.Uint(), b.Uint()) }
	default:
		return v, fail(name, "the keys of %v have no order: use strings or integers", t)
	}
	slices.SortFunc(keys, order)
	m := reflect.MakeMapWithSize(t, len(keys))
	for _, k := range keys {
		e, err := w.value(v.MapIndex(k), dotted(name, text(k)))
		if err != nil {
			return v, err
		}
		m.SetMapIndex(k, e)
	}
	return m, nil
}

// elements sets the elements of `to` to the elements of `from` with their arrays replaced.
func (w *walker) elements(to, from reflect.Value, name string) error {
	for i := range from.Len() {
		e, err := w.value(from.Index(i), dotted(name, strconv.Itoa(i)))
		if err != nil {
			return err
		}
		to.Index(i).Set(e)
	}
	return nil
}

// dotted joins two names with a dot. An empty name is left out.
func dotted(name, component string) string {
	if name == "" || component == "" {
		return name + component
	}
	return name + "." + component
}

// snake converts a Go field name to lower snake case: QProj is q_proj, RMSNorm is rms_norm.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		if i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

package fuzz

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// show returns the text of a call.
func (s *sequence) show(name string, args []reflect.Value) string {
	texts := make([]string, len(args))
	for i, v := range args {
		texts[i] = s.showValue(v)
	}
	return name + "(" + strings.Join(texts, ", ") + ")"
}

func (s *sequence) showValue(v reflect.Value) string {
	if !v.IsValid() || !v.CanInterface() {
		return "?"
	}
	switch x := v.Interface().(type) {
	case *mlxc.Array:
		if x == nil {
			return "nil"
		}
		return s.names[x]
	case fmt.Stringer:
		if v.Kind() != reflect.Pointer {
			return x.String()
		}
	}
	switch v.Kind() {
	case reflect.Slice:
		texts := make([]string, v.Len())
		for i := range v.Len() {
			texts[i] = s.showValue(v.Index(i))
		}
		return "[" + strings.Join(texts, " ") + "]"
	case reflect.Struct:
		var texts []string
		for i := range v.NumField() {
			if f := v.Field(i); v.Type().Field(i).IsExported() && !f.IsZero() {
				texts = append(texts, v.Type().Field(i).Name+": "+s.showValue(f))
			}
		}
		return "{" + strings.Join(texts, ", ") + "}"
	case reflect.Func:
		return "f"
	case reflect.Map:
		var texts []string
		for _, k := range v.MapKeys() {
			texts = append(texts, s.showValue(k)+": "+s.showValue(v.MapIndex(k)))
		}
		return "{" + strings.Join(texts, ", ") + "}"
	case reflect.Pointer:
		if v.Elem().Kind() == reflect.Float32 {
			return fmt.Sprint("&", v.Elem())
		}
		return v.Type().String()
	case reflect.String:
		return fmt.Sprintf("%q", v.Interface())
	}
	return fmt.Sprint(v.Interface())
}

// arraysOf collects the arrays in results.
func arraysOf(results []reflect.Value) (out []*mlxc.Array) {
	for _, r := range results {
		switch x := r.Interface().(type) {
		case *mlxc.Array:
			out = append(out, x)
		case []*mlxc.Array:
			out = append(out, x[:min(len(x), 8)]...)
		case map[string]*mlxc.Array:
			for _, name := range slices.Sorted(maps.Keys(x)) {
				out = append(out, x[name])
			}
		case mlxc.Quantized:
			for _, a := range []*mlxc.Array{x.Weight, x.Scales, x.Biases, x.GlobalScale} {
				if a != nil {
					out = append(out, a)
				}
			}
		}
	}
	return out
}

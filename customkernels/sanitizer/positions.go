package sanitizer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// sameTypes holds the attributes whose arguments must have one type in a kernel, according to the section on attributes
// for kernel function input arguments of the Metal Shading Language Specification.
var sameTypes = [][]string{
	{"thread_position_in_grid", "threads_per_grid"},
	{"thread_position_in_threadgroup", "threads_per_threadgroup", "dispatch_threads_per_threadgroup"},
}

// sameLengths holds the attributes whose arguments must be all numbers, or all vectors of one length.
var sameLengths = append(slices.Concat(sameTypes...), "threadgroup_position_in_grid", "threadgroups_per_grid")

// positionTypes returns errors about the types of a native kernel's positions, which Apple's compiler reports. MLX
// chooses these types itself.
func (k *Kernel) positionTypes() []Finding {
	if k.loaded.Native == nil {
		return nil
	}
	var list []Finding
	add := func(a, other msl.Attribute, rule string) {
		site := func(a msl.Attribute) Site { return Site{a.Pos.File, a.Pos.Line, a.Pos.Column, k.loaded.Name} }
		f := Finding{
			Kind: FindingPositionType, Severity: FindingPositionType.Severity(), Kernel: k.loaded.Name, Site: site(a),
			Message: fmt.Sprintf("Apple's compiler refuses %s %s [[%s]] beside %s %s [[%s]]: %s", a.Type, a.Name, a.Attribute,
				other.Type, other.Name, other.Attribute, rule),
		}
		if site(other) != f.Site {
			f.Other = site(other)
		}
		list = append(list, f)
	}
	all := k.loaded.Parsed.Attributes
	first := func(names []string) (msl.Attribute, bool) {
		i := slices.IndexFunc(all, func(a msl.Attribute) bool { return slices.Contains(names, a.Attribute) })
		if i < 0 {
			return msl.Attribute{}, false
		}
		return all[i], true
	}
	if f, ok := first(sameLengths); ok {
		for _, a := range all {
			if slices.Contains(sameLengths, a.Attribute) && lanes(a.Type) != lanes(f.Type) {
				add(a, f, "give all positions one number of components")
				return list // one cause
			}
		}
	}
	for _, names := range sameTypes {
		f, ok := first(names)
		for _, a := range all {
			if ok && slices.Contains(names, a.Attribute) && a.Type != f.Type {
				add(a, f, "give both the same type")
				break
			}
		}
	}
	position, ok := first([]string{"thread_position_in_threadgroup"})
	index, both := first([]string{"thread_index_in_threadgroup"})
	if ok && both && strings.HasPrefix(position.Type, "uint") && index.Type != "uint" {
		add(index, position, "the index must be a uint beside a position of uint")
	}
	return list
}

// lanes returns the number of components of a position's type, such as uint3, as a character. It is "" for a number.
func lanes(t string) string { return strings.Trim(t, "uintshor") }

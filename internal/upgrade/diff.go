package upgrade

import (
	"cmp"
	"fmt"
	"slices"
)

// A change is a difference between two releases' headers.
type change struct {
	Old, New *declaration // Old is nil if the declaration was added, New if it was removed
	Details  []string     // for a changed declaration, one line for each difference
	Users    []string     // the functions of mlx-c and libmlxg that use it
}

// declaration returns the new declaration, or the removed one.
func (c change) declaration() *declaration {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// compare returns the changes from old to new, in order of header and name. Members of an added or removed class are
// not listed.
func compare(old, new []declaration) []change {
	groups := map[string][2][]*declaration{}
	for side, all := range [][]declaration{old, new} {
		for i := range all {
			g := groups[all[i].group()]
			if !slices.ContainsFunc(g[side], func(d *declaration) bool { return d.String() == all[i].String() }) {
				g[side] = append(g[side], &all[i])
			}
			groups[all[i].group()] = g
		}
	}
	var changes []change
	for _, g := range groups {
		changes = append(changes, compareOverloads(g[0], g[1])...)
	}
	whole := map[string]bool{} // added and removed classes and enums
	for _, c := range changes {
		if d := c.declaration(); c.Details == nil && (d.Kind == kindClass || d.Kind == kindEnum) {
			whole[d.Name] = true
		}
	}
	changes = slices.DeleteFunc(changes, func(c change) bool { return whole[c.declaration().Owner] && c.Details == nil })
	slices.SortFunc(changes, func(x, y change) int {
		a, b := x.declaration(), y.declaration()
		return cmp.Or(cmp.Compare(a.Header, b.Header), cmp.Compare(a.Name, b.Name), cmp.Compare(a.String(), b.String()))
	})
	return changes
}

// compareOverloads compares declarations of one kind and name. It pairs equal declarations first, then declarations of
// equal type, then the most similar ones.
func compareOverloads(old, new []*declaration) (changes []change) {
	pair := func(same func(a, b *declaration) bool, found func(a, b *declaration)) {
		old = slices.DeleteFunc(old, func(a *declaration) bool {
			i := slices.IndexFunc(new, func(b *declaration) bool { return same(a, b) })
			if i < 0 {
				return false
			}
			found(a, new[i])
			new = slices.Delete(new, i, i+1)
			return true
		})
	}
	changed := func(a, b *declaration) {
		changes = append(changes, change{Old: a, New: b, Details: details(a, b)})
	}
	pair(func(a, b *declaration) bool { return a.String() == b.String() }, func(_, _ *declaration) {})
	pair(func(a, b *declaration) bool { return a.Type == b.Type && a.Template == b.Template }, changed)
	for len(old) > 0 && len(new) > 0 {
		best, i, j := -1, 0, 0
		for x := range old {
			for y := range new {
				if s := similarity(old[x], new[y]); s > best {
					best, i, j = s, x, y
				}
			}
		}
		changed(old[i], new[j])
		old, new = slices.Delete(old, i, i+1), slices.Delete(new, j, j+1)
	}
	for _, d := range old {
		changes = append(changes, change{Old: d})
	}
	for _, d := range new {
		changes = append(changes, change{New: d})
	}
	return changes
}

// similarity returns the number of parameters with the same name and type in both.
func similarity(a, b *declaration) (n int) {
	for _, p := range a.Params {
		if slices.ContainsFunc(b.Params, func(q parameter) bool { return q.Name == p.Name && q.Type == p.Type }) {
			n++
		}
	}
	return n
}

// details lists the differences of two declarations of one name.
func details(a, b *declaration) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	differ := func(what, x, y string) {
		switch {
		case x == y:
		case x == "":
			add("new %s %s", what, y)
		case y == "":
			add("%s %s removed", what, x)
		default:
			add("%s: %s, formerly %s", what, y, x)
		}
	}
	differ("template parameters", a.Template, b.Template)
	if a.Kind == kindFunction {
		differ("result", a.Result, b.Result)
	} else {
		differ("type", a.Type, b.Type)
	}
	differ("value", a.Value, b.Value)
	lines = append(lines, paramDetails(a.Params, b.Params)...)
	for _, m := range b.Marks {
		if !slices.Contains(a.Marks, m) {
			add("now %s", m)
		}
	}
	for _, m := range a.Marks {
		if !slices.Contains(b.Marks, m) {
			add("no longer %s", m)
		}
	}
	if lines == nil {
		add("type: %s, formerly %s", b.Type, a.Type)
	}
	return lines
}

// paramDetails lists the differences of two lists of parameters. Parameters correspond by name. A parameter with
// another name but the same type and place counts as renamed.
func paramDetails(old, new []parameter) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	index := func(list []parameter, name string) int {
		return slices.IndexFunc(list, func(p parameter) bool { return p.Name == name && name != "" })
	}
	match := make([]int, len(new)) // the index in old, or -1
	matched := make([]bool, len(old))
	for j, p := range new {
		match[j] = index(old, p.Name)
		if match[j] < 0 && j < len(old) && old[j].Type == p.Type && (old[j].Name == "" || p.Name == "" || index(new, old[j].Name) < 0) {
			match[j] = j
		}
		if match[j] >= 0 {
			if matched[match[j]] {
				match[j] = -1
				continue
			}
			matched[match[j]] = true
		}
	}
	for i, p := range old {
		if !matched[i] {
			add("parameter %d removed: %s", i+1, p)
		}
	}
	highest := -1
	for j, p := range new {
		if match[j] < 0 {
			add("new parameter %d: %s", j+1, p)
			continue
		}
		q := old[match[j]]
		if match[j] < highest {
			add("parameter %s moved to place %d", p.Name, j+1)
		}
		highest = max(highest, match[j])
		if p.Type != q.Type {
			add("parameter %s: type %s, formerly %s", cmp.Or(p.Name, fmt.Sprint(j+1)), p.Type, q.Type)
		}
		if p.Name != q.Name && p.Name != "" && q.Name != "" {
			add("parameter %s renamed %s", q.Name, p.Name)
		}
		switch {
		case p.Default == q.Default:
		case q.Default == "":
			add("parameter %s: new default %s", p.Name, p.Default)
		case p.Default == "":
			add("parameter %s: no default, formerly %s", p.Name, q.Default)
		default:
			add("parameter %s: default %s, formerly %s", p.Name, p.Default, q.Default)
		}
	}
	return lines
}

// mark fills in the users of each change. u has the declarations of the old release that mlx-c and libmlxg use.
func mark(changes []change, u uses, bases map[string][]string) {
	for i := range changes {
		c := &changes[i]
		if c.Old == nil {
			c.Users = append(c.Users, u.ofAdded(*c.New, bases)...)
		} else {
			c.Users = append(c.Users, u.of(*c.Old, bases)...)
		}
		slices.Sort(c.Users)
		c.Users = slices.Compact(c.Users)
	}
}

// kindOf returns the word for a change: added, removed or changed.
func (c change) kindOf() string {
	switch {
	case c.Old == nil:
		return "added"
	case c.New == nil:
		return "removed"
	}
	return "changed"
}

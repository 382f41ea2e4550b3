package compare

import "maps"

// shrink returns a smaller input at which the same result fails, and the number of steps to it. Each step takes the
// first input of [Case.smaller] that still fails. It ends if none fails.
func (s search) shrink(f failure) (smallest failure, steps int) {
	for again := true; again; {
		again = false
		for _, tr := range s.c.smaller(f.trial) {
			next, err := s.try(tr)
			if err == nil && next != nil && next.output() == f.output() {
				f, again = *next, true
				steps++
				break
			}
		}
	}
	return f, steps
}

// smaller lists the inputs that differ from a trial in one choice: a smaller size of one dimension, the smallest first,
// a contiguous array instead of another layout, or simpler values.
func (c Case) smaller(tr trial) []trial {
	var list []trial
	for _, dim := range c.dims() {
		for _, size := range c.sizesOf(dim) {
			if size < tr.sizes[dim] {
				next := tr
				next.sizes = maps.Clone(tr.sizes)
				next.sizes[dim] = size
				list = append(list, next)
			}
		}
	}
	for _, name := range append(c.inputNames(), cotangents) {
		if layout := tr.layouts[name]; layout != "" {
			next := tr
			next.layouts = maps.Clone(tr.layouts)
			delete(next.layouts, name)
			list = append(list, next)
		}
	}
	for _, in := range c.Inputs {
		if !in.random() {
			continue
		}
		for _, simple := range []string{"integers", ""} {
			now := tr.values[in.Name]
			if now == simple || now == "integers" {
				break
			}
			next := tr
			next.values = maps.Clone(tr.values)
			next.values[in.Name] = simple
			if simple == "" {
				delete(next.values, in.Name)
			}
			list = append(list, next)
		}
	}
	return list
}

func (c Case) inputNames() []string {
	names := make([]string, len(c.Inputs))
	for i, in := range c.Inputs {
		names[i] = in.Name
	}
	return names
}

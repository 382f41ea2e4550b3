package msl

import "slices"

// GeneratedKernel returns the kernel of a text that MLX generated, and the template arguments of its instantiation.
// If the text has several kernels, it is the one that the last instantiation names, or the last one.
func (s *Structure) GeneratedKernel(items []Item) (*Kernel, []string, error) {
	return s.onlyKernel(items, false)
}

// NativeKernel is [Structure.GeneratedKernel] for a text with one kernel of [ParseNative].
func (s *Structure) NativeKernel(items []Item) (*Kernel, []string, error) {
	return s.onlyKernel(items, true)
}

func (s *Structure) onlyKernel(items []Item, native bool) (*Kernel, []string, error) {
	p := parser{Structure: s, items: items, file: &File{}, native: native}
	p.collectMacros()
	instantiated := s.instantiated(items)
	chosen := -1
	for i, it := range items {
		if it.Kernel && it.Kind == FunctionItem && (chosen < 0 ||
			len(instantiated) == 0 || instantiated[s.At(it.Params-1).Text]) {
			chosen = i
		}
	}
	if chosen >= 0 {
		if err := p.kernel(items[chosen]); err != nil {
			return nil, nil, err
		}
	}
	if len(p.file.Kernels) == 0 {
		return nil, nil, s.ErrorAt(0, "the text has no kernel; give the complete text that MLX generates")
	}
	kernel := p.file.Kernels[0]
	if kernel.Problem != nil {
		return nil, nil, kernel.Problem
	}
	if len(kernel.Threadgroup) > 0 && !native {
		a := kernel.Threadgroup[0]
		return nil, nil, Errorf(a.Pos, "the threadgroup argument %s has no size; give it one when the kernel is loaded",
			a.Name)
	}
	if len(kernel.Template) == 0 {
		return kernel, nil, nil
	}
	for _, it := range slices.Backward(items) {
		if it.Kind != Instantiation {
			continue
		}
		for i := it.First; i < it.Last; i++ {
			if !s.Tokens[i].Is(kernel.Name) || !s.At(i+1).Is("<") {
				continue
			}
			var arguments []string
			for _, part := range s.Split(i+2, s.SkipAngles(i+1, it.Last)-1) {
				arguments = append(arguments, s.Join(part[0], part[1]-1))
			}
			if len(arguments) != len(kernel.Template) && !native {
				return nil, nil, s.ErrorAt(i, "the instantiation gives %d template arguments, the kernel has %d "+
					"parameters; give each one",
					len(arguments), len(kernel.Template))
			}
			return kernel, arguments, nil
		}
	}
	return nil, nil, Errorf(kernel.Pos, "the kernel is a template and never instantiated; give the complete text "+
		"that MLX generates")
}

// instantiated returns the template names in the last explicit instantiation of a kernel. It is nil if there is none.
func (s *Structure) instantiated(items []Item) map[string]bool {
	for _, it := range slices.Backward(items) {
		if it.Kind != Instantiation || !it.Kernel && !s.IsAttribute(it.First+1) {
			continue
		}
		names := map[string]bool{}
		for i := it.First; i < it.Last; i++ {
			if s.Tokens[i].Kind == Identifier && s.At(i+1).Is("<") {
				names[s.Tokens[i].Text] = true
			}
		}
		return names
	}
	return nil
}

package compare

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// word matches the names that the text of a trial can contain.
var word = regexp.MustCompile(`^[\pL\pN_.-]+$`)

// checkTemplate returns an error if a case of [Gradients] is not valid.
func (c Case) checkTemplate() error {
	if err := c.checkFunctions(); err != nil {
		return err
	}
	if len(c.Outputs) > 0 && len(c.targets(mlxc.Float32)) == 0 {
		return errors.New("nothing can be compared: no input is Real, and every output is FromMLX")
	}
	names := []string{cotangents, "call", "case", "seed"} // words of a trial
	use := func(kind, name string) error {
		switch {
		case !word.MatchString(name):
			return fmt.Errorf("the name %q of %s must consist of letters, digits and _.-", name, kind)
		case slices.Contains(names, name):
			return fmt.Errorf("the name %q of %s is taken; names of inputs and outputs must be unique, and %v are reserved",
				name, kind, names[:4])
		}
		names = append(names, name)
		return nil
	}
	dims := c.dims()
	for _, in := range c.Inputs {
		if err := use("an input", in.Name); err != nil {
			return err
		}
		switch {
		case in.Dims != nil && in.Shape != nil:
			return fmt.Errorf("the input %s has Dims and Shape; it must have one of them", in.Name)
		case in.Below != "" && !slices.Contains(dims, in.Below):
			return fmt.Errorf("Below of the input %s is %q; it must be one of the dimensions %q", in.Name, in.Below, dims)
		case in.isIndex() && in.Values == nil && in.Below == "":
			return fmt.Errorf("the input %s has indices, but neither Values nor Below, the name of the indexed dimension", in.Name)
		case in.isIndex() && in.Values == nil && c.sizesOf(in.Below)[0] < 1:
			return fmt.Errorf("the sizes of %s are %v; they must be positive, because the input %s indexes it",
				in.Below, c.Sizes[in.Below], in.Name)
		}
	}
	for _, out := range c.Outputs {
		if err := use("an output", out.Name); err != nil {
			return err
		}
	}
	for _, in := range c.Inputs {
		if err := in.Layout.check(len(in.Dims) + len(in.Shape)); err != nil {
			return fmt.Errorf("the input %s: %w", in.Name, err)
		}
	}
	for _, dim := range dims {
		if !word.MatchString(dim) || slices.Contains(names[:4], dim) {
			return fmt.Errorf("the name %q of a dimension must consist of letters, digits and _.-, and %v are reserved", dim, names[:4])
		}
	}
	for dim, sizes := range c.Sizes {
		switch {
		case !slices.Contains(dims, dim):
			return fmt.Errorf("Sizes has the dimension %q, which no input has; the dimensions are %q", dim, dims)
		case len(sizes) == 0 || slices.Min(sizes) < 0:
			return fmt.Errorf("the sizes of %s are %v; there must be at least one, and none may be negative", dim, sizes)
		}
	}
	return nil
}

// checkFunctions returns an error if a function of the case or its inputs are missing, or if a shape or a dtype is not
// valid.
func (c Case) checkFunctions() error {
	switch {
	case len(c.Inputs) == 0:
		return errors.New("the case's Inputs is empty; a case needs at least one input")
	case c.Forward == nil && c.Gradient != nil:
		return errors.New("the case's Gradient is set and its Forward is nil; Gradient needs Forward")
	case c.Forward == nil && c.Composed == nil:
		return errors.New("the case's Forward and Composed are nil; one of them must compute the operation")
	case c.Ours == nil:
		return errors.New("the case's Ours is nil; it must be our function")
	case c.DTypes != nil && len(c.DTypes) == 0:
		return fmt.Errorf("the case's DTypes is empty; it must be nil or some of %v", DTypes())
	}
	for _, in := range c.Inputs {
		if slices.ContainsFunc(in.Shape, func(n int) bool { return n < 0 }) {
			return fmt.Errorf("the shape of the input %s is %v; no size may be negative", in.Name, in.Shape)
		}
	}
	for _, out := range c.Outputs {
		if slices.ContainsFunc(out.Shape, func(n int) bool { return n < 0 }) {
			return fmt.Errorf("the shape of the output %s is %v; no size may be negative", out.Name, out.Shape)
		}
	}
	return checkDTypes(c.DTypes)
}

// checkDTypes returns an error if gradients cannot be compared in one of the dtypes.
func checkDTypes(dtypes []mlxc.DType) error {
	for _, dtype := range dtypes {
		if !slices.Contains(DTypes(), dtype) {
			return fmt.Errorf("the dtype %v is not supported; it must be one of %v", dtype, DTypes())
		}
	}
	return nil
}

func (in Input) isIndex() bool { return in.Kind == Index || in.Kind == SignedIndex }

// fits returns an error if a trial does not belong to this case.
func (c Case) fits(tr trial) error {
	if !c.runsIn(tr.dtype) {
		return fmt.Errorf("the case does not run in %v; its DTypes are %v", tr.dtype, c.DTypes)
	}
	dims := c.dims()
	for _, dim := range dims {
		if _, given := tr.sizes[dim]; !given {
			return fmt.Errorf("the size of %s is missing", dim)
		}
	}
	for dim := range tr.sizes {
		if !slices.Contains(dims, dim) {
			return fmt.Errorf("no input has the dimension %s", dim)
		}
	}
	inputs := c.inputNames()
	for name := range tr.values {
		if !slices.Contains(inputs, name) {
			return fmt.Errorf("there is no input %s", name)
		}
	}
	for name, layout := range tr.layouts {
		switch {
		case name != cotangents && !slices.Contains(inputs, name):
			return fmt.Errorf("there is no input %s", name)
		case !slices.Contains(layouts(), layout):
			return fmt.Errorf("%s:%s: %q is neither a layout nor a name of values; the layouts are %v, and the values %v",
				name, layout, layout, layouts(), slices.Sorted(maps.Keys(namedValues())))
		}
	}
	return nil
}

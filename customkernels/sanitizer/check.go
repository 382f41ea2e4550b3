package sanitizer

import (
	"fmt"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// Check returns an error if the launch does not fit the kernel: the number and dtypes of its inputs and outputs, its
// grid, threadgroup, template arguments and in-out buffers. It does not read the elements of arrays.
func (k *Kernel) Check(l Launch, inputs ...Array) error {
	return k.checkLaunch(k.WithDefaults(l), inputs)
}

// checkLaunch is Check for a launch that includes its defaults.
func (k *Kernel) checkLaunch(l Launch, inputs []Array) error {
	if got, want := len(inputs), len(k.loaded.Source.Inputs); got != want {
		return fmt.Errorf("%d inputs, want %d: %v", got, want, k.loaded.Source.InputNames)
	}
	if got, want := len(l.Outputs), len(k.loaded.Source.Outputs); got != want {
		return fmt.Errorf("%d outputs, want %d: %v", got, want, k.loaded.Source.OutputNames)
	}
	if l.Grid[0] == 0 && !l.empty() && l.InitValue == nil && len(l.InOut) == 0 {
		return fmt.Errorf("a grid of no threads leaves the outputs undefined: set Launch.Grid to the number " +
			"of threads, or Launch.InitValue to the outputs' value")
	}
	threads := 1
	for i := range 3 {
		if l.Grid[i] < 0 || l.Threadgroup[i] < 0 {
			return fmt.Errorf("the grid %v of threadgroups %v has a negative axis", l.Grid, l.Threadgroup)
		}
		if l.Grid[i] > 1<<31-1 {
			return fmt.Errorf("the grid %v has an axis above 2³¹−1 threads: let each thread do more", l.Grid)
		}
		threads *= min(l.Threadgroup[i], metalstd.MaxThreads+1)
	}
	if most, limit := k.threadLimit(); threads > most {
		return fmt.Errorf("a threadgroup of %v threads: %s allows at most %d", l.Threadgroup, limit, most)
	}
	types, err := k.checkTemplate(l)
	if err != nil {
		return err
	}
	for i, b := range k.loaded.Source.Inputs {
		if err := k.checkInput(i, b, inputs[i], types); err != nil {
			return err
		}
	}
	for i, b := range k.loaded.Source.Outputs {
		if b.Texture != "" {
			if err := checkTexture(b, l.Outputs[i].DType, l.Outputs[i].Shape, types); err != nil {
				return err
			}
			continue
		}
		if want, ok := elementType(b, types); ok && l.Outputs[i].DType != want {
			return fmt.Errorf("the output %s is declared %s and must be %v, not %v",
				b.Name, b.Element, want, l.Outputs[i].DType)
		}
	}
	return k.checkInOut(l)
}

// threadLimit returns the largest number of threads of a threadgroup, and the source of the limit for messages.
func (k *Kernel) threadLimit() (most int, source string) {
	if n := k.loaded.Parsed.MaxThreads; n > 0 {
		return n, "the kernel's max_total_threads_per_threadgroup"
	}
	return metalstd.MaxThreads, "a GPU"
}

// checkTemplate checks the template arguments and returns the type arguments.
func (k *Kernel) checkTemplate(l Launch) (types typeArguments, err error) {
	if k.loaded.Native != nil {
		return k.checkNativeTemplate(l)
	}
	for _, p := range k.loaded.Parsed.Template {
		i := slices.IndexFunc(l.Template, func(a TemplateArg) bool { return a.Name == p.Name })
		switch {
		case i < 0 && p.Default != "":
			return nil, fmt.Errorf("the template argument %s is missing, and its default %s is no plain type, number "+
				"or bool", p.Name, p.Default)
		case i < 0:
			return nil, fmt.Errorf("the template argument %s is missing", p.Name)
		}
		ok := false
		switch v := l.Template[i].Value.(type) {
		case DType:
			if ok = p.Kind == msl.TypeParameter && v.Size() > 0; ok {
				types = append(types, typeArgument{p.Name, dtypes[v].metal, v})
			}
		case int:
			ok = p.Kind == msl.IntParameter || p.Kind == msl.UintParameter && v >= 0
		case bool:
			ok = p.Kind == msl.BoolParameter
		}
		if !ok {
			return nil, fmt.Errorf("the template argument %s = %v does not fit the parameter %s %s",
				p.Name, l.Template[i].Value, p.Type, p.Name)
		}
	}
	if len(l.Template) > len(k.loaded.Parsed.Template) {
		return nil, fmt.Errorf("%d template arguments, want %d", len(l.Template), len(k.loaded.Parsed.Template))
	}
	return types, nil
}

// checkNativeTemplate is checkTemplate for a native kernel, whose arguments are texts.
func (k *Kernel) checkNativeTemplate(l Launch) (types typeArguments, err error) {
	for _, a := range l.Template {
		if !slices.ContainsFunc(k.loaded.Parsed.Template, func(p msl.TemplateParameter) bool { return p.Name == a.Name }) {
			return nil, fmt.Errorf("the kernel has no template parameter %s", a.Name)
		}
	}
	arguments, err := k.loaded.Arguments(l.templateTexts())
	if err != nil {
		return nil, err
	}
	for i, text := range arguments {
		if i < len(k.loaded.Parsed.Template) && k.loaded.Parsed.Template[i].Kind == msl.TypeParameter {
			types = append(types, typeArgument{k.loaded.Parsed.Template[i].Name, text, dtypeOf(text)})
		}
	}
	return types, nil
}

// typeArguments are the arguments of a launch's type parameters.
type typeArguments []typeArgument

type typeArgument struct {
	name, text string
	dtype      DType // Invalid for another type
}

// elementType returns the dtype that the declaration of a buffer requires, if it requires one.
func elementType(b *msl.Buffer, types typeArguments) (DType, bool) {
	for _, t := range types {
		if t.name == b.Element {
			return t.dtype, t.dtype != Invalid
		}
	}
	d := dtypeOf(b.Element)
	return d, d != Invalid
}

func (k *Kernel) checkInput(i int, b *msl.Buffer, a Array, types typeArguments) error {
	if b.Texture != "" {
		return checkTexture(b, a.DType, a.Shape, types)
	}
	if want, ok := elementType(b, types); ok && a.DType != want {
		return fmt.Errorf("the input %s is declared %s and must be %v, not %v", b.Name, b.Element, want, a.DType)
	}
	if k.loaded.Native != nil {
		return nil
	}
	// MLX passes an array without axes as a reference, and any other as a pointer.
	scalar := len(a.Shape) == 0
	if b.Reference && !scalar && !k.loaded.Source.Cast[i] {
		return fmt.Errorf("the input %s is a reference and must be an array without axes: give it the shape []", b.Name)
	}
	if scalar && k.loaded.Source.Cast[i] {
		return fmt.Errorf("the input %s is read as %s and must have an axis: give it the shape [1]", b.Name, b.Element)
	}
	if scalar && !b.Reference {
		return fmt.Errorf("the input %s is a pointer and must have an axis: give it the shape [1]", b.Name)
	}
	return nil
}

// empty reports whether all outputs have no elements.
func (l Launch) empty() bool {
	return !slices.ContainsFunc(l.Outputs, func(o Output) bool { return !slices.Contains(o.Shape, 0) })
}

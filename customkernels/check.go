package customkernels

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// elementDTypes maps the element types of buffers to dtypes. A char is a byte of anything.
var elementDTypes = map[string]mlxc.DType{
	"bool":  mlxc.Bool,
	"uchar": mlxc.Uint8, "uint8_t": mlxc.Uint8, "int8_t": mlxc.Int8,
	"ushort": mlxc.Uint16, "uint16_t": mlxc.Uint16, "short": mlxc.Int16, "int16_t": mlxc.Int16,
	"uint": mlxc.Uint32, "uint32_t": mlxc.Uint32, "int": mlxc.Int32, "int32_t": mlxc.Int32,
	"ulong": mlxc.Uint64, "uint64_t": mlxc.Uint64, "size_t": mlxc.Uint64, "long": mlxc.Int64, "int64_t": mlxc.Int64,
	"half": mlxc.Float16, "float16_t": mlxc.Float16, "bfloat": mlxc.BFloat16, "bfloat16_t": mlxc.BFloat16,
	"float": mlxc.Float32, "complex64_t": mlxc.Complex64,
}

// check says what is in the way of a launch through MLX, if anything.
func (k *Kernel) check(l Launch, inputs []*mlxc.Array) error {
	if err := k.checkLaunch(l, inputs); err != nil {
		return err
	}
	if reason := k.outsideMLX(l, inputs); reason != "" {
		return mlxc.NewError(k.name, fmt.Errorf("MLX's custom kernels cannot express this launch, which Sanitize can still check: %s", reason), inputs...)
	}
	return nil
}

// checkLaunch says what is wrong with a launch, if anything: what Metal would refuse or,
// worse, accept.
func (k *Kernel) checkLaunch(l Launch, inputs []*mlxc.Array) error {
	fail := func(format string, args ...any) error {
		return mlxc.NewError(k.name, fmt.Errorf(format, args...), inputs...)
	}
	for i, a := range inputs {
		if err := a.Err(); err != nil {
			if carried := (*mlxc.Error)(nil); errors.As(err, &carried) {
				return err // the first error is passed on
			}
			return fail("input %d: %w", i+1, err)
		}
	}
	if got, want := len(inputs), len(k.source.Inputs); got != want {
		return fail("%d inputs, want %d: %v", got, want, k.source.InputNames)
	}
	if got, want := len(l.Outputs), len(k.source.Outputs); got != want {
		return fail("%d outputs, want %d: %v", got, want, k.source.OutputNames)
	}
	if l.Grid[0] == 0 && !l.nothingToWrite() && l.InitValue == nil && len(l.InOut) == 0 {
		return fail("a grid of no threads leaves the outputs undefined: give Launch.Grid the number of threads, or Launch.InitValue what they are")
	}
	threads := 1
	for i := range 3 {
		if l.Grid[i] < 0 || l.Threadgroup[i] < 0 {
			return fail("the grid %v of threadgroups %v has a negative axis", l.Grid, l.Threadgroup)
		}
		if l.Grid[i] > 1<<31-1 {
			return fail("the grid %v has an axis above 2³¹−1 threads: let each group do more", l.Grid)
		}
		threads *= min(l.Threadgroup[i], maxThreads+1)
	}
	if most, who := k.threadLimit(); threads > most {
		return fail("a threadgroup of %v threads: %s has at most %d", l.Threadgroup, who, most)
	}
	types, err := k.checkTemplate(l)
	if err != nil {
		return fail("%w", err)
	}
	for i, b := range k.source.Inputs {
		if err := k.checkInput(i, b, inputs[i], types); err != nil {
			return fail("%w", err)
		}
	}
	for i, b := range k.source.Outputs {
		if want, ok := elementType(b, types); ok && l.Outputs[i].DType != want {
			return fail("the output %s is declared %s and must be %v, not %v", b.Name, b.Element, want, l.Outputs[i].DType)
		}
	}
	if err := k.checkInOut(l); err != nil {
		return fail("%w", err)
	}
	return nil
}

// threadLimit is how many threads a threadgroup has at most, and what limits it.
func (k *Kernel) threadLimit() (most int, who string) {
	if n := k.parsed.MaxThreads; n > 0 {
		return n, "a group of this kernel, by its max_total_threads_per_threadgroup,"
	}
	return maxThreads, "a GPU"
}

// checkTemplate checks the template arguments and returns the type arguments.
func (k *Kernel) checkTemplate(l Launch) (types typeArguments, err error) {
	for _, p := range k.parsed.Template {
		i := slices.IndexFunc(l.Template, func(a mlxc.TemplateArg) bool { return a.Name == p.Name })
		switch {
		case i < 0 && p.Default != "":
			return nil, fmt.Errorf("the template argument %s is missing, and its default %s is no plain type, number or truth value", p.Name, p.Default)
		case i < 0:
			return nil, fmt.Errorf("the template argument %s is missing", p.Name)
		}
		ok := false
		switch v := l.Template[i].Value.(type) {
		case mlxc.DType:
			ok = p.Kind == msl.TypeParameter && v.Size() > 0
			types = append(types, typeArgument{p.Name, v})
		case int:
			ok = p.Kind == msl.IntParameter || p.Kind == msl.UintParameter && v >= 0
		case bool:
			ok = p.Kind == msl.BoolParameter
		}
		if !ok {
			return nil, fmt.Errorf("the template argument %s = %v does not fit the parameter %s %s", p.Name, l.Template[i].Value, p.Type, p.Name)
		}
	}
	if len(l.Template) > len(k.parsed.Template) {
		return nil, fmt.Errorf("%d template arguments, want %d", len(l.Template), len(k.parsed.Template))
	}
	return types, nil
}

// typeArguments are the dtypes that stand for a launch's type parameters.
type typeArguments []typeArgument

type typeArgument struct {
	name  string
	dtype mlxc.DType
}

// elementType is the dtype that a buffer's declaration asks for, if it is one that
// a dtype has.
func elementType(b *msl.Buffer, types typeArguments) (mlxc.DType, bool) {
	for _, t := range types {
		if t.name == b.Element {
			return t.dtype, true
		}
	}
	d, ok := elementDTypes[b.Element]
	return d, ok
}

func (k *Kernel) checkInput(i int, b *msl.Buffer, a *mlxc.Array, types typeArguments) error {
	if want, ok := elementType(b, types); ok && a.DType() != want {
		return fmt.Errorf("the input %s is declared %s and must be %v, not %v", b.Name, b.Element, want, a.DType())
	}
	// MLX makes a reference of an array without axes, and a pointer of any other.
	scalar := a.NDim() == 0
	if b.Reference && !scalar && !k.source.Viewed[i] {
		return fmt.Errorf("the input %s is a reference and must be an array without axes: use mlxc.Scalar or Reshape()", b.Name)
	}
	if scalar && k.source.Viewed[i] {
		return fmt.Errorf("the input %s is read as %s and must have an axis: use Reshape(1)", b.Name, b.Element)
	}
	if scalar && !b.Reference {
		return fmt.Errorf("the input %s is a pointer and must have an axis: use Reshape(1)", b.Name)
	}
	return nil
}

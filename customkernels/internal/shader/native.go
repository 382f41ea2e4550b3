package shader

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/preprocess"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
)

// LoadNative preprocesses and parses a shader file, to run its kernels as Metal would.
func LoadNative(ctx context.Context, fsys fs.FS, name string, o preprocess.Options) (*File, error) {
	s, err := preprocess.Run(ctx, fsys, name, o)
	if err != nil {
		return nil, err
	}
	return parseNative(s, name)
}

// LoadText is LoadNative for a text that is no file and includes none. lines holds the origin of each line of the text.
func LoadText(ctx context.Context, name, text string, lines []msl.Line) (*File, error) {
	s, err := preprocess.RunText(ctx, noFiles{}, name, text, lines, preprocess.Options{})
	if err != nil {
		return nil, err
	}
	return parseNative(s, name)
}

// noFiles is an empty file system.
type noFiles struct{}

// Open implements fs.FS.
func (noFiles) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func parseNative(s *msl.Structure, name string) (*File, error) {
	parsed, err := msl.ParseNative(s)
	if err != nil {
		return nil, err
	}
	return &File{name: name, parsed: parsed, native: true}, nil
}

// native is the part of a [Kernel] that [LoadNative] sets.
type native struct {
	instance  bool     // the launch names an explicit instantiation
	arguments []string // of the instantiation
	values    translate.Values
	pointers  []Pointer
}

// nativeKernel is [File.Kernel] for a native file.
func (f *File) nativeKernel(name string, options []Option) (*Kernel, error) {
	parsed, arguments, err := f.parsed.Find(name)
	if err != nil {
		return nil, err
	}
	set, err := applied(parsed, options)
	if err != nil {
		return nil, err
	}
	values := translate.NewValues(set...)
	own := *parsed
	own.Buffers = slices.Clone(own.Buffers)
	for i, b := range own.Buffers {
		if b.Implicit != "" && values.Given[b.Name] {
			given := *b
			given.Implicit = ""
			own.Buffers[i] = &given
		}
	}
	for _, a := range parsed.Threadgroup {
		if values.Sizes[a.Name] == 0 && !a.Reference {
			return nil, unsized(parsed, a.Name)
		}
	}
	for _, s := range parsed.Samplers {
		if _, ok := values.Samplers[s.Name]; !ok {
			return nil, kernelError(parsed, fmt.Errorf("the sampler argument %s has no state: give it one as %[1]s=sampler or "+
				"%[1]s=sampler:filter::linear,address::repeat in a launch description", s.Name))
		}
	}
	pointers, err := structures(&own, &values)
	if err != nil {
		return nil, kernelError(parsed, err)
	}
	k := &Kernel{
		Name: own.HostName, File: f.name, Parsed: &own,
		Native: &native{arguments != nil, arguments, values, pointers},
	}
	if k.Native.instance {
		k.Name = name
	}
	k.Source.Inputs, k.Source.Outputs = own.Inputs(), own.Outputs()
	for _, b := range k.Source.Inputs {
		k.Source.InputNames = append(k.Source.InputNames, b.Name)
	}
	for _, b := range k.Source.Outputs {
		k.Source.OutputNames = append(k.Source.OutputNames, b.Name)
	}
	return k, nil
}

// Pointers returns the fields of the launch's structures that hold addresses.
func (k *Kernel) Pointers() []Pointer {
	if k.Native == nil {
		return nil
	}
	return k.Native.pointers
}

// Arguments returns the template arguments of a native kernel: those of its instantiation, or the given ones by name. A
// trailing argument with a default may be missing.
func (k *Kernel) Arguments(given map[string]string) ([]string, error) {
	if k.Native.instance {
		if len(given) > 0 {
			return nil, fmt.Errorf("the instantiation %s has its own template arguments %v: leave out %s", k.Name,
				k.Native.arguments, strings.Join(slices.Sorted(maps.Keys(given)), ", "))
		}
		return k.Native.arguments, nil
	}
	var arguments []string
	missing := ""
	for _, p := range k.Parsed.Template {
		value, ok := given[p.Name]
		switch {
		case ok && missing != "":
			return nil, fmt.Errorf("the template argument %s is missing: it precedes %s", missing, p.Name)
		case ok:
			arguments = append(arguments, value)
		case p.Default != "" || strings.Contains(p.Type, "..."):
			missing = p.Name
		default:
			return nil, fmt.Errorf("the template argument %s is missing: give %[1]s=VALUE, or name an instantiation of "+
				"the file", p.Name)
		}
	}
	return arguments, nil
}

// Text returns the text of a native kernel with template arguments.
func (k *Kernel) Text(arguments []string) (string, error) {
	source, err := translate.Native(k.Parsed, arguments, k.Native.values)
	if err == nil && len(source.Unset) > 0 {
		err = unset(k.Parsed, source.Unset[0])
	}
	return source.Text, err
}

// Host translates the text of a launch for the checker.
func (k *Kernel) Host(text string, c translate.Conversions) (*translate.HostSource, error) {
	if k.Native != nil {
		return translate.HostNative(text, k.Native.values, c)
	}
	return translate.Host(text, c)
}

// Locate maps a line and column of the text of a launch to the shader's files. ok is false for lines that the shader
// does not have.
func (k *Kernel) Locate(text string, line, column int) (at msl.Position, ok bool) {
	if k.Native != nil {
		s, _ := k.Parsed.Structure()
		return s.Origin(line, column)
	}
	at, ok = k.Parsed.Locate(text, line)
	at.Column = column
	return at, ok
}

func unsized(k *msl.Kernel, argument string) error {
	return kernelError(k, fmt.Errorf("the threadgroup argument %s has no size: give it one with ThreadgroupSize, or "+
		"as %[1]s=threadgroup:ELEMENTS in a launch description", argument))
}

func unset(k *msl.Kernel, constant string) error {
	return kernelError(k, fmt.Errorf("the function constant %s has no value: give it one with FunctionConstant, or as "+
		"%[1]s=VALUE in a launch description", constant))
}

// kernelError adds the kernel's name and position to an error.
func kernelError(k *msl.Kernel, err error) error { return msl.Errorf(k.Pos, "%s: %v", k.Name, err) }

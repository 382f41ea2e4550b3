package metalsan

import (
	"context"
	"path/filepath"
	"regexp"

	"github.com/mlxgrad/mlxgrad/customkernels/launchspec"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

// source is a file with kernels: a shader, or a Python file with calls of mx.fast.metal_kernel.
type source interface {
	Names() []string
	Problem(name string) error
	// comments returns the text of a file with launch descriptions in the comments of C++.
	comments(text []byte) []byte
	kernel(ctx context.Context, spec launchspec.Spec) (*sanitizer.Kernel, error)
	// template returns the template arguments of a launch of the kernel.
	template(l sanitizer.Launch) []sanitizer.TemplateArg
}

// load reads the kernels of a file.
func load(ctx context.Context, files shaderFiles, o sanitizer.NativeOptions) (source, error) {
	if filepath.Ext(files.shader) == ".py" {
		return pythonSource{sanitizer.LoadPython(files.shader, files.text)}, nil
	}
	lib, err := sanitizer.LoadNative(ctx, files, files.shader, o)
	return shaderSource{lib}, err
}

type shaderSource struct{ *sanitizer.Library }

func (shaderSource) comments(text []byte) []byte { return text }

func (s shaderSource) kernel(_ context.Context, spec launchspec.Spec) (*sanitizer.Kernel, error) {
	return s.Kernel(spec.Kernel, spec.Options()...)
}

func (shaderSource) template(l sanitizer.Launch) []sanitizer.TemplateArg { return l.Template }

type pythonSource struct{ *sanitizer.PythonFile }

var pythonComment = regexp.MustCompile(`(?m)^([ \t]*)#`)

func (pythonSource) comments(text []byte) []byte {
	return pythonComment.ReplaceAll(text, []byte("$1//"))
}

func (p pythonSource) kernel(ctx context.Context, spec launchspec.Spec) (*sanitizer.Kernel, error) {
	inputs, outputs := map[string]sanitizer.Array{}, map[string]sanitizer.Output{}
	for _, in := range spec.Inputs {
		inputs[in.Name] = sanitizer.Array{DType: in.DType, Shape: in.Shape}
	}
	for i, name := range spec.OutputNames {
		outputs[name] = spec.Launch.Outputs[i]
	}
	return p.Kernel(ctx, spec.Kernel, spec.Launch.Template, inputs, outputs)
}

// template returns nil: MLX instantiates the kernel.
func (pythonSource) template(sanitizer.Launch) []sanitizer.TemplateArg { return nil }

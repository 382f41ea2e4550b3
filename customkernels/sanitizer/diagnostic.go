package sanitizer

import (
	"errors"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
)

// A Diagnostic is an error at a place in a shader file.
type Diagnostic struct {
	Site    Site
	Message string
}

// Diagnostics returns the places and messages of an error of this package: of a syntax error, or of each error of a
// compiler. It returns nil for an error without a place.
func Diagnostics(err error) []Diagnostic {
	var list shader.CompileErrors
	var one *msl.Error
	if !errors.As(err, &list) && errors.As(err, &one) {
		list = shader.CompileErrors{one}
	}
	var found []Diagnostic
	for _, e := range list {
		if e.Line > 0 {
			found = append(found, Diagnostic{Site{File: e.File, Line: e.Line, Column: e.Column}, e.Message})
		}
	}
	return found
}

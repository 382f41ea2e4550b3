package metalsan

import (
	"errors"
	"fmt"

	"github.com/mlxgrad/mlxgrad/customkernels/launchspec"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

// FailedFile is an error of a shader file that does not load, or that has a wrong launch description or suppression.
type FailedFile struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Error  string `json:"error"`
}

// String returns the error in the format of compilers.
func (f FailedFile) String() string {
	return fmt.Sprintf("%s:%d:%d: error: not run: %s\n", f.File, f.Line, f.Column, f.Error)
}

// problemsOf returns the errors that err holds, with their places. An error without a place gets the given one.
func problemsOf(err error, file string, line int) []FailedFile {
	var problems []FailedFile
	for _, d := range sanitizer.Diagnostics(err) {
		problems = append(problems, FailedFile{d.Site.File, max(d.Site.Line, 1), max(d.Site.Column, 1), d.Message})
	}
	if len(problems) > 0 {
		return problems
	}
	var description *launchspec.LineError
	if errors.As(err, &description) {
		line, err = description.Line, description.Err
	}
	return []FailedFile{{file, max(line, 1), 1, err.Error()}}
}

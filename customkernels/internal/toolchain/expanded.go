package toolchain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// RefuseExpanded applies [msl.Refused] to the text of a file in dir, a work folder, after macro expansion. Macros can
// paste refused words together, so that the text does not contain them. The error is a *CompileError with the line.
// Without the operator ## no macro can do so, and RefuseExpanded does nothing.
func (t *Toolchain) RefuseExpanded(ctx context.Context, dir, kernel, file, text string, flags []string) error {
	if !strings.Contains(text, "##") {
		return nil
	}
	var out bytes.Buffer
	if err := t.Preprocess(ctx, dir, kernel, &out, slices.Concat(flags, []string{"-I.", "-E", file})...); err != nil {
		return err
	}
	s, err := msl.NewStructure(file, linesOf(file, out.String()), nil)
	if err == nil {
		err = msl.Refused(s)
	}
	var refused *msl.Error
	if !errors.As(err, &refused) {
		return err
	}
	return &CompileError{Kernel: kernel, Compiler: t.String(), Output: fmt.Sprintf("%s:%d:%d: error: %s", file, refused.Line,
		refused.Column, refused.Message)}
}

var lineMarker = regexp.MustCompile(`^# (\d+) "([^"]*)"`)

// linesOf returns the lines of the preprocessor's output that come from a file, each at its line number in the file.
func linesOf(file, output string) string {
	var lines []string
	inside, number := false, 0
	for row := range strings.Lines(output) {
		if m := lineMarker.FindStringSubmatch(row); m != nil {
			inside = m[2] == file
			number, _ = strconv.Atoi(m[1])
			continue
		}
		if inside {
			for len(lines) < number {
				lines = append(lines, "")
			}
			if number > 0 {
				lines[number-1] += strings.TrimRight(row, "\r\n") + " "
			}
		}
		number++
	}
	return strings.Join(lines, "\n")
}

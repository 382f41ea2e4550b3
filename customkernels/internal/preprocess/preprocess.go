// Package preprocess runs the preprocessor of the host's C++ compiler on a shader file, with Metal's macros.
//
// The result is one text without comments, directives (except pragmas) and macros. Every line and token of it leads
// back to the file, line and column from which it comes. A token of a macro's replacement comes from the macro's name.
package preprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
)

// Options are the options of a compiler's command line.
type Options struct {
	Include []string // folders of the file system for #include, in the order of the search
	Define  []string // macros, NAME or NAME=VALUE
}

// maxText is the largest preprocessed text in bytes. A few lines of macros can expand to any size.
const maxText = 64 << 20

// Run preprocesses a shader file of a file system. The compiler reads copies of the shader and of the files that it
// includes, and no other file.
//
// The error is an [*msl.Error] with file, line and column for an #error, a missing file and a wrong directive. It is
// toolchain.ErrNoCompiler without a compiler.
func Run(ctx context.Context, fsys fs.FS, name string, o Options) (*msl.Structure, error) {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	return RunText(ctx, fsys, name, string(src), nil, o)
}

// RunText is Run for a text that is no file. lines holds the origin of each line of the text.
func RunText(ctx context.Context, fsys fs.FS, name, text string, lines []msl.Line, o Options) (*msl.Structure, error) {
	for _, d := range o.Define {
		if !define.MatchString(d) {
			return nil, fmt.Errorf("%q is no macro: write NAME or NAME=VALUE", d)
		}
	}
	t, err := toolchain.FindToolchain()
	if err != nil {
		return nil, err
	}
	c := copier{fsys: fsys, include: o.Include, numbers: map[string]int{}}
	if err := c.copy(name, text, lines); err != nil {
		return nil, err
	}
	// The output depends on the copies, the macros and the compiler alone.
	key := toolchain.Hash(slices.Concat([]string{"preprocess", t.Key(), macros()}, o.Define, []string{""}, c.copies)...)
	out, err := toolchain.Stored(key, ".preprocessed", func() ([]byte, error) { return c.preprocess(ctx, t, o.Define) })
	if err != nil {
		return nil, err
	}
	joined, origins := c.join(string(out))
	return msl.NewStructure(name, joined, origins)
}

// preprocess runs the preprocessor on the copies.
func (c *copier) preprocess(ctx context.Context, t *toolchain.Toolchain, define []string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "mlxgrad-preprocess-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for number, text := range c.copies {
		if err := os.WriteFile(filepath.Join(dir, fileName(number)), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	if err := writeMetal(dir); err != nil {
		return nil, err
	}
	args := []string{
		"-E", "-x", "c++", "-std=gnu++14", "-undef", "-nostdinc", "-w", "-I", metalFolder, "-imacros", metalMacros,
	}
	for _, d := range define {
		args = append(args, "-D"+d)
	}
	name := c.files[0].name
	var out limitedBuffer
	if err := t.Preprocess(ctx, dir, name, &out, append(args, fileName(0))...); err != nil {
		if out.full {
			return nil, msl.Errorf(msl.Position{File: name}, "the preprocessed text is larger than %d MiB; simplify "+
				"its macros", maxText>>20)
		}
		return nil, c.explain(err)
	}
	return out.text.Bytes(), nil
}

var define = regexp.MustCompile(`^[A-Za-z_]\w*(=[^\n]*)?$`)

// limitedBuffer is a buffer that refuses more than maxText bytes.
type limitedBuffer struct {
	text bytes.Buffer
	full bool
}

func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > maxText {
		b.full = true
		return 0, errors.New("the preprocessed text is too large")
	}
	return b.text.Write(p)
}

// fileName returns the name of the copy with a number.
func fileName(number int) string { return strconv.Itoa(number) + copyEnd }

const copyEnd = ".mlxg"

var message = regexp.MustCompile(`(?m)^(\d+)\.mlxg:(\d+):(?:(\d+):)? (?:fatal )?error: (.*)$`)

// explain returns the first error of the preprocessor in terms of the shader's files.
func (c *copier) explain(err error) error {
	var refused *toolchain.CompileError
	if !errors.As(err, &refused) {
		return err
	}
	m := message.FindStringSubmatch(refused.Output)
	if m == nil {
		return err
	}
	number, _ := strconv.Atoi(m[1])
	line, _ := strconv.Atoi(m[2])
	column, _ := strconv.Atoi(m[3])
	for _, r := range c.refused {
		if strings.Contains(m[4], r.name) {
			return r.err
		}
	}
	return msl.Errorf(c.files[number].position(line, max(column, 1)), "%s", m[4])
}

// join returns the preprocessor's output without line markers, and the origin of each line.
func (c *copier) join(output string) (string, []msl.Line) {
	var text strings.Builder
	var lines []msl.Line
	file, line := -1, 0
	for row := range strings.Lines(output) {
		if m := marker.FindStringSubmatch(row); m != nil {
			file = -1
			if number, isCopy := strings.CutSuffix(m[2], copyEnd); isCopy {
				file, _ = strconv.Atoi(number)
			}
			line, _ = strconv.Atoi(m[1])
			continue
		}
		if file >= 0 {
			row = strings.TrimRight(row, "\r\n")
			text.WriteString(row)
			text.WriteByte('\n')
			lines = append(lines, c.files[file].line(line, row))
		}
		line++
	}
	return text.String(), append(lines, msl.Line{Position: msl.Position{File: c.files[0].name, Line: 1, Column: 1}})
}

var marker = regexp.MustCompile(`^# (\d+) "([^"]*)"`)

// writeMetal writes the headers of Metal, which are empty, and the file with Metal's macros.
func writeMetal(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, metalMacros), []byte(macros()), 0o600); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, metalFolder, "simd"), 0o700); err != nil {
		return err
	}
	for _, name := range metalstd.HeaderNames() {
		if err := os.WriteFile(filepath.Join(dir, metalFolder, name), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

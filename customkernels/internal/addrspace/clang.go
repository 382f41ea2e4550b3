package addrspace

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/addrspace/prelude"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/confine"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/internal/cxx"
)

// The file names in #line directives, which tell clang's diagnostics for the parts of the input apart. A canary is a
// violation that the check inserts and that clang must report.
const (
	checkedText  = "mlxg_text"
	canaryKernel = "mlxg_canary_kernel"
	canaryEnd    = "mlxg_canary_end"
)

// diagnostic is an error of clang.
type diagnostic struct {
	Finding
	file string
}

// Clang returns the path of clang, or [ErrNoClang].
func Clang() (string, error) {
	if path := cxx.FindClang("clang++", "clang"); path != "" {
		return path, nil
	}
	return "", ErrNoClang
}

// readWithClang gives a text of C++ for OpenCL to clang and returns clang's errors. The cache keeps clang's output.
func readWithClang(ctx context.Context, text string) ([]diagnostic, error) {
	path, err := Clang()
	if err != nil {
		return nil, err
	}
	identity, err := toolchain.Identity(path)
	if err != nil {
		return nil, err
	}
	key := toolchain.Hash("address spaces", identity, text)
	output, err := toolchain.Stored(key, ".diagnostics", func() ([]byte, error) {
		output, err := runClang(ctx, path, text)
		if err == nil {
			_, err = parseDiagnostics(string(output), path) // an error is not kept
		}
		return output, err
	})
	if err != nil {
		return nil, err
	}
	return parseDiagnostics(string(output), path)
}

// runClang returns clang's output for a text.
func runClang(ctx context.Context, path, text string) ([]byte, error) {
	ctx, cancel := confine.Context(ctx)
	defer cancel()
	command := confine.Compiler([]string{path}, "-x", "clcpp", "-cl-std=clc++2021", "-target", "spir64-unknown-unknown",
		"-fsyntax-only", "-cl-no-stdinc", "-Wno-everything", "-ferror-limit=0",
		"-fno-caret-diagnostics", "-fno-color-diagnostics", "-fno-spell-checking", "-fno-elide-type",
		"-ftemplate-backtrace-limit=1", "-fdiagnostics-show-note-include-stack", "-")
	command.Stdin = strings.NewReader(text)
	var output confine.Output
	command.Stderr = &output
	err := command.Run(ctx)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the address-space check was interrupted: %w", context.Cause(ctx))
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("clang at %s does not run: %w; install clang 14 or later", path, err)
	}
	return []byte(output.String()), nil
}

var diagnosticLine = regexp.MustCompile(`^(.+?):(\d+):(\d+): (fatal error|error|note|warning): (.*)$`)

// parseDiagnostics parses clang's output. A fatal error, or an error without a position, means that clang did not
// read the text.
func parseDiagnostics(output, path string) ([]diagnostic, error) {
	var list []diagnostic
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\r\n")
		m := diagnosticLine.FindStringSubmatch(line)
		if m == nil {
			if strings.Contains(line, "error: ") || strings.Contains(line, "PLEASE submit a bug report") {
				return nil, fmt.Errorf("clang at %s could not run the address-space check: %s; install clang 14 or "+
					"later", path, line)
			}
			continue
		}
		message := metalNames.Replace(m[5])
		row, _ := strconv.Atoi(m[2])
		column, _ := strconv.Atoi(m[3])
		switch m[4] {
		case "fatal error":
			return nil, fmt.Errorf("clang stopped the address-space check at line %d: %s; correct the shader there",
				row, message)
		case "error":
			list = append(list, diagnostic{Finding{Line: row, Column: column, Message: message}, m[1]})
		case "note":
			if len(list) > 0 {
				last := &list[len(list)-1]
				last.Notes = append(last.Notes, message)
			}
		}
	}
	return list, nil
}

// metalNames replaces OpenCL's names of the address spaces by Metal's, and restores the words that the translation
// renamed because OpenCL reserves them.
var metalNames = strings.NewReplacer("__global", "device", "__constant", "constant", "__local", "threadgroup",
	"__private", "thread", "__generic", "generic",
	"mlxg_local", "local", "mlxg_global", "global", "mlxg_generic", "generic", "mlxg_pipe", "pipe")

// explained returns the finding. If only a note mentions address spaces, the message includes that note.
func (d diagnostic) explained() Finding {
	f := d.Finding
	if aboutSpaces(f.Message) {
		return f
	}
	if i := slices.IndexFunc(f.Notes, aboutSpaces); i >= 0 {
		f.Message += ": " + f.Notes[i]
	}
	return f
}

// aboutSpaces reports whether an error is about address spaces: its message or a note mentions them, or names two
// types that differ only in the address spaces of their pointers.
func (d diagnostic) aboutSpaces() bool {
	return aboutSpaces(d.Message) || slices.ContainsFunc(d.Notes, aboutSpaces)
}

var quotedType = regexp.MustCompile(`'([^']*)'`)

func aboutSpaces(message string) bool {
	if strings.Contains(message, "address space") {
		return true
	}
	object := strings.Contains(message, "object parameter of type") // the object of a member function
	var types []string
	for _, m := range quotedType.FindAllStringSubmatch(message, -1) {
		if object {
			types = append(types, pointees(m[1]+"&"))
		} else if strings.ContainsAny(m[1], "*&[") {
			types = append(types, pointees(m[1]))
		}
	}
	for _, t := range types {
		if t != types[0] {
			return true
		}
	}
	return false
}

// pointees returns the address spaces to which a type's pointers, references and arrays refer.
func pointees(kind string) string {
	var spaces []string
	space := "thread"
	for _, t := range msl.Tokenize(kind) {
		switch {
		case msl.IsAddressSpace(t.Text) || t.Is("generic"):
			space = t.Text
		case t.Is("*") || t.Is("&") || t.Is("&&") || t.Is("["):
			spaces = append(spaces, space)
			space = "thread"
		}
	}
	return strings.Join(spaces, " ")
}

var ambiguousCall = regexp.MustCompile(`^call to '(\w+)' is ambiguous$`)

// ambiguous reports whether the error is an ambiguous call of one of Metal's functions.
func (d diagnostic) ambiguous() bool {
	m := ambiguousCall.FindStringSubmatch(d.Message)
	return m != nil && prelude.Functions()[m[1]]
}

// harmless reports whether OpenCL rejects a construct that Metal allows: the copy of a structure in constant memory, a
// member function of a temporary object, or a conditional operator of a temporary object and a variable. In OpenCL a
// temporary is in no address space; in Metal it is in thread memory. Clang does not check the rest of the expression.
func (d diagnostic) harmless() bool {
	return strings.Contains(d.Message, temporary) || d.sameOperandTypes() || slices.ContainsFunc(d.Notes, func(n string) bool {
		return strings.Contains(n, temporary) || strings.Contains(n, genericObject) || strings.Contains(n, "(the implicit copy ") &&
			strings.Contains(n, "cannot bind reference in address space 'constant' to object in address space "+
				"'generic'")
	})
}

// aliasOf matches clang's explanation of an alias of a type.
var aliasOf = regexp.MustCompile(` \(aka '[^']*'\)`)

// sameOperandTypes reports whether clang rejects a conditional operator only because one value is a variable in thread
// memory and the other is a temporary of the same type.
func (d diagnostic) sameOperandTypes() bool {
	operands, found := strings.CutPrefix(d.Message, "incompatible operand types (")
	if !found {
		return false
	}
	types := map[string]bool{}
	for _, m := range quotedType.FindAllStringSubmatch(aliasOf.ReplaceAllString(operands, ""), -1) {
		name := strings.TrimPrefix(m[1], "thread ")
		if strings.ContainsAny(name, "*&[") {
			return false
		}
		types[name] = true
	}
	return len(types) == 1
}

// refusesTemporary reports whether the error may mean that a temporary object does not bind to a reference to thread
// memory, also in one of several overloads.
func (d diagnostic) refusesTemporary() bool {
	if strings.Contains(d.Message, "cannot bind to a temporary object because of address space mismatch") ||
		strings.Contains(d.Message, "binding reference of type") &&
			strings.HasSuffix(d.Message, "changes address space") {
		m := quotedType.FindStringSubmatch(d.Message)
		return m != nil && strings.HasSuffix(pointees(strings.TrimSuffix(m[1], "&")+"&"), "thread")
	}
	return slices.ContainsFunc(d.Notes, func(n string) bool {
		return strings.Contains(n, "cannot bind reference in default address space to object in address space 'thread'")
	})
}

// genericObject is clang's explanation for an object without an address space, which the translation did not place.
// Metal's objects have one.
const genericObject = "'this' object is in address space 'generic', but method expects object in address space 'thread'"

const temporary = "'this' object is in default address space, but method expects object in address space 'thread'"

package upgrade

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/internal/cxx"
)

// clang runs clang++, from whose syntax trees and error messages the tool reads declarations and their uses.
type clang struct {
	ctx  context.Context
	name string
}

// findClang returns the first clang++ on the PATH.
func findClang(ctx context.Context) (clang, error) {
	if path := cxx.FindClang("clang++"); path != "" {
		return clang{ctx, path}, nil
	}
	return clang{}, errors.New("clang++ is not on the PATH: install clang 14 or later")
}

// A compileError is one error of a compiler.
type compileError struct {
	File     string
	Line     int
	Function string // the function around it, if known
	Message  string
	Notes    []string // the compiler's notes, such as candidates
}

// Place returns the file and line.
func (e compileError) Place() string { return e.File + ":" + strconv.Itoa(e.Line) }

// run parses a source text in folder dir and returns clang's output and all errors in the text.
func (c clang) run(dir, text string, flags ...string) ([]byte, []compileError, error) {
	args := append([]string{
		"-std=c++20", "-fsyntax-only", "-w", "-ferror-limit=0", "-fno-caret-diagnostics",
		"-fno-color-diagnostics",
	}, flags...)
	return c.start(dir, text, append(args, "-x", "c++", "-")...)
}

// start runs clang++ in folder dir with text as standard input. It returns the output and the errors in its messages.
func (c clang) start(dir, text string, args ...string) ([]byte, []compileError, error) {
	cmd := exec.CommandContext(c.ctx, c.name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.Stdin = strings.NewReader(text)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	errs := parseErrors(stderr.String())
	if err != nil && len(errs) == 0 {
		return nil, nil, fmt.Errorf("%s: %w: %s", c.name, err, strings.TrimSpace(stderr.String()))
	}
	return out, errs, nil
}

var diagnostic = regexp.MustCompile(`^(.+?):(\d+):\d+: (error|fatal error|note): (.*)$`)

// parseErrors returns the errors in a compiler's messages, each with its notes.
func parseErrors(messages string) (errs []compileError) {
	for line := range strings.Lines(messages) {
		m := diagnostic.FindStringSubmatch(strings.TrimSpace(line))
		switch {
		case m == nil:
		case m[3] != "note":
			number, _ := strconv.Atoi(m[2]) // digits, by the pattern
			errs = append(errs, compileError{File: filepath.ToSlash(filepath.Clean(m[1])), Line: number, Message: m[4]})
		case len(errs) > 0:
			e := &errs[len(errs)-1]
			e.Notes = append(e.Notes, m[4])
		}
	}
	return errs
}

// macros returns the macros that MLX's headers define.
func (c clang) macros(include, text string) ([]declaration, error) {
	out, _, err := c.start(include, text, "-std=c++20", "-E", "-dD", "-w", "-I"+include, "-x", "c++", "-")
	if err != nil {
		return nil, err
	}
	var found []declaration
	header, inMLX := "", false
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := lineMarker.FindStringSubmatch(line); m != nil {
			rel, err := filepath.Rel(include, m[1])
			header, inMLX = filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
			continue
		}
		m := define.FindStringSubmatch(line)
		if m == nil || !inMLX {
			continue
		}
		found = append(found, declaration{Kind: kindMacro, Name: m[1], Header: header, Value: strings.TrimSpace(m[2])})
	}
	return found, lines.Err()
}

var (
	lineMarker = regexp.MustCompile(`^# \d+ "(.*)"`)
	define     = regexp.MustCompile(`^#define (\w+)(.*)`)
)

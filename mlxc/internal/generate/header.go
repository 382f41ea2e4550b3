package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A declaration is one function of mlx-c's headers.
type declaration struct {
	name   string // such as "mlx_add"
	header string // such as "ops"
	result string // the C type
	params []parameter
	whole  string // for a function over a list of axes: the name of the function over all axes; otherwise ""
}

type parameter struct {
	name, ctype string
	nullable    bool
}

// signature returns the declaration in C on one line.
func (d declaration) signature() string {
	var params []string
	for _, p := range d.params {
		params = append(params, p.ctype+" "+p.name)
	}
	return fmt.Sprintf("%s %s(%s)", d.result, d.name, strings.Join(params, ", "))
}

// nameWhole sets, for functions over a list of axes, the name of the function over all axes.
func nameWhole(all []declaration) {
	params := map[string][]parameter{}
	for _, d := range all {
		params[d.name] = d.params
	}
	for i, d := range all {
		name, over := strings.CutSuffix(d.name, "_axes")
		rest := slices.DeleteFunc(slices.Clone(d.params),
			func(p parameter) bool { return p.name == "axes" || p.name == "axes_num" })
		if over && slices.Equal(params[name], rest) {
			all[i].whole = name
		}
	}
}

// aheadHeader declares functions that mlx-c lacks, in mlx-c's style. mlxg_ahead.cpp defines them. The declarations of
// this header have the header name ahead.
const (
	ahead       = "ahead"
	aheadHeader = "mlxg_" + ahead + ".h"
)

// isAhead reports whether a file of libmlxg declares or defines the functions of aheadHeader.
func isAhead(base string) bool {
	return strings.TrimSuffix(base, filepath.Ext(base)) == strings.TrimSuffix(aheadHeader, ".h")
}

// readHeaders reads all headers of the folder in the order of their names, and then libmlxg's own.
func readHeaders(dir, own string) ([]declaration, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.h"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there are no headers in %s: run ./build.sh setup", dir)
	}
	slices.Sort(files)
	var all []declaration
	names := map[string]bool{}
	for _, f := range append(files, own) {
		text, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		found, err := parseHeader(strings.TrimPrefix(strings.TrimSuffix(filepath.Base(f), ".h"), "mlxg_"), string(text))
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			if names[d.name] && f == own {
				return nil, fmt.Errorf("mlx-c declares %s: remove it from %s", d.name, aheadHeader)
			}
			names[d.name] = true
		}
		all = append(all, found...)
	}
	nameWhole(all)
	return all, nil
}

var (
	nullable   = regexp.MustCompile(`/\*\s*may be null\s*\*/`)
	comment    = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	directive  = regexp.MustCompile(`(?m)^\s*#(?:[^\n]*\\\n)*[^\n]*$`)
	structBody = regexp.MustCompile(`(?s)typedef\s+(?:struct|enum)\s+\w*\s*\{.*?\}\s*\w+\s*;`)
	inline     = regexp.MustCompile(`(?s)static\s+inline\s+[^;{]*\{.*?\n\}`)
	function   = regexp.MustCompile(`(?s)^(.*?)\b(_?mlx_\w+)\s*\((.*)\)$`)
	space      = regexp.MustCompile(`\s+`)
)

// parseHeader parses the declarations of a header. mlx-c's are regular: every function is `type name(parameters);` at
// the top level, and a comment marks parameters that may be null.
func parseHeader(header, text string) ([]declaration, error) {
	text = nullable.ReplaceAllString(text, "NULLABLE")
	text = comment.ReplaceAllString(text, "")
	text = directive.ReplaceAllString(text, "")
	text = strings.ReplaceAll(text, `extern "C" {`, "")
	text = inline.ReplaceAllString(text, "")
	text = structBody.ReplaceAllString(text, "")
	var all []declaration
	for _, statement := range strings.Split(text, ";") {
		statement = strings.TrimSpace(space.ReplaceAllString(statement, " "))
		m := function.FindStringSubmatch(statement)
		if m == nil || strings.HasPrefix(statement, "typedef") || strings.HasPrefix(statement, "struct") {
			continue
		}
		d := declaration{name: m[2], header: header, result: strings.TrimSpace(m[1])}
		for _, p := range splitParameters(m[3]) {
			parsed, err := parseParameter(p)
			if err != nil {
				return nil, fmt.Errorf("%s.h: %s: %w", header, d.name, err)
			}
			d.params = append(d.params, parsed)
		}
		all = append(all, d)
	}
	return all, nil
}

// splitParameters splits at the commas outside of a function pointer's parameter list.
func splitParameters(list string) []string {
	if list = strings.TrimSpace(list); list == "" || list == "void" {
		return nil
	}
	var out []string
	depth, start := 0, 0
	for i, c := range list {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, list[start:i])
				start = i + 1
			}
		}
	}
	return append(out, list[start:])
}

var plainParameter = regexp.MustCompile(`^(.*[\s*])(\w+)(?:\[\])?$`)

func parseParameter(text string) (parameter, error) {
	p := parameter{nullable: strings.Contains(text, "NULLABLE")}
	text = strings.TrimSpace(strings.ReplaceAll(text, "NULLABLE", ""))
	if text == "..." {
		p.ctype = text
		return p, nil
	}
	if strings.Contains(text, "(*") {
		p.name, p.ctype = "function", text
		return p, nil
	}
	m := plainParameter.FindStringSubmatch(text)
	if m == nil {
		return p, fmt.Errorf("the parameter %q cannot be read", text)
	}
	p.name = m[2]
	p.ctype = strings.TrimSpace(strings.ReplaceAll(m[1], " *", "*"))
	return p, nil
}

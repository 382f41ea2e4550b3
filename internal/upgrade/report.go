package upgrade

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A report is the result of comparing two releases.
type report struct {
	From, To  string // versions of MLX
	MLXC      string
	Rules     []string
	Entry     string   // of the lock file
	Written   bool     // the entry is in the lock file
	Packages  []string // notes on the packages that MLX requires
	Changes   []change
	Headers   []string // included headers that the new release lacks
	Unfit     []error  // patch rules that do not fit
	Errors    []compileError
	Built     bool  // there are no Errors, so Build has the result of compiling and loading the libraries
	Build     error // nil if the libraries were compiled, linked and loaded
	Generated []string
	Generator error
}

// A format writes the parts of a report as plain text or Markdown.
type format interface {
	heading(level int, text string) string
	code(text string) string // within a line
	block(text string) string
}

type plain struct{}

func (plain) heading(level int, text string) string {
	return "\n" + strings.Repeat("=", 4-level) + " " + text + "\n"
}

func (plain) code(text string) string  { return text }
func (plain) block(text string) string { return text + "\n" }

type markdown struct{}

func (markdown) heading(level int, text string) string {
	return "\n" + strings.Repeat("#", level) + " " + text + "\n\n"
}

func (markdown) code(text string) string  { return "`` " + text + " ``" }
func (markdown) block(text string) string { return "```json\n" + text + "\n```\n" }

// item writes a line of a list. Plain text and Markdown have the same lists.
func item(depth int, text string) string { return strings.Repeat("  ", depth) + "- " + text + "\n" }

// short removes the namespace mlx::core, which nearly all declarations have.
func short(text string) string { return strings.ReplaceAll(text, "mlx::core::", "") }

// write writes the report.
func (r *report) write(out io.Writer, f format) error {
	var b strings.Builder
	title := fmt.Sprintf("MLX %s with mlx-c %s, compared with MLX %s", r.To, r.MLXC, r.From)
	b.WriteString(strings.TrimPrefix(f.heading(1, title), "\n"))
	r.writeChanges(&b, f)
	r.writeCompilation(&b, f)
	b.WriteString(f.heading(2, "Packages"))
	items(&b, r.Packages, "MLX requires the same packages in the same versions.")
	b.WriteString(f.heading(2, "Entry of the lock file"))
	if r.Written {
		b.WriteString("It is written to third_party/mlx-c/lock.json, with \"tested\": false.\n")
	} else {
		b.WriteString(f.block(strings.TrimSpace(r.Entry)))
	}
	b.WriteString(f.heading(2, "Decisions for a person"))
	items(&b, r.decisions(f), "")
	_, err := io.WriteString(out, b.String())
	return err
}

func items(b *strings.Builder, lines []string, none string) {
	for _, l := range lines {
		b.WriteString(item(0, l))
	}
	if len(lines) == 0 {
		b.WriteString(none + "\n")
	}
}

func (r *report) writeChanges(b *strings.Builder, f format) {
	var used, unused []change
	for _, c := range r.Changes {
		if len(c.Users) > 0 {
			used = append(used, c)
		} else {
			unused = append(unused, c)
		}
	}
	b.WriteString(f.heading(2, fmt.Sprintf("Changed declarations in use: %d", len(used))))
	for _, c := range used {
		c.write(b, f)
		b.WriteString(item(1, "used by "+few(c.Users)))
	}
	b.WriteString(f.heading(2, fmt.Sprintf("Other changed declarations: %d", len(unused))))
	for _, c := range unused {
		c.write(b, f)
	}
}

// write writes the declaration and the differences.
func (c change) write(b *strings.Builder, f format) {
	b.WriteString(item(0, c.kindOf()+" in "+c.declaration().Header+": "+f.code(short(c.declaration().String()))))
	for _, d := range c.Details {
		b.WriteString(item(1, f.code(short(d))))
	}
}

// few joins names, at most four of them.
func few(names []string) string {
	const most = 4
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

func (r *report) writeCompilation(b *strings.Builder, f format) {
	b.WriteString(f.heading(2, fmt.Sprintf("Patch rules of mlx-c (%s)", strings.Join(r.Rules, ", "))))
	var unfit []string
	for _, err := range r.Unfit {
		unfit = append(unfit, err.Error())
	}
	items(b, unfit, "All rules fit.")
	b.WriteString(f.heading(2, fmt.Sprintf("Compiler errors: %d", len(r.Errors))))
	for _, h := range r.Headers {
		b.WriteString(item(0, "the release has no header "+h))
	}
	file := ""
	for _, e := range r.Errors {
		if e.File != file {
			file = e.File
			b.WriteString(item(0, file))
		}
		b.WriteString(item(1, fmt.Sprintf("line %d, %s: %s", e.Line, e.where(), e.Message)))
		for _, n := range e.Notes {
			b.WriteString(item(2, f.code(short(n))))
		}
	}
	switch {
	case !r.Built:
		b.WriteString("The libraries were not linked.\n")
	case r.Build != nil:
		b.WriteString(item(0, r.Build.Error()))
	default:
		b.WriteString("libmlxc and libmlxg were compiled, linked and loaded.\n")
	}
	b.WriteString(f.heading(2, "Generated bindings"))
	lines := r.Generated
	if r.Generator != nil {
		lines = append(lines, r.Generator.Error())
	}
	items(b, lines, "Nothing would change.")
}

// where returns the function around an error.
func (e compileError) where() string {
	if e.Function == "" {
		return "outside of functions"
	}
	return e.Function
}

// decisions lists the remaining work in the order of doing it.
func (r *report) decisions(f format) (lines []string) {
	add := func(format string, args ...any) {
		if line := fmt.Sprintf(format, args...); !slices.Contains(lines, line) { // overloads give equal lines
			lines = append(lines, line)
		}
	}
	if len(r.Unfit) > 0 {
		add("Adapt %d patch rules in third_party/mlx-c/patches.", len(r.Unfit))
	}
	for _, e := range r.Errors {
		key := e.File + ", " + e.where()
		if strings.HasPrefix(e.File, "libmlxg/") {
			add("Change %s of libmlxg so that it compiles against both releases.", key)
		} else {
			add("Decide how %s calls MLX %s, and write a patch rule.", key, r.To)
		}
	}
	if r.Build != nil {
		add("Find out why the libraries do not link or load: %v", r.Build)
	}
	for _, c := range r.Changes {
		d := c.declaration()
		switch {
		case d.Kind == kindMacro && d.Header == "mlx/version.h":
		case len(c.Users) > 0 && c.Old != nil:
			add("%s was %s: check its users, %s.", f.code(short(d.Name)), c.kindOf(), few(c.Users))
		case len(c.Users) > 0:
			add("%s is new: check whether it concerns %s.", f.code(short(d.Name)), few(c.Users))
		case c.Old == nil && d.Kind == kindFunction && d.Owner == "":
			add("%s is new and mlx-c lacks it: decide whether mlxc needs it.", f.code(short(d.Name)))
		}
	}
	for _, p := range r.Packages {
		add("Check a package. %s.", p)
	}
	if len(r.Generated) > 0 || r.Generator != nil {
		add("Run go generate ./mlxc and review the difference.")
	}
	if !r.Written {
		add("Add the entry with ./build.sh upgrade %s --write.", r.To)
	}
	add("Run ./build.sh setup --mlx %s, ./build.sh test and ./build.sh parity, and the same on a Mac and on an NVIDIA GPU.", r.To)
	add("Set tested, and default if it is to be the default, in the lock file; complete NOTICE.md and CHANGELOG.md.")
	return lines
}

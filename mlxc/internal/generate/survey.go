package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// skippedText lists functions without a binding, by name or prefix, with the reason.
//
//go:embed skipped.txt
var skippedText string

// testedText lists bound functions without a value test, with the name of another test.
//
//go:embed tested.txt
var testedText string

// untestedText lists bound functions whose results cannot be tested here, with the reason.
//
//go:embed untested.txt
var untestedText string

// coverage describes the binding of each function of the headers.
type coverage struct {
	declarations []declaration
	byHand       map[string]string // the file
	skipped      map[string]string // the reason
	stale        []string          // entries of skipped.txt without an unbound function
}

// survey reads the headers, the package's hand-written files and skipped.txt.
func survey(headers, pkg string) (*coverage, error) {
	all, err := readHeaders(headers, filepath.Join(pkg, "libmlxg", aheadHeader))
	if err != nil {
		return nil, err
	}
	c := &coverage{declarations: all, byHand: map[string]string{}, skipped: map[string]string{}}
	if err := c.findByHand(pkg); err != nil {
		return nil, err
	}
	c.stale, err = c.readSkipped(skippedText)
	return c, err
}

var usedName = regexp.MustCompile(`\b_?mlx_\w+\b`)

// findByHand finds the functions that hand-written C, C++ and cgo files of the package mention.
func (c *coverage) findByHand(pkg string) error {
	known := map[string]bool{}
	for _, d := range c.declarations {
		known[d.name] = true
	}
	for _, pattern := range []string{"*.go", "*.h", "libmlxg/*.h", "libmlxg/*.cpp"} {
		files, err := filepath.Glob(filepath.Join(pkg, pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			base := filepath.Base(f)
			if strings.HasPrefix(base, generatedPrefix) || strings.HasSuffix(base, "_test.go") || isAhead(base) {
				continue
			}
			text, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			for _, name := range usedName.FindAllString(comment.ReplaceAllStringFunc(string(text), keepCgo), -1) {
				if known[name] {
					c.byHand[name] = base
				}
			}
		}
	}
	return nil
}

// keepCgo blanks comments except the cgo preamble, since comments may mention functions.
func keepCgo(text string) string {
	if strings.Contains(text, "#include") {
		return text
	}
	return ""
}

// readSkipped stores the reasons and returns the unused entries.
func (c *coverage) readSkipped(text string) ([]string, error) {
	r, err := readReasons(text)
	if err != nil {
		return nil, fmt.Errorf("skipped.txt: %w", err)
	}
	for _, d := range c.declarations {
		if c.byHand[d.name] != "" {
			continue
		}
		if reason := r.of(d.name); reason != "" {
			c.skipped[d.name] = reason
		}
	}
	return r.unused(), nil
}

// generated returns the declarations that emit binds.
func (c *coverage) generated() []declaration {
	var out []declaration
	for _, d := range c.declarations {
		if c.byHand[d.name] == "" && c.skipped[d.name] == "" && d.regular() {
			out = append(out, d)
		}
	}
	return out
}

// how describes the binding of a function, or returns "" if it is unbound.
func (c *coverage) how(d declaration) string {
	switch {
	case c.byHand[d.name] != "":
		return "by hand in " + c.byHand[d.name]
	case c.skipped[d.name] != "":
		return "skipped: " + c.skipped[d.name]
	case d.regular():
		return "generated"
	}
	return ""
}

func (c *coverage) print(out io.Writer) {
	count := map[string]int{}
	for _, d := range c.declarations {
		how := c.how(d)
		if how == "" {
			how = "MISSING"
		}
		kind, _, _ := strings.Cut(how, " ")
		count[strings.TrimSuffix(kind, ":")]++
		fmt.Fprintf(out, "%s\t%s\t%s\n", d.header, d.name, how)
	}
	fmt.Fprintf(out, "%d functions: %d generated, %d by hand, %d skipped, %d missing\n",
		len(c.declarations), count["generated"], count["by"], count["skipped"], count["MISSING"])
}

// err returns an error that lists unbound functions and unused entries of skipped.txt.
func (c *coverage) err() error {
	var errs []error
	for _, d := range c.declarations {
		if c.how(d) == "" {
			errs = append(errs,
				fmt.Errorf("%s.h: %s is neither regular, nor bound by hand, nor in skipped.txt", d.header,
					d.signature()))
		}
	}
	for _, name := range c.stale {
		errs = append(errs, fmt.Errorf("skipped.txt: %s matches no unbound function", name))
	}
	return errors.Join(errs...)
}

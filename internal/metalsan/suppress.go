package metalsan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

// suppression is a comment that accepts findings at a line:
//
//	y[0] = 1; // metalsan: allow same-value-write: all threads write 1
//
// A comment that is alone on its line applies to the next line.
type suppression struct {
	file         string
	line, column int // place of the comment
	target       int // line of the findings
	kinds        []string
	reason       string
	used         bool
}

var (
	suppressionComment = regexp.MustCompile(`(?://|#)[ \t]*metalsan:[ \t]*(.*?)[ \t\r]*$`)
	suppressionSyntax  = regexp.MustCompile(`^allow[ \t]+([a-z][a-z, -]*?)[ \t]*(?::[ \t]*(.*))?$`)
)

// addSuppressions adds the suppressions in the files that a shader consists of.
func (c *Chosen) addSuppressions(files shaderFiles) {
	for _, name := range slices.Sorted(maps.Keys(files.read)) {
		found, problems := parseSuppressions(name, string(files.read[name]))
		c.suppressions = append(c.suppressions, found...)
		c.Failed = append(c.Failed, problems...)
	}
}

// mergeSuppressions adds suppressions of another shader, which may include the same files.
func (c *Chosen) mergeSuppressions(more []*suppression) {
	for _, s := range more {
		if !slices.ContainsFunc(c.suppressions, func(o *suppression) bool { return o.file == s.file && o.line == s.line }) {
			c.suppressions = append(c.suppressions, s)
		}
	}
}

func parseSuppressions(file, text string) (found []*suppression, problems []FailedFile) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		if !strings.Contains(line, "metalsan:") {
			continue
		}
		line = strings.TrimRight(line, "\r\n")
		at := suppressionComment.FindStringSubmatchIndex(line)
		if at == nil {
			continue
		}
		s := &suppression{file: file, line: number, column: at[0] + 1, target: number}
		if strings.TrimSpace(line[:at[0]]) == "" {
			s.target++
		}
		fail := func(format string, args ...any) {
			problems = append(problems, FailedFile{file, number, s.column, fmt.Sprintf(format, args...)})
		}
		m := suppressionSyntax.FindStringSubmatch(line[at[2]:at[3]])
		switch {
		case m == nil:
			fail("%q is no suppression: write \"metalsan: allow KIND: REASON\"", line[at[2]:at[3]])
			continue
		case m[2] == "":
			fail("the suppression of %s has no reason: write \"metalsan: allow %[1]s: REASON\"", m[1])
			continue
		}
		s.reason = m[2]
		for kind := range strings.SplitSeq(m[1], ",") {
			kind = strings.TrimSpace(kind)
			if !slices.Contains(sanitizer.FindingKinds(), sanitizer.FindingKind(kind)) {
				fail("%q is no kind of finding; the kinds are %v", kind, sanitizer.FindingKinds())
				continue
			}
			s.kinds = append(s.kinds, kind)
		}
		found = append(found, s)
	}
	return found, problems
}

// accepts reports whether the suppression accepts a finding, at either of its places.
func (s *suppression) accepts(f sanitizeFinding) bool {
	at := func(site findingSite) bool { return site.File == s.file && site.Line == s.target }
	return slices.Contains(s.kinds, f.Kind) && (at(f.Site) || f.Other != nil && at(*f.Other))
}

// reasonFor returns the reason of the suppression that accepts a finding, or the empty string.
func reasonFor(list []*suppression, f sanitizeFinding) string {
	for _, s := range list {
		if s.accepts(f) {
			s.used = true
			return s.reason
		}
	}
	return ""
}

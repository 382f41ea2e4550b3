package metalsan

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"strings"
)

// The types below are the part of JUnit's XML that a report needs: a suite per file, a case per launch.
type (
	junitReport struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class    string         `xml:"classname,attr"`
		Name     string         `xml:"name,attr"`
		Time     string         `xml:"time,attr"`
		Failures []junitMessage `xml:"failure"`
		Error    *junitMessage  `xml:"error"`
		Skipped  *junitMessage  `xml:"skipped"`
	}
	junitMessage struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",chardata"`
	}
)

// newJUnit returns the report in JUnit's format. Findings that do not fail the run are left out.
func newJUnit(r *Report) junitReport {
	var out junitReport
	add := func(file string, c junitCase) {
		if n := len(out.Suites); n == 0 || out.Suites[n-1].Name != file {
			out.Suites = append(out.Suites, junitSuite{Name: file})
		}
		s := &out.Suites[len(out.Suites)-1]
		s.Cases = append(s.Cases, c)
		s.Tests++
		switch {
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		case len(c.Failures) > 0:
			s.Failures++
		}
	}
	for _, f := range r.FailedFiles {
		add(f.File, junitCase{Class: f.File, Name: "load", Time: "0", Error: &junitMessage{Message: f.Error, Text: f.String()}})
	}
	for _, l := range r.Launches {
		c := junitCase{Class: l.Kernel, Name: l.Launch, Time: fmt.Sprintf("%.3f", l.Seconds)}
		if l.Error != "" {
			c.Error = &junitMessage{Message: l.Error, Text: l.Error}
		} else if l.Unchecked != "" && r.Strict {
			c.Error = &junitMessage{Message: "address spaces not checked: " + l.Unchecked}
		}
		for _, f := range l.Findings {
			if !f.accepted() && (f.failing() || r.Strict) {
				text := findingGroup{f, []string{l.Launch}}.String()
				c.Failures = append(c.Failures, junitMessage{f.Message, f.Kind, text})
			}
		}
		add(cmp.Or(l.File, "kernels of this project"), c)
	}
	for _, problem := range r.Unsupported {
		name, reason, _ := strings.Cut(problem, ": ")
		add("not run", junitCase{Class: name, Name: name, Time: "0", Skipped: &junitMessage{Message: reason}})
	}
	for _, name := range r.WithoutLaunch {
		add("not run", junitCase{Class: name, Name: name, Time: "0", Skipped: &junitMessage{Message: "no launch description"}})
	}
	for _, s := range out.Suites {
		out.Tests, out.Failures, out.Errors, out.Skipped = out.Tests+s.Tests, out.Failures+s.Failures, out.Errors+s.Errors,
			out.Skipped+s.Skipped
	}
	return out
}

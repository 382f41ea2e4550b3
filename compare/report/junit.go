package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
)

// The elements of JUnit's XML that continuous integration reads. There is no standard; these are in the schemas of
// Ant and Jenkins. Every count and time is present, because some readers show a missing number as NaN.
type (
	junitRun struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Time     seconds      `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"` // always 0: a row passes or fails
		Time       seconds         `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr,omitempty"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Time    seconds       `xml:"time,attr"` // 0 if only the suite was timed
		Failure *junitProblem `xml:"failure"`
		Error   *junitProblem `xml:"error"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitProblem struct {
		Type    string `xml:"type,attr"`
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes a test suite for each operation and dtype, with a test case for each row and one for a judged mean
// ratio. A run that is incomplete or has no rows is an error.
func (r *Report) WriteJUnit(w io.Writer) error {
	run := junitRun{Name: "mlxgrad parity"}
	suiteOf := map[[2]string]int{}
	properties := junitProperties(r.MLX, r.MLXC, r.Device, r.Executor, r.TF32)
	add := func(op, dtype string, c junitCase) {
		at, ok := suiteOf[[2]string{op, dtype}]
		if !ok {
			at = len(run.Suites)
			suiteOf[[2]string{op, dtype}] = at
			run.Suites = append(run.Suites, junitSuite{Name: op + " " + dtype, Properties: properties})
		}
		c.Class = "mlxgrad." + op + "." + dtype
		run.Suites[at].Cases = append(run.Suites[at].Cases, c)
	}
	for _, c := range r.Rows {
		one := junitCase{Name: c.Name + " " + c.Output}
		if !c.Pass {
			one.Failure = &junitProblem{"accuracy", firstLine(c.Message), c.Message}
		}
		add(c.Op, c.DType, one)
	}
	for _, s := range r.Suites {
		if s.Judged {
			one := junitCase{Name: "mean ratio"}
			if !s.Pass {
				one.Failure = &junitProblem{"accuracy", s.verdict(), s.verdict()}
			}
			add(s.Op, s.DType, one)
		}
		if at, ok := suiteOf[[2]string{s.Op, s.DType}]; ok {
			run.Suites[at].Time = seconds(s.Seconds)
		}
	}
	return run.write(w, r.Incomplete, len(r.Rows))
}

// WriteJUnit writes a test suite for each operation, with a test case for each row. The time of a case is our median. A
// run that is incomplete or has no rows is an error.
func (b *Bench) WriteJUnit(w io.Writer) error {
	run := junitRun{Name: "mlxgrad bench"}
	for i, r := range b.Rows {
		if i == 0 || r.Op != b.Rows[i-1].Op {
			run.Suites = append(run.Suites, junitSuite{
				Name: r.Op, Timestamp: b.Started.Format("2006-01-02T15:04:05"),
				Properties: junitProperties(b.MLX, b.MLXC, b.DeviceName, b.Executor, b.TF32),
			})
		}
		one := junitCase{Class: "mlxgrad." + r.Op + "." + r.DType, Name: fmt.Sprintf("%s %s %s", r.Case, r.DType, r.Pass)}
		if r.Error != "" {
			one.Failure = &junitProblem{"bench", firstLine(r.Error), r.Error}
		} else {
			one.Time, one.Output = seconds(r.Ours.Median/1e6), r.Line()
		}
		last := &run.Suites[len(run.Suites)-1]
		last.Cases, last.Time = append(last.Cases, one), last.Time+one.Time
	}
	return run.write(w, b.Incomplete, len(b.Rows))
}

func junitProperties(mlx, mlxC, device, executor, tf32 string) []junitProperty {
	p := []junitProperty{{"mlx", mlx}, {"mlx_c", mlxC}, {"device", device}, {"executor", executor}}
	if tf32 != "" {
		p = append(p, junitProperty{"tf32", tf32})
	}
	return p
}

// write counts the cases and writes the document.
func (run junitRun) write(w io.Writer, incomplete bool, rows int) error {
	if why := runFault(incomplete, rows); why != "" {
		run.Suites = append(run.Suites, junitSuite{Name: "run", Cases: []junitCase{
			{Class: "mlxgrad", Name: "run", Error: &junitProblem{"run", why, why}},
		}})
	}
	for i := range run.Suites {
		s := &run.Suites[i]
		for _, c := range s.Cases {
			s.Tests++
			if c.Failure != nil {
				s.Failures++
			}
			if c.Error != nil {
				s.Errors++
			}
		}
		run.Tests, run.Failures, run.Errors = run.Tests+s.Tests, run.Failures+s.Failures, run.Errors+s.Errors
		run.Time += s.Time
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return fmt.Errorf("writing JUnit's XML: %w", err)
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(run); err != nil {
		return fmt.Errorf("writing JUnit's XML: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// runFault says why a run as a whole failed. It is "" if only its rows decide.
func runFault(incomplete bool, rows int) string {
	switch {
	case incomplete:
		return "interrupted: some rows are missing"
	case rows == 0:
		return "nothing ran"
	}
	return ""
}

// seconds is a time without an exponent, which Jenkins's schema requires.
type seconds float64

// MarshalText writes the seconds for package xml.
func (s seconds) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(s), 'f', 9, 64), nil
}

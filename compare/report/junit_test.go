package report

import (
	"bytes"
	"encoding/xml"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// An xmlElement is any element of a document.
type xmlElement struct {
	XMLName    xml.Name
	Attributes []xml.Attr   `xml:",any,attr"`
	Elements   []xmlElement `xml:",any"`
	Text       string       `xml:",chardata"`
}

// attribute returns the value of an attribute, or "".
func (e xmlElement) attribute(name string) string {
	for _, a := range e.Attributes {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// counts returns the numbers of tests, failures and errors that e states.
func (e xmlElement) counts() []string {
	return []string{e.attribute("tests"), e.attribute("failures"), e.attribute("errors")}
}

// all returns the elements below e with a name.
func (e xmlElement) all(name string) (found []xmlElement) {
	for _, below := range e.Elements {
		if below.XMLName.Local == name {
			found = append(found, below)
		}
		found = append(found, below.all(name)...)
	}
	return found
}

// junitSchema has the attributes and elements that the readers of Jenkins, GitLab and GitHub's test reporters accept.
// All attributes but timestamp are required. Jenkins's schema has no attribute skipped at testsuites.
var junitSchema = map[string]struct{ attributes, elements string }{
	"testsuites": {"name tests failures errors time", "testsuite"},
	"testsuite":  {"name tests failures errors skipped time timestamp", "properties testcase"},
	"properties": {"", "property"},
	"property":   {"name value", ""},
	"testcase":   {"classname name time", "failure error system-out"},
	"failure":    {"type message", ""},
	"error":      {"type message", ""},
	"system-out": {"", ""},
}

// attributeForms has patterns of attributes. Jenkins's schema has the form of the times.
var attributeForms = map[string]string{
	"tests": `^\d+$`, "failures": `^\d+$`, "errors": `^\d+$`, "skipped": `^\d+$`, "time": `^\d+(\.\d+)?$`,
	"timestamp": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$`, "name": `\S`, "classname": `^mlxgrad(\.\S+\.\S+)?$`, "type": `^\w+$`,
	"message": `\S`,
}

func (e xmlElement) requireSchema(t *testing.T) {
	t.Helper()
	known, ok := junitSchema[e.XMLName.Local]
	require.True(t, ok, e.XMLName.Local)
	allowed, present := strings.Fields(known.attributes), map[string]bool{}
	for _, a := range e.Attributes {
		require.Contains(t, allowed, a.Name.Local, e.XMLName.Local)
		require.Regexp(t, attributeForms[a.Name.Local], a.Value, a.Name.Local)
		present[a.Name.Local] = true
	}
	for _, name := range allowed {
		require.True(t, present[name] || name == "timestamp", "%s lacks %s", e.XMLName.Local, name)
	}
	for _, below := range e.Elements {
		require.Contains(t, strings.Fields(known.elements), below.XMLName.Local)
		below.requireSchema(t)
	}
	if known.elements != "" {
		require.Empty(t, strings.TrimSpace(e.Text), "text in %s", e.XMLName.Local)
	}
}

// requireCounts requires e to state the counts of the elements below it.
func (e xmlElement) requireCounts(t *testing.T) {
	t.Helper()
	var want []string
	for _, name := range []string{"testcase", "failure", "error"} {
		want = append(want, strconv.Itoa(len(e.all(name))))
	}
	require.Equal(t, want, e.counts(), e.attribute("name"))
}

// requireJUnit returns the root of a document of JUnit's XML. It requires the schema, unique names and the right counts.
func requireJUnit(t *testing.T, text string) xmlElement {
	t.Helper()
	require.True(t, strings.HasPrefix(text, xml.Header))
	var run xmlElement
	d := xml.NewDecoder(strings.NewReader(text)) // it refuses invalid UTF-8 and characters that XML forbids
	require.NoError(t, d.Decode(&run))
	_, err := d.Token()
	for err == nil {
		_, err = d.Token()
	}
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, "testsuites", run.XMLName.Local)
	run.requireSchema(t)
	run.requireCounts(t)
	total := 0.0
	for _, s := range run.Elements {
		s.requireCounts(t)
		require.Equal(t, "0", s.attribute("skipped"))
		total += requireSeconds(t, s)
	}
	require.InDelta(t, total, requireSeconds(t, run), 1e-8)
	names := map[[2]string]bool{}
	for _, c := range run.all("testcase") {
		name := [2]string{c.attribute("classname"), c.attribute("name")}
		require.False(t, names[name], "GitLab shows one of two cases %s", name)
		names[name] = true
		require.LessOrEqual(t, len(c.all("failure"))+len(c.all("error")), 1)
	}
	return run
}

func requireSeconds(t *testing.T, e xmlElement) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(e.attribute("time"), 64)
	require.NoError(t, err)
	return v
}

func TestJUnit(t *testing.T) {
	run := requireJUnit(t, rendered(t, sample(), JUnit))
	require.Equal(t, []string{"3", "2", "0"}, run.counts(), "two rows and a judged mean")
	require.Equal(t, "rmsnorm float32", run.Elements[0].attribute("name"))
	require.Equal(t, 0.5, requireSeconds(t, run))
	failure := run.all("failure")[0]
	require.Equal(t, "off by more than 0.1 in 2 of 7 elements (28.6%)", failure.attribute("message"))
	require.Equal(t, sample().Rows[1].Message, failure.Text)

	run = requireJUnit(t, rendered(t, sampleBench(), JUnit))
	require.Equal(t, []string{"4", "1", "0"}, run.counts())
	require.InDelta(t, 100e-6, requireSeconds(t, run.all("testcase")[0]), 1e-12)
	require.InDelta(t, 120e-6, requireSeconds(t, run.Elements[0]), 1e-12)

	for _, r := range []Result{&Report{}, &Bench{}, &Report{Incomplete: true, Passed: 1, Rows: sample().Rows[:1]}} {
		require.Len(t, requireJUnit(t, rendered(t, r, JUnit)).all("error"), 1, "no run without results is a success")
	}
}

// Names and messages may have any bytes. XML cannot hold some control characters, even escaped; they and invalid UTF-8
// become U+FFFD. All other characters are read back.
func TestJUnitEscapes(t *testing.T) {
	const (
		given = "a<b> & \"c\" 'd' ]]>\t\r\n\x00\x1b[31m\x7f\xff\xed\xa0\x80\ufffe\u2028é"
		read  = "a<b> & \"c\" 'd' ]]>\t\r\n\ufffd\ufffd[31m\x7f\ufffd\ufffd\ufffd\ufffd\ufffd\u2028é"
	)
	parity, timed := sample(), sampleBench()
	parity.Device, parity.Rows[1].Name, parity.Rows[1].Output, parity.Rows[1].Message = given, given, given, given+given
	timed.Rows[3].Case, timed.Rows[3].Error, timed.DeviceName = given, given, given
	for _, c := range []struct {
		result        Result
		name, message string
	}{
		{parity, read + " " + read, read + read},
		{timed, read + " float32 step", read},
	} {
		var out bytes.Buffer
		require.NoError(t, c.result.WriteJUnit(&out))
		require.True(t, utf8.Valid(out.Bytes()))
		run := requireJUnit(t, out.String())
		require.Equal(t, read, run.all("property")[2].attribute("value"))
		failed := slices.IndexFunc(run.all("testcase"), func(c xmlElement) bool { return c.all("failure") != nil })
		require.Equal(t, c.name, run.all("testcase")[failed].attribute("name"))
		failure := run.all("failure")[0]
		require.Equal(t, c.message, failure.Text)
		require.Equal(t, firstLine(read), failure.attribute("message"))
	}
}

package metalsan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

// Report is the result of a run, in the form of the JSON report.
type Report struct {
	MLX      string `json:"mlx"`
	Compiler string `json:"compiler"`
	// Containment holds the restrictions of the kernels, and Unrestricted the gaps.
	Containment  string `json:"containment"`
	Unrestricted string `json:"unrestricted,omitempty"`

	Seed      uint64 `json:"seed"`
	Schedules int    `json:"schedules"`
	Strict    bool   `json:"strict"` // portability findings and unchecked launches fail the run
	Replay    string `json:"replay"` // command that repeats the run

	Incomplete bool `json:"incomplete"` // the run was interrupted
	// Kernels and LaunchCount include launches that could not run, but not launches that an interruption prevented.
	// Errors and Portability count a finding once, even if several launches of its kernel have it. Errors includes
	// launches and files that could not run. Unchecked counts launches whose address spaces were not checked.
	Kernels     int `json:"kernels"`
	LaunchCount int `json:"launch_count"`
	Errors      int `json:"errors"`
	Portability int `json:"portability"`
	Unchecked   int `json:"unchecked"`
	// WithoutLaunch holds the kernels without a launch description.
	WithoutLaunch []string `json:"without_launch"`
	// Unsupported holds the kernels that cannot run, with the reason.
	Unsupported []string          `json:"unsupported_kernels"`
	FailedFiles []FailedFile      `json:"failed_files"`
	Launches    []sanitizedLaunch `json:"launches"`

	groups []findingGroup // of all launches
}

// sanitizedLaunch is the result of one launch.
type sanitizedLaunch struct {
	Kernel      string `json:"kernel"`
	File        string `json:"file,omitempty"`
	Launch      string `json:"launch"`
	Grid        [3]int `json:"grid"`
	Threadgroup [3]int `json:"threadgroup"`
	// Error is the reason why the launch did not run.
	Error string `json:"error,omitempty"`
	// UnsupportedByMLX is the reason why MLX's custom kernels do not support the launch.
	UnsupportedByMLX string `json:"outside_mlx,omitempty"`
	// CompilerNote says why another compiler than the usual one compiled the kernel.
	CompilerNote string `json:"compiler_note,omitempty"`
	// Unchecked is the reason why the address spaces were not checked in all of the text.
	Unchecked  string  `json:"unchecked,omitempty"`
	Schedules  int     `json:"schedules"` // finished schedules
	SameBits   bool    `json:"same_bits"` // all schedules gave the same bits
	Difference string  `json:"difference,omitempty"`
	Seconds    float64 `json:"seconds"` // duration in the checker

	Findings []sanitizeFinding `json:"findings"`
}

// sanitizeFinding is a finding in JSON.
type sanitizeFinding struct {
	Kind     string        `json:"kind"`
	Severity string        `json:"severity"`
	Message  string        `json:"message"`
	Site     findingSite   `json:"site"`
	Path     []findingSite `json:"path"`            // calls that led to Site, innermost first
	Other    *findingSite  `json:"other,omitempty"` // place of the other access or barrier
	More     []findingSite `json:"more,omitempty"`  // further places of the same cause
	Buffer   string        `json:"buffer,omitempty"`
	Element  int           `json:"element"`
	Threads  []findingAt   `json:"threads"`
	Schedule string        `json:"schedule"`
}

type findingSite struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Function string `json:"function"`
}

func (s findingSite) String() string { return fmt.Sprintf("%s:%d", s.File, s.Line) }

type findingAt struct {
	Group  [3]int `json:"group"`
	Thread [3]int `json:"thread"`
}

func newReport(c *Command, chosen Chosen) *Report {
	r := &Report{
		MLX: sanitizer.MLXVersion, Seed: c.Seed, Schedules: c.Schedules, Strict: c.strict(), Replay: c.replay(),
		WithoutLaunch: append([]string{}, chosen.Without...), FailedFiles: append([]FailedFile{}, chosen.Failed...),
		Unsupported: append([]string{}, chosen.Unsupported...),
		Launches:    []sanitizedLaunch{}, Errors: len(chosen.Failed),
	}
	if compiler, err := sanitizer.Compiler(); err == nil {
		r.Compiler = compiler
	}
	r.Containment, r.Unrestricted = sanitizer.Containment()
	return r
}

func newSanitizedLaunch(l Launch, report *sanitizer.Report, err error) sanitizedLaunch {
	s := sanitizedLaunch{
		Kernel: l.Kernel, File: l.File, Launch: l.Label,
		Grid: l.Grid, Threadgroup: l.Threadgroup, Findings: []sanitizeFinding{},
	}
	if err != nil {
		s.Error = err.Error()
		return s
	}
	s.UnsupportedByMLX, s.Unchecked = report.UnsupportedByMLX, report.AddressSpacesSkipped
	s.CompilerNote = report.CompilerNote
	s.Schedules, s.Seconds = report.Schedules, report.Duration.Seconds()
	s.SameBits, s.Difference = report.SameBits, report.Difference
	for _, f := range report.Findings {
		s.Findings = append(s.Findings, newSanitizeFinding(f))
	}
	return s
}

func newSanitizeFinding(f sanitizer.Finding) sanitizeFinding {
	site := func(s sanitizer.Site) findingSite { return findingSite{s.File, s.Line, s.Function} }
	j := sanitizeFinding{
		Kind: string(f.Kind), Severity: string(f.Severity), Message: f.Message, Site: site(f.Site),
		Path: []findingSite{}, Threads: []findingAt{}, Buffer: f.Buffer, Element: f.Element, Schedule: f.Schedule,
	}
	for _, s := range f.Path {
		j.Path = append(j.Path, site(s))
	}
	if f.Other.Line > 0 {
		other := site(f.Other)
		j.Other = &other
	}
	for _, s := range f.More {
		j.More = append(j.More, site(s))
	}
	if f.Schedule == "" || f.Kind == sanitizer.FindingOrderDependent || f.Kind == sanitizer.FindingUnwrittenOutput {
		return j // found without running, or by all threads
	}
	for i, t := range f.Threads {
		if i == 0 || t != f.Threads[0] {
			j.Threads = append(j.Threads, findingAt{t.Group, t.Thread})
		}
	}
	return j
}

// add counts the launches of a kernel and returns their part of the text.
func (r *Report) add(launches []sanitizedLaunch) string {
	var text strings.Builder
	first := launches[0]
	r.Kernels++
	r.LaunchCount += len(launches)
	r.Launches = append(r.Launches, launches...)
	groups := sameFindings(launches)
	r.groups = append(r.groups, groups...)
	var failures []string
	for _, l := range launches {
		if l.Error != "" {
			failures = append(failures, fmt.Sprintf("%s: error: not run (%s, %s): %s\n",
				cmp.Or(l.File, l.Kernel), l.Kernel, l.Launch, l.Error))
		}
	}
	errors, portability := len(failures), 0
	for _, g := range groups {
		if g.finding.Severity == string(sanitizer.SeverityError) {
			errors++
		} else {
			portability++
		}
	}
	r.Errors += errors
	r.Portability += portability
	for _, l := range launches {
		if l.Unchecked != "" {
			r.Unchecked++
		}
	}
	verdict := "ok"
	if errors+portability > 0 {
		verdict = Count(errors, "error") + ", " + Count(portability, "portability finding")
	}
	fmt.Fprintf(&text, "%s: %s: %s\n", first.Kernel, Count(len(launches), "launch"), verdict)
	for _, failure := range failures {
		text.WriteString(failure)
	}
	remark := func(label string, of func(sanitizedLaunch) string) {
		for _, g := range byRemark(launches, of) {
			fmt.Fprintf(&text, "%s: %s (%s): %s\n", cmp.Or(first.File, first.Kernel), label, andMore(g.launches), g.text)
		}
	}
	remark("outside MLX", func(l sanitizedLaunch) string { return l.UnsupportedByMLX })
	remark("note", func(l sanitizedLaunch) string { return l.CompilerNote })
	remark("address spaces not checked", func(l sanitizedLaunch) string { return l.Unchecked })
	for _, g := range groups {
		text.WriteString(g.String())
	}
	return text.String()
}

// remarkGroup is a remark that applies to several launches.
type remarkGroup struct {
	text     string
	launches []string
}

// byRemark groups launches by their remarks and drops launches without a remark.
func byRemark(launches []sanitizedLaunch, of func(sanitizedLaunch) string) []remarkGroup {
	var groups []remarkGroup
	for _, l := range launches {
		text := of(l)
		if text == "" {
			continue
		}
		i := slices.IndexFunc(groups, func(g remarkGroup) bool { return g.text == text })
		if i < 0 {
			i = len(groups)
			groups = append(groups, remarkGroup{text: text})
		}
		groups[i].launches = append(groups[i].launches, l.Launch)
	}
	return groups
}

// andMore returns the first launch and the number of the others.
func andMore(launches []string) string {
	if more := len(launches) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", launches[0], more)
	}
	return launches[0]
}

// findingGroup is a finding with the launches that have it.
type findingGroup struct {
	finding  sanitizeFinding
	launches []string
}

// sameFindings merges the findings of different launches of a kernel that share a place.
func sameFindings(launches []sanitizedLaunch) []findingGroup {
	var groups []findingGroup
	for _, l := range launches {
		for _, f := range l.Findings {
			i := slices.IndexFunc(groups, func(g findingGroup) bool {
				o := g.finding
				return o.Kind == f.Kind && o.Buffer == f.Buffer && samePlaces(o, f) && !slices.Contains(g.launches, l.Launch)
			})
			if i < 0 {
				i = len(groups)
				groups = append(groups, findingGroup{finding: f})
			}
			groups[i].launches = append(groups[i].launches, l.Launch)
		}
	}
	slices.SortStableFunc(groups, func(a,
		b findingGroup,
	) int {
		return cmp.Compare(a.finding.Severity, b.finding.Severity)
	})
	return groups
}

// samePlaces reports whether two findings share a place.
func samePlaces(a, b sanitizeFinding) bool {
	for _, p := range a.places() {
		for _, q := range b.places() {
			if p.File == q.File && p.Line == q.Line {
				return true
			}
		}
	}
	return false
}

// places returns all places of the finding.
func (f sanitizeFinding) places() []findingSite {
	places := append([]findingSite{f.Site}, f.More...)
	if f.Other != nil {
		places = append(places, *f.Other)
	}
	return places
}

// String returns a line in the format of compilers, and indented details below it.
func (g findingGroup) String() string {
	f := g.finding
	var text strings.Builder
	if f.Site.Line > 0 {
		fmt.Fprintf(&text, "%s: ", f.Site)
	} else {
		fmt.Fprintf(&text, "%s: ", cmp.Or(f.Site.File, f.Site.Function))
	}
	fmt.Fprintf(&text, "%s: %s: %s\n", f.Severity, f.Kind, f.Message)
	line := func(name, value string) { fmt.Fprintf(&text, "    %-9s %s\n", name, value) }
	for i, s := range f.Path {
		if i == 0 {
			line("in", f.Site.Function)
		}
		line("called at", s.String()+" in "+s.Function)
	}
	if f.Other != nil {
		line("other", f.Other.String()+" in "+f.Other.Function)
	}
	if len(f.More) > 0 {
		var more []string
		for _, s := range f.More {
			more = append(more, s.String())
		}
		line("also at", strings.Join(more, ", "))
	}
	if len(f.Threads) > 0 {
		var threads []string
		for _, t := range f.Threads {
			threads = append(threads, fmt.Sprintf("%v of group %v", t.Thread, t.Group))
		}
		line("threads", strings.Join(threads, ", "))
	}
	if f.Buffer != "" {
		line("element", fmt.Sprintf("%s[%d]", f.Buffer, f.Element))
	}
	if f.Schedule != "" {
		line("schedule", f.Schedule)
	}
	line("launch", andMore(g.launches))
	return text.String()
}

// failed reports whether the run fails.
func (r *Report) failed() bool {
	return r.LaunchCount == 0 || r.Errors > 0 || r.Strict && r.Portability+r.Unchecked > 0
}

// summary returns the end of the report.
func (r *Report) summary() string {
	var text strings.Builder
	text.WriteString(LeftOut("run", r.WithoutLaunch, r.Unsupported, r.Incomplete, r.LaunchCount))
	if r.Errors+r.Portability > 0 {
		fmt.Fprintf(&text, "replay: %s\n", r.Replay)
	}
	fmt.Fprintf(&text, "%s, %s, %s, %s\n", Count(r.Kernels, "kernel"), Count(r.LaunchCount, "launch"),
		Count(r.Errors, "error"), Count(r.Portability, "portability finding"))
	return text.String()
}

// Count returns a number with its noun, such as "1 launch" or "2 launches".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "ch") {
		return fmt.Sprintf("%d %ses", n, noun)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

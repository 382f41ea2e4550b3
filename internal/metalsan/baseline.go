package metalsan

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// baseline is a file of known findings. They do not fail the run.
type baseline struct {
	SchemaVersion int            `json:"schema_version"`
	Findings      []knownFinding `json:"findings"`
	left          map[string]int // findings that were not seen yet, by fingerprint
}

// knownFinding is an entry of a baseline. Fingerprint and Count identify findings; the other fields are for readers.
type knownFinding struct {
	Fingerprint string `json:"fingerprint"`
	Count       int    `json:"count"`
	Kind        string `json:"kind"`
	File        string `json:"file"`
	Function    string `json:"function"`
}

const baselineVersion = 1

// readBaseline reads a baseline. The empty path stands for an empty one.
func readBaseline(path string) (*baseline, error) {
	b := &baseline{SchemaVersion: baselineVersion, left: map[string]int{}}
	if path == "" {
		return b, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, b); err != nil {
		return nil, fmt.Errorf("%s is not a baseline: %w", path, err)
	}
	if b.SchemaVersion != baselineVersion {
		return nil, fmt.Errorf("%s has the schema version %d; this version reads %d: write it again with --write-baseline",
			path, b.SchemaVersion, baselineVersion)
	}
	for _, f := range b.Findings {
		b.left[f.Fingerprint] += f.Count
	}
	return b, nil
}

// knows reports whether the baseline has a finding. Each entry stands for Count findings.
func (b *baseline) knows(f sanitizeFinding) bool {
	id := fingerprint(f)
	if b.left[id] == 0 {
		return false
	}
	b.left[id]--
	return true
}

// gone returns the number of findings of the baseline that did not occur.
func (b *baseline) gone() (n int) {
	for _, left := range b.left {
		n += left
	}
	return n
}

// newBaseline returns a baseline of the findings that are not suppressed.
func newBaseline(groups []findingGroup) baseline {
	b := baseline{SchemaVersion: baselineVersion, Findings: []knownFinding{}}
	for _, g := range groups {
		if g.finding.Suppressed != "" {
			continue
		}
		id := fingerprint(g.finding)
		i := slices.IndexFunc(b.Findings, func(f knownFinding) bool { return f.Fingerprint == id })
		if i < 0 {
			i = len(b.Findings)
			b.Findings = append(b.Findings,
				knownFinding{id, 0, g.finding.Kind, uriOf(g.finding.Site.File), g.finding.Site.Function})
		}
		b.Findings[i].Count++
	}
	slices.SortFunc(b.Findings, func(a, b knownFinding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Function, b.Function), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	return b
}

// fingerprint identifies a finding. It contains no line, because edits elsewhere move lines.
func fingerprint(f sanitizeFinding) string {
	function := func(s findingSite) string { // without template arguments, which depend on the launches
		name, _, _ := strings.Cut(s.Function, "<")
		return name
	}
	identity := []string{f.Kind, uriOf(f.Site.File), function(f.Site), f.Buffer}
	if f.Other != nil {
		identity = append(identity, uriOf(f.Other.File), function(*f.Other))
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(identity, "\x00"))))[:32]
}

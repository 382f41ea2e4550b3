package main

import (
	"fmt"
	"slices"
	"strings"
)

// reasons is a list of function names, each with a reason. A name that ends in a star is a prefix.
type reasons struct {
	entries []entry
}

type entry struct {
	name, reason string
	used         bool
}

func readReasons(text string) (*reasons, error) {
	r := &reasons{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, _ := strings.Cut(line, " ")
		if reason = strings.TrimSpace(reason); reason == "" {
			return nil, fmt.Errorf("%s has no reason", name)
		}
		r.entries = append(r.entries, entry{name: name, reason: reason})
	}
	return r, nil
}

// of returns the reason of a function, or "". Complete names precede prefixes.
func (r *reasons) of(name string) string {
	best := -1
	for i, e := range r.entries {
		prefix, star := strings.CutSuffix(e.name, "*")
		if e.name == name || star && best < 0 && strings.HasPrefix(name, prefix) {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	r.entries[best].used = true
	return r.entries[best].reason
}

// unused returns the names that no call of the method of has matched.
func (r *reasons) unused() []string {
	var out []string
	for _, e := range r.entries {
		if !e.used {
			out = append(out, e.name)
		}
	}
	slices.Sort(out)
	return out
}

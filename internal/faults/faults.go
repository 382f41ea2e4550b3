// Package faults lists the faults of MLX that this project guards against. A guard names its fault in a comment.
//
// For each fault there are a snippet for MLX in Python (snippets/NAME.py), a check in Go that calls MLX without the
// guard (check_test.go), and a section in docs/mlx-faults.md:
//
//	python internal/faults/snippets/try.py                      run the snippets with any MLX
//	go test -tags=mlxheaders ./internal/faults -run TestChecks  run the checks with the MLX that is set up
//	go generate ./internal/faults                               write docs/mlx-faults.md
package faults

//go:generate go test . -run TestPage -update

import (
	"slices"

	"golang.org/x/mod/semver"
)

// Checked lists the versions of MLX with which snippets and checks ran, in ascending order.
var Checked = []string{"0.32.2", "0.32.3", "0.32.4"}

// Fault is a fault of MLX.
type Fault struct {
	Name   string // of the snippet and the check; it never changes
	Title  string
	Wrong  string // MLX's behavior
	Right  string // the correct behavior
	Crash  bool   // MLX ends the process or does not return
	Chance bool   // it happens in some processes only
	Gone   string // the first checked version without the fault, or "". The oldest checked version has all faults
	Guards []Guard
	Cost   string // of the guards, or "" if it is negligible
}

// Guard is a function of this project that avoids a fault.
type Guard struct {
	File string // relative to the repository
	Func string
}

// In reports whether a version of MLX, such as "0.32.4", has the fault. Versions that were not checked are taken to be
// like the checked version before them.
func (f Fault) In(version string) bool {
	return f.Gone == "" || semver.Compare("v"+version, "v"+f.Gone) < 0
}

// Area is a group of faults.
type Area struct {
	Title  string
	Faults []Fault
}

// Areas returns all faults.
func Areas() []Area {
	return []Area{values, empty, memory, files, gradients, transforms, evaluation}
}

// All returns all faults in the order of the areas.
func All() []Fault {
	var all []Fault
	for _, a := range Areas() {
		all = slices.Concat(all, a.Faults)
	}
	return all
}

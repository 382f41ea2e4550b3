package api_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/api"
)

var update = flag.Bool("update", false, "write the lists in testdata anew")

const command = "go test ./internal/api -update"

// baseline returns the name of the file that lists a package.
func baseline(dir string) string {
	if dir == "." {
		dir = "mlxgrad"
	}
	return strings.ReplaceAll(dir, "/", "_") + ".txt"
}

func TestExportedDeclarationsAreThoseOfTheBaseline(t *testing.T) {
	root := filepath.Join("..", "..")
	packages, err := api.Packages(root)
	require.NoError(t, err)
	var files []string
	for _, dir := range packages {
		list, err := api.List(filepath.Join(root, dir))
		require.NoError(t, err)
		if list == "" {
			continue
		}
		file := baseline(dir)
		files = append(files, file)
		t.Run(dir, func(t *testing.T) { compare(t, filepath.Join("testdata", file), list) })
	}
	require.Contains(t, files, "mlxc.txt")
	entries, err := os.ReadDir("testdata")
	require.NoError(t, err)
	for _, e := range entries {
		if slices.Contains(files, e.Name()) {
			continue
		}
		if *update {
			require.NoError(t, os.Remove(filepath.Join("testdata", e.Name())))
			continue
		}
		t.Errorf("testdata/%s lists no package of the module; to remove it, run: %s", e.Name(), command)
	}
}

func compare(t *testing.T, file, list string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(list), 0o644))
		return
	}
	old, err := os.ReadFile(file)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	before, now := strings.Split(string(old), "\n"), strings.Split(list, "\n")
	var changes []string
	for _, line := range before {
		if !slices.Contains(now, line) {
			changes = append(changes, "- "+line)
		}
	}
	for _, line := range now {
		if !slices.Contains(before, line) {
			changes = append(changes, "+ "+line)
		}
	}
	if len(changes) > 0 {
		t.Errorf("the exported declarations differ from %s:\n%s\nIf the change is intended, run: %s",
			file, strings.Join(changes, "\n"), command)
	}
}

func TestListHoldsExportedNamesOnly(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.go"), []byte(`// Package p is a sample.
package p

type (
	Pair[K comparable, V any] struct {
		Key    K // a comment
		Value, Other V
		hidden int
		Base
	}
	Base  struct{}
	Shape interface {
		Area(scale float64) float64
		~int | string
	}
	Text   = string
	hidden struct{ X int }
)

const (
	First Kind = iota
	Second
	third
	Last = 5
)

type Kind int

var Default, other = 1, 2

func (p *Pair[K, V]) Swap(a, b int) (err error) { return nil }
func (h hidden) Exported()                      {}
func Map[T any](f func(T) T, list ...T) []T     { return nil }
func internal()                                 {}
`), 0o644))
	list, err := api.List(dir)
	require.NoError(t, err)
	require.Equal(t, `const First Kind
const Last
const Second Kind
constraint Shape: ~int | string
field Pair.Key K
field Pair.Other V
field Pair.Value V
field Pair: Base (embedded)
func (p *Pair[K, V]) Swap(a, b int) (err error)
func Map[T any](f func(T) T, list ...T) []T
method Shape.Area(scale float64) float64
type Base struct
type Kind int
type Pair[K comparable, V any] struct
type Shape interface
type Text = string
var Default
`, list)
}

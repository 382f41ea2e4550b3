package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every function that the pinned headers declare is bound, or skipped for a reason.
func TestEveryFunctionIsBound(t *testing.T) {
	c := surveyed(t)
	require.NoError(t, c.err())
	require.Greater(t, len(c.declarations), 600)
}

var (
	quotedName   = regexp.MustCompile(`"(_?mlx_\w+)"`)
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
)

const valueFolder = "internal/valuetest"

// testFolders hold the tests that tested.txt names.
var testFolders = []string{".", "mlxio", "distributed", valueFolder}

// Every bound function has a value test in valueFolder, a test that tested.txt names, or a reason in
// untested.txt.
func TestEveryBoundFunctionHasAValue(t *testing.T) {
	c := surveyed(t)
	tested, tests := map[string]bool{}, map[string]bool{}
	var files []string
	for _, folder := range testFolders {
		in, err := filepath.Glob(filepath.Join(pkg, folder, "*_test.go"))
		require.NoError(t, err)
		files = append(files, in...)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range testFunction.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		if filepath.Dir(f) != filepath.Join(pkg, valueFolder) {
			continue
		}
		for _, m := range quotedName.FindAllStringSubmatch(string(text), -1) {
			tested[m[1]] = true
		}
	}
	reasons, err := readReasons(untestedText)
	require.NoError(t, err)
	elsewhere, err := readReasons(testedText)
	require.NoError(t, err)
	var missing []string
	for _, d := range c.declarations {
		if c.skipped[d.name] != "" {
			require.False(t, tested[d.name], "%s is skipped, but has a test", d.name)
			continue
		}
		reason, test := reasons.of(d.name), elsewhere.of(d.name)
		switch {
		case tested[d.name]:
			require.Empty(t, reason+test, "%s has a value test, but stands in untested.txt or tested.txt", d.name)
		case test != "":
			require.Empty(t, reason, "%s stands in untested.txt and tested.txt", d.name)
			require.True(t, tests[test], "%s: there is no %s in %q", d.name, test, testFolders)
		case reason == "":
			missing = append(missing, d.header+".h: "+d.name)
		}
		delete(tested, d.name)
	}
	require.Empty(t, missing, "these have neither a value test nor a reason in untested.txt")
	require.Empty(t, tested, "these tests name no function of mlx-c")
	require.Empty(t, reasons.unused(), "untested.txt: these name nothing")
	require.Empty(t, elsewhere.unused(), "tested.txt: these name nothing")
}

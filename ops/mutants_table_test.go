package ops

import (
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
)

// A change of a shader's structure makes entries of mutants.txt stale. TestMutationsAreNoticed then lists each of these
// entries with the most similar mutants that have no entry. With -rekey-mutants it gives each stale entry the key of the
// single most similar mutant, logs the pairs, and rewrites the file with the current text of every change. Review the
// difference: delete an entry whose reason does not hold, and edit an entry by hand if the test still reports it.
var rekeyMutants = flag.Bool("rekey-mutants", false, "give stale entries of "+mutantsFile+" new keys")

// mutantsFile holds the mutants that need not be noticed. Its first lines describe the format.
const mutantsFile = "testdata/mutants.txt"

// A mutantEntry is a line of the file and the group above it.
type mutantEntry struct {
	key, change string
	verdict     string // "equivalent" or "missed"
	reason      string
}

// mutantTable is the content of the file.
type mutantTable struct {
	header  string
	entries []mutantEntry // grouped by verdict and reason
}

var mutantLine = regexp.MustCompile(`^  (\S+) {2,}(\S+(?: \S+)*) {2,}(\S+) {2,}(.*)$`)

func readMutantTable(t *testing.T) mutantTable {
	t.Helper()
	text, err := os.ReadFile(mutantsFile)
	require.NoError(t, err)
	var table mutantTable
	var verdict, reason string
	keys := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		switch {
		case strings.HasPrefix(line, "#"):
			table.header += line + "\n"
		case line == "":
		case line[0] != ' ':
			verdict, reason, _ = strings.Cut(line, ": ")
			require.Contains(t, []string{"equivalent", "missed"}, verdict, line)
			require.NotEmpty(t, reason, line)
		default:
			part := mutantLine.FindStringSubmatch(line)
			require.NotNil(t, part, "%s: not an entry: %s", mutantsFile, line)
			key := strings.Join(part[1:4], "  ")
			require.False(t, keys[key], "%s: two entries of %s", mutantsFile, key)
			keys[key] = true
			table.entries = append(table.entries, mutantEntry{key, part[4], verdict, reason})
		}
	}
	return table
}

// reason returns the verdict and the reason of a mutant's entry.
func (table mutantTable) reason(m mutant) (verdict, reason string) {
	for _, e := range table.entries {
		if e.key == m.key {
			return e.verdict, e.reason
		}
	}
	return "", ""
}

func (table mutantTable) write(t *testing.T) {
	t.Helper()
	var text strings.Builder
	text.WriteString(table.header)
	for rest := table.entries; len(rest) > 0; {
		group := rest[0]
		n := slices.IndexFunc(rest, func(e mutantEntry) bool {
			return e.verdict != group.verdict || e.reason != group.reason
		})
		if n < 0 {
			n = len(rest)
		}
		entries := rest[:n]
		rest = rest[n:]
		slices.SortStableFunc(entries, func(a, b mutantEntry) int { return cmp.Compare(a.key, b.key) })
		fmt.Fprintf(&text, "\n%s: %s\n", group.verdict, group.reason)
		columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		for _, e := range entries {
			fmt.Fprintf(columns, "  %s\t%s\n", strings.ReplaceAll(e.key, "  ", "\t"), e.change)
		}
		require.NoError(t, columns.Flush())
	}
	require.NoError(t, os.WriteFile(mutantsFile, []byte(text.String()), 0o644))
}

// requireCurrent fails the test if an entry matches no mutant. With -rekey-mutants it repairs the table first.
func (table mutantTable) requireCurrent(t *testing.T, byFile map[string][]mutant) {
	t.Helper()
	present := map[string]mutant{}
	functions := map[string]bool{}
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		for _, m := range byFile[file] {
			present[m.key] = m
			functions[m.function] = true
		}
	}
	unlisted := maps.Clone(present)
	for _, e := range table.entries {
		delete(unlisted, e.key)
	}
	for i := range table.entries {
		e := &table.entries[i]
		if m, ok := present[e.key]; ok {
			e.change = m.change
			continue
		}
		similar := e.similar(unlisted, functions)
		if unique := len(similar) > 0 && similar[0].score >= 0.7 &&
			(len(similar) == 1 || similar[0].score > similar[1].score); *rekeyMutants && unique {
			m := similar[0].mutant
			t.Logf("re-keyed: %s  %s\n          %s  %s", e.key, e.change, m.key, m.change)
			e.key, e.change = m.key, m.change
			delete(unlisted, m.key)
			continue
		}
		var list strings.Builder
		for _, s := range similar[:min(len(similar), 5)] {
			fmt.Fprintf(&list, "\n    %.2f  %s  %s", s.score, s.key, s.change)
		}
		t.Errorf("%s: no mutant matches this entry (see -rekey-mutants): %s  %s\n  similar mutants without an entry:%s",
			mutantsFile, e.key, e.change, list.String())
	}
	if *rekeyMutants {
		table.write(t)
	}
}

type similarMutant struct {
	mutant
	score float64 // 1 if the changes have the same tokens
}

// similar lists the mutants of the entry's kind by the similarity of their change to the entry's. If the entry's
// function exists, only its mutants count.
func (e mutantEntry) similar(unlisted map[string]mutant, functions map[string]bool) []similarMutant {
	part := strings.Split(e.key, "  ")
	var list []similarMutant
	for _, key := range slices.Sorted(maps.Keys(unlisted)) {
		m := unlisted[key]
		if m.kind == part[1] && (m.function == part[0] || !functions[part[0]]) {
			list = append(list, similarMutant{m, tokenSimilarity(e.change, m.change)})
		}
	}
	slices.SortStableFunc(list, func(a, b similarMutant) int { return cmp.Compare(b.score, a.score) })
	return list
}

// tokenSimilarity is the share of tokens that two texts have in common.
func tokenSimilarity(a, b string) float64 {
	counts := map[string]int{}
	first, second := shaderSyntax.FindAllString(a, -1), shaderSyntax.FindAllString(b, -1)
	for _, token := range first {
		counts[token]++
	}
	common := 0
	for _, token := range second {
		if counts[token] > 0 {
			counts[token]--
			common++
		}
	}
	return 2 * float64(common) / float64(max(len(first)+len(second), 1))
}

// shippedMutants returns the mutants of every shader file.
func shippedMutants(t *testing.T) (files []string, byFile map[string][]mutant) {
	t.Helper()
	files, err := fs.Glob(customkernels.Shaders(), "*")
	require.NoError(t, err)
	byFile = map[string][]mutant{}
	for _, file := range files {
		text, err := fs.ReadFile(customkernels.Shaders(), file)
		require.NoError(t, err)
		byFile[file] = mutants(string(text))
	}
	return files, byFile
}

// Renames and white space keep a mutant's key. Its function, kind, statement and place in the statement decide it.
func TestKeysOfMutants(t *testing.T) {
	keys := func(shader string) (list []string) {
		for _, m := range mutants(shader) {
			list = append(list, m.key)
		}
		return list
	}
	original := keys("inline void f(int n) {\n  for (int i = 0; i < n; i++) {\n    x[i] = y[i] + 1;\n  }\n}\n")
	require.Len(t, original, 6)
	require.Equal(t, original, keys(
		"inline void f(int m) {\n  // a comment\n  for (int j = 0;\n       j < m; j++) {\n"+
			"    a[j] = b[j] // another comment\n      + 1;\n  }\n}\n"))
	require.NotContains(t, original, keys("inline void f(int n) {\n  x[n] = x[n] + 1;\n}\n")[0])
	require.Equal(t, []string{"shift index", "shift index", "shift index.2", "shift index.2"}, func() (list []string) {
		for _, key := range keys("inline void f(int n) {\n  x[n] = y[n];\n  p[n] = q[n];\n}\n") {
			part := strings.Split(key, "  ")
			_, ordinal, _ := strings.Cut(part[2], ".")
			_, ordinal, found := strings.Cut(ordinal, ".")
			if found {
				part[1] += "." + ordinal
			}
			list = append(list, part[1])
		}
		return list
	}())
}

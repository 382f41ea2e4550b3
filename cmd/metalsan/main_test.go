package main

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/cli/manual"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

var update = flag.Bool("update", false, "rewrite the man page")

func TestHelp(t *testing.T) {
	manual.RequireExamples(t, newCommand())
	manual.RequireCurrent(t, newCommand(), filepath.Join("..", "..", "docs", "man"), *update)
}

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"metalsan": main})
}

func TestScripts(t *testing.T) {
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	if dir := os.Getenv("MLXGRAD_CACHE"); dir != "" {
		cache = dir
	} else {
		cache = filepath.Join(cache, "mlxgrad")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("MLXGRAD_CACHE", cache) // kernels are compiled once
			env.Setenv("ROOT", root)
			env.Setenv("CXX", os.Getenv("CXX"))
			return nil
		},
	})
}

// The command needs neither MLX nor cgo: it imports no package of this module with C or C++ files.
func TestNeedsNeitherMLXNorCgo(t *testing.T) {
	cmd := exec.Command(skip.Program(t, skip.Go), "list", "-deps", "-f", "{{.ImportPath}} {{len .CgoFiles}}", ".")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	const module = "github.com/mlxgrad/mlxgrad/"
	seen := 0
	for line := range strings.Lines(string(out)) {
		name, cgo, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(name, module) {
			continue
		}
		seen++
		require.Equal(t, "0", cgo, "%s uses cgo", name)
		require.NotContains(t, []string{module + "mlxc", module +
			"customkernels", module + "customkernels/internal/executor"}, name)
	}
	require.Greater(t, seen, 5)
}

// The problem matchers of the action find the lines of a report.
func TestProblemMatchers(t *testing.T) {
	text, err := os.ReadFile("problem-matcher.json")
	require.NoError(t, err)
	var file struct {
		ProblemMatcher []struct {
			Owner, Severity string
			Pattern         []struct {
				Regexp              string
				File, Line, Message int
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &file))
	type problem struct{ severity, file, line, message string }
	find := func(line string) (found []problem) {
		for _, m := range file.ProblemMatcher {
			require.Len(t, m.Pattern, 1)
			p := m.Pattern[0]
			groups := regexp.MustCompile(p.Regexp).FindStringSubmatch(line)
			if groups == nil {
				continue
			}
			group := func(i int) string {
				if i == 0 {
					return ""
				}
				return groups[i]
			}
			found = append(found, problem{m.Severity, group(p.File), group(p.Line), group(p.Message)})
		}
		return found
	}
	require.Equal(t, []problem{{"error", "a b/f.metal", "40", "race: thread 1: put a barrier"}},
		find("a b/f.metal:40: error: race: thread 1: put a barrier"))
	require.Equal(t, []problem{{"warning", "f.metal", "43", "lockstep: in order"}},
		find("f.metal:43: portability: lockstep: in order"))
	require.Equal(t, []problem{{"error", "f.metal", "", "not run: f.metal:1:10: no such file"}},
		find("f.metal: error: not run: f.metal:1:10: no such file"))
	require.Equal(t, []problem{{"error", "f.metal", "", "not run (f, described at line 1): no compiler"}},
		find("f.metal: error: not run (f, described at line 1): no compiler"))
	require.Empty(t, find("f: 3 launches: 1 error, 0 portability findings"))
	require.Empty(t, find("    other     f.metal:43 in f"))
}

// Package workflows tests the files in .github and the scripts that they run. actionlint, in ./build.sh lint, checks
// the syntax of workflows.
package workflows

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const root = "../.."

type workflow struct {
	Permissions map[string]string
	Concurrency struct{ Group string }
	Jobs        map[string]job
}

type job struct {
	Permissions map[string]string
	Timeout     int `yaml:"timeout-minutes"`
	Strategy    struct{ Matrix map[string]any }
	Steps       []step
}

type step struct {
	Name    string
	Uses    yaml.Node
	Run     string
	Timeout int `yaml:"timeout-minutes"`
}

// read decodes a YAML file.
func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into), path)
}

func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, ".github", "workflows", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	all := map[string]workflow{}
	for _, path := range paths {
		var w workflow
		read(t, filepath.Join(".github", "workflows", filepath.Base(path)), &w)
		all[filepath.Base(path)] = w
	}
	return all
}

var (
	pinned  = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	version = regexp.MustCompile(`^# v\d+\.\d+\.\d+$`)
)

// Workflows have read-only permissions and pin actions by commit. Every step has a time limit. Their sum is within the
// limit of the job, which is within GitHub's limit of six hours.
func TestLimits(t *testing.T) {
	pins := map[string]string{} // by action
	for file, w := range workflows(t) {
		require.Equal(t, map[string]string{"contents": "read"}, w.Permissions, file)
		require.NotEmpty(t, w.Concurrency.Group, file)
		require.NotEmpty(t, w.Jobs, file)
		for name, j := range w.Jobs {
			name = file + ", job " + name
			if name == "docs.yml, job publish" { // it runs no code of a checkout
				require.Equal(t, map[string]string{"pages": "write", "id-token": "write"}, j.Permissions)
				require.Len(t, j.Steps, 1)
			} else {
				require.Nil(t, j.Permissions, name)
			}
			require.LessOrEqual(t, j.Timeout, 360, name)
			total := 0
			for i, s := range j.Steps {
				require.Positive(t, s.Timeout, "%s, step %d has no timeout-minutes", name, i+1)
				total += s.Timeout
				if s.Uses.Value == "" {
					continue
				}
				require.Regexp(t, pinned, s.Uses.Value, name)
				require.Regexp(t, version, s.Uses.LineComment, name)
				action, _, _ := strings.Cut(s.Uses.Value, "@")
				pin := s.Uses.Value + " " + s.Uses.LineComment
				if pins[action] == "" {
					pins[action] = pin
				}
				require.Equal(t, pins[action], pin, "%s: all workflows use one version of an action", name)
			}
			require.LessOrEqual(t, total, j.Timeout, name)
		}
	}
}

// commands returns the command lines of a workflow, with every value of its matrices.
func commands(t *testing.T, file string) []string {
	t.Helper()
	var lines []string
	for _, j := range workflows(t)[file].Jobs {
		for _, s := range j.Steps {
			if s.Run != "" {
				lines = append(lines, expand(s.Run, j.Strategy.Matrix)...)
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

var matrixValue = regexp.MustCompile(`\$\{\{ matrix\.(\w+) \}\}`)

// expand replaces the first use of a matrix's variable in a line by each of its values.
func expand(line string, matrix map[string]any) []string {
	m := matrixValue.FindStringSubmatch(line)
	if m == nil {
		return []string{line}
	}
	var lines []string
	values, _ := matrix[m[1]].([]any)
	for _, v := range values {
		lines = append(lines, strings.Replace(line, m[0], fmt.Sprint(v), 1))
	}
	return lines
}

// Workflows run scripts that also run locally: each line is one command of a script, and the script accepts its
// arguments.
func TestCommandsExist(t *testing.T) {
	known := map[string]bool{".ci/release": true, upgradeCommand: true, "./build.sh docs": true}
	for _, step := range linuxSteps(t) {
		known[".ci/run "+step] = true
	}
	for _, step := range metalSteps(t) {
		known[".ci/metal "+step] = true
	}
	for _, part := range longParts(t) {
		known["./build.sh test-long "+part] = true
	}
	for file := range workflows(t) {
		lines := commands(t, file)
		require.NotEmpty(t, lines, file)
		for _, line := range lines {
			require.True(t, known[line], "%s: no script has the command %q", file, line)
			info, err := os.Stat(filepath.Join(root, strings.Fields(line)[0]))
			require.NoError(t, err)
			require.NotZero(t, info.Mode()&0o111, "%s is not executable", info.Name())
		}
	}
}

// Every step of the scripts is run by a workflow.
func TestEveryStepRuns(t *testing.T) {
	for _, step := range linuxSteps(t) {
		require.Contains(t, commands(t, "ci.yml"), ".ci/run "+step)
	}
	for _, step := range metalSteps(t) {
		require.Contains(t, commands(t, "metal.yml"), ".ci/metal "+step)
	}
	for _, part := range longParts(t) {
		require.Contains(t, commands(t, "nightly.yml"), "./build.sh test-long "+part)
	}
}

const upgradeCommand = "./build.sh upgrade newest --markdown upgrade.md"

// The weekly comparison with the newest MLX uploads its report, if there is one. Its flags are in the help text.
func TestUpgrade(t *testing.T) {
	require.Equal(t, []string{upgradeCommand}, commands(t, "upgrade.yml"))
	text, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "upgrade.yml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "path: upgrade.md\n          if-no-files-found: ignore\n")
	help, err := exec.Command("bash", filepath.Join(root, "build.sh"), "help").Output()
	require.NoError(t, err)
	require.Contains(t, string(help), "upgrade VERSION")
	require.Contains(t, string(help), "--markdown FILE")
}

// linuxSteps lists the steps of .ci/run.
func linuxSteps(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("bash", filepath.Join(root, ".ci", "run"), "--list").Output()
	require.NoError(t, err)
	require.NotEmpty(t, out)
	return strings.Fields(string(out))
}

// metalSteps lists the steps of .ci/metal, which its usage names.
func metalSteps(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("bash", filepath.Join(root, ".ci", "metal")).CombinedOutput()
	require.Equal(t, 2, exitCode(err), "%s", out)
	steps, found := strings.CutPrefix(strings.TrimSpace(string(out)), "usage: .ci/metal ")
	require.True(t, found, "%s", out)
	return strings.Split(steps, "|")
}

// longParts lists the parts of ./build.sh test-long.
func longParts(t *testing.T) []string {
	t.Helper()
	parts := []string{"setup", "tests", "cuda", "parity", "clang"}
	shaders, err := os.ReadDir(filepath.Join(root, "customkernels", "shaders"))
	require.NoError(t, err)
	for _, s := range shaders {
		parts = append(parts, s.Name())
	}
	return parts
}

// The nightly workflow tests every version of MLX in the lock file but the default.
func TestNightlyVersions(t *testing.T) {
	var lock struct {
		Default string
		Pairs   []struct{ MLX struct{ Version string } }
	}
	read(t, "third_party/mlx-c/lock.json", &lock)
	others := []any{}
	for _, p := range lock.Pairs {
		if p.MLX.Version != lock.Default {
			others = append(others, p.MLX.Version)
		}
	}
	require.Equal(t, others, workflows(t)["nightly.yml"].Jobs["pairs"].Strategy.Matrix["mlx"])
}

func exitCode(err error) int {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	return 0
}

// A misnamed step fails before anything runs.
func TestUnknownStep(t *testing.T) {
	out, err := exec.Command("bash", filepath.Join(root, ".ci", "run"), "setup", "tset").CombinedOutput()
	require.Equal(t, 2, exitCode(err), "%s", out)
	require.Contains(t, string(out), ".ci/run: tset is not a step; the steps are: setup test ")
}

// A step that fails ends .ci/run with its status, and so does a command in the middle of a step.
func TestFailingStep(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	require.NoError(t, err)
	checkout := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(checkout, ".ci"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(checkout, ".ci", "run"), script, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(checkout, "build.sh"), []byte("#!/bin/sh\n"), 0o755))
	bin := t.TempDir()
	for name, text := range map[string]string{
		"go":  "#!/bin/sh\necho \"go $*\"\ncase $* in *FuzzNPY*) exit 1 ;; esac\n",
		"g++": "#!/bin/sh\n", "git": "#!/bin/sh\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755))
	}
	cmd := exec.Command("bash", filepath.Join(checkout, ".ci", "run"), "asan", "fuzz", "race")
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	require.Equal(t, 1, exitCode(err), "%s", out)
	require.Contains(t, string(out), "== asan: passed in ")
	require.Contains(t, string(out), "^FuzzNPY$")
	require.NotContains(t, string(out), "^FuzzGGUF$")
	require.NotContains(t, string(out), "== race")
}

// The summary of a job has the output of parity, and the step fails with it.
func TestMetalSummary(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(root, ".ci", "metal"))
	require.NoError(t, err)
	checkout, summary := t.TempDir(), filepath.Join(t.TempDir(), "summary.md")
	require.NoError(t, os.Mkdir(filepath.Join(checkout, ".ci"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(checkout, ".ci", "metal"), script, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(checkout, "build.sh"),
		[]byte("#!/bin/sh\necho \"$*, limit $MLXGRAD_MEMORY_LIMIT\"\nexit 3\n"), 0o755))
	cmd := exec.Command("bash", filepath.Join(checkout, ".ci", "metal"), "parity")
	cmd.Env = append(os.Environ(), "GITHUB_STEP_SUMMARY="+summary, "MLXGRAD_MEMORY_LIMIT=")
	out, err := cmd.CombinedOutput()
	require.Equal(t, 3, exitCode(err), "%s", out)
	text, err := os.ReadFile(summary)
	require.NoError(t, err)
	require.Equal(t, "### Parity\n\n```text\nparity --json report.json, limit 3GiB\n```\n", string(text))
}

// Dependabot's configuration has the actions and every module.
func TestDependabot(t *testing.T) {
	var config struct {
		Version int
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
		}
	}
	read(t, ".github/dependabot.yml", &config)
	require.Equal(t, 2, config.Version)
	require.Len(t, config.Updates, 3)
	require.Equal(t, "github-actions", config.Updates[0].Ecosystem)
	require.Equal(t, "gomod", config.Updates[1].Ecosystem)
	require.Equal(t, "pip", config.Updates[2].Ecosystem)
	require.Equal(t, []string{"/tools/docs"}, config.Updates[2].Directories)
	require.FileExists(t, filepath.Join(root, "tools/docs/requirements.txt"))
	directories := []string{"/"}
	for _, pattern := range []string{"*/go.mod", "*/*/go.mod"} {
		modules, err := fs.Glob(os.DirFS(root), pattern)
		require.NoError(t, err)
		for _, m := range modules {
			directories = append(directories, "/"+path.Dir(m))
		}
	}
	require.ElementsMatch(t, directories, config.Updates[1].Directories)
}

// GitHub shows an issue form only if it has these keys and its questions have different identifiers.
func TestIssueForms(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, ".github", "ISSUE_TEMPLATE", "*.yml"))
	require.NoError(t, err)
	forms := 0
	for _, path := range paths {
		if filepath.Base(path) == "config.yml" {
			continue
		}
		forms++
		var form struct {
			Name, Description string
			Body              []struct {
				Type, ID   string
				Attributes struct{ Label, Value string }
			}
		}
		read(t, filepath.Join(".github", "ISSUE_TEMPLATE", filepath.Base(path)), &form)
		require.NotEmpty(t, form.Name, path)
		require.NotEmpty(t, form.Description, path)
		ids, doctor := map[string]bool{}, false
		for _, item := range form.Body {
			require.Contains(t, []string{"markdown", "input", "textarea"}, item.Type, path)
			if item.Type == "markdown" {
				require.NotEmpty(t, item.Attributes.Value, path)
				continue
			}
			require.NotEmpty(t, item.Attributes.Label, path)
			require.False(t, item.ID == "" || ids[item.ID], "%s: the id %q is missing or repeated", path, item.ID)
			ids[item.ID] = true
			doctor = doctor || item.ID == "doctor"
		}
		require.True(t, doctor, "%s does not ask for the report of mlxgrad doctor", path)
	}
	require.Equal(t, 2, forms)
}

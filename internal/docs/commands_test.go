package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	ourCommand = regexp.MustCompile(`^(?:go (?:run|install) github\.com/mlxgrad/mlxgrad/cmd/|go run \./cmd/|\./)?` +
		`(mlxgrad|metalsan)(?:@\S+)?(?: (.*))?$`)
	buildVerb = regexp.MustCompile(`^(?:\S+=\S* )*\./build\.sh(?: (\S+))?`)
	goTest    = regexp.MustCompile(`^(?:\S+=\S* )*(?:go|\./build\.sh) test (.*)$`)
	testName  = regexp.MustCompile(`-run '?\^?(\w+)`)
	flagName  = regexp.MustCompile(`(?:^| )--([a-z][a-z-]*)`)
)

// The commands of this repository in the documents have the verbs, flags, packages and tests that the documents name.
func TestCommands(t *testing.T) {
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir+"/", "./cmd/mlxgrad", "./cmd/metalsan")
	build.Dir = root
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	usage, err := exec.Command(filepath.Join(root, "build.sh"), "help").Output()
	require.NoError(t, err)
	helps := map[string]string{}
	help := func(program, verb string) string {
		key := program + " " + verb
		if helps[key] == "" {
			args := strings.Fields(verb + " --help")
			out, err := exec.Command(filepath.Join(dir, program), args...).CombinedOutput()
			require.NoError(t, err, "%s: %s", key, out)
			helps[key] = string(out)
		}
		return helps[key]
	}
	checked := 0
	for _, p := range pages(t) {
		for _, line := range p.commands() {
			if m := ourCommand.FindStringSubmatch(line); m != nil && !strings.HasPrefix(line, "go install") {
				checked++
				program, verb := m[1], ""
				if program == "mlxgrad" {
					verb, _, _ = strings.Cut(m[2], " ")
					if strings.HasPrefix(verb, "-") {
						verb = ""
					}
				}
				text := help(program, verb)
				for _, f := range flagName.FindAllStringSubmatch(m[2], -1) {
					require.Regexp(t, `--(\[no-\])?`+f[1]+`\b`, text, "%s: %s", p.path, line)
				}
			}
			if m := buildVerb.FindStringSubmatch(line); m != nil && m[1] != "" && !strings.HasPrefix(m[1], "-") {
				checked++
				require.Contains(t, string(usage), "\n  "+m[1]+" ", "%s: %s", p.path, line)
				if m[1] == "parity" {
					for _, f := range flagName.FindAllStringSubmatch(line, -1) {
						require.Contains(t, help("mlxgrad", "parity"), "--"+f[1], "%s: %s", p.path, line)
					}
				}
			}
			if m := goTest.FindStringSubmatch(line); m != nil {
				checked++
				checkGoTest(t, p.path, m[1])
			}
		}
	}
	require.Greater(t, checked, 30)
}

// commands returns the lines of shell blocks without comments, and the code in sentences.
func (p page) commands() []string {
	lines := append([]string{}, p.spans...)
	for _, b := range p.blocks {
		if b.language == "sh" {
			for line := range strings.Lines(strings.ReplaceAll(b.code, "\\\n", "")) {
				line, _, _ = strings.Cut(line, " # ")
				for command := range strings.SplitSeq(line, " && ") {
					lines = append(lines, strings.TrimSpace(command))
				}
			}
		}
	}
	return lines
}

// checkGoTest checks the packages and the test of a go test command.
func checkGoTest(t *testing.T, path, args string) {
	t.Helper()
	var packages []string
	for arg := range strings.FieldsSeq(args) {
		if strings.HasPrefix(arg, "./") {
			packages = append(packages, arg)
			require.DirExists(t, filepath.Join(root, strings.TrimSuffix(arg, "/...")), "%s: go test %s", path, args)
		}
	}
	m := testName.FindStringSubmatch(args)
	if m == nil || len(packages) != 1 {
		return
	}
	files, err := filepath.Glob(filepath.Join(root, packages[0], "*_test.go"))
	require.NoError(t, err)
	found := false
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		found = found || regexp.MustCompile(`(?m)^func Test\w*`+strings.TrimPrefix(m[1], "Test")).Match(text)
	}
	require.True(t, found, "%s: no test matches go test %s", path, args)
}

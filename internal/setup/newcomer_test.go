package setup

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
)

var transcriptFile = flag.String("transcript", "", "write the commands of TestNewcomer and their output to this `file`")

// tourParts are the parts of docs/tour.md that a newcomer copies or compares with.
type tourParts struct {
	racy, check, finding string // The shader with a race, the command that finds the race, and its finding.
	correct              string // The shader without the race.
	program, output      string // The training program and what it prints.
}

// A paragraph may stand between a program and its output.
var tourText = regexp.MustCompile("(?s)```metal\n(.*?)```.*?" +
	"```sh\n(go run \\S*/cmd/metalsan@latest mse.metal)\n```.*?" +
	"```text\n(mse.metal:\\d+:\\d+: error: race: [^\n]*\n)```.*?" +
	"```metal\n(.*?)```.*?" +
	"```go\n(package main\n.*?)```.*?" +
	"```text\n(.*?)```")

func readTour(t *testing.T, repository string) tourParts {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "docs", "tour.md"))
	require.NoError(t, err)
	m := tourText.FindSubmatch(text)
	require.NotNil(t, m, "docs/tour.md lacks a part that tourText names, or has the parts in another order")
	return tourParts{
		racy: string(m[1]), check: string(m[2]), finding: string(m[3]),
		correct: string(m[4]), program: string(m[5]), output: string(m[6]),
	}
}

// The tests below are long. This one fails at once if an edit of the documents removes what they read.
func TestDocumentsHaveTheNewcomersParts(t *testing.T) {
	tour := readTour(t, "../..")
	require.Contains(t, tour.program, `customkernels.Load(os.DirFS("."), "mse.metal")`)
	require.Contains(t, tour.output, "weight 2.00")
	(&stranger{t: t, repository: "../.."}).readme()
}

// A stranger installs mlxgrad, writes the kernel of the tour with its race, finds the race, corrects the kernel, and
// trains with it.
func TestNewcomerFromTheModuleProxy(t *testing.T) {
	long.Only(t, "compiles Go's standard library and everything else with empty caches")
	s := newStranger(t)
	program, want, lines := s.readme()
	tour := readTour(t, s.repository)

	s.write("main.go", program)
	s.must("go mod init example")
	for _, line := range lines[:2] {
		s.must(line)
	}
	require.Contains(t, s.must(lines[2]), want)

	s.write("mse.metal", tour.racy)
	out, err := s.sh(tour.check)
	require.Error(t, err)
	require.Contains(t, out, tour.finding)
	s.write("mse.metal", tour.correct)
	require.Contains(t, s.must(tour.check), "2 kernels, 2 launches, 0 errors, 0 portability findings")

	s.write("main.go", tour.program)
	require.Contains(t, s.must("go run ."), tour.output)
	t.Log(s.transcript.String())
	if *transcriptFile != "" {
		require.NoError(t, os.WriteFile(*transcriptFile, []byte(s.transcript.String()), 0o644))
	}
}

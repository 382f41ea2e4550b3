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

var (
	shaders  = regexp.MustCompile("(?s)```metal\n(.*?)```")
	checking = regexp.MustCompile("```sh\n(go run \\S*/cmd/metalsan@latest mse.metal)\n```")
	race     = regexp.MustCompile("```text\n(mse.metal:\\d+:\\d+: error: race: .*\n)```")
	training = regexp.MustCompile("(?s)```go\n(package main[^`]*?mse.metal.*?)```\n\n```text\n(.*?)```")
)

// A stranger installs mlxgrad, writes the kernel of the tour with its race, finds the race, corrects the kernel, and
// trains with it.
func TestNewcomerFromTheModuleProxy(t *testing.T) {
	long.Only(t, "compiles Go's standard library and everything else with empty caches")
	s := newStranger(t)
	program, want, lines := s.readme()
	tour, err := os.ReadFile(filepath.Join(s.repository, "docs", "tour.md"))
	require.NoError(t, err)
	kernels := shaders.FindAllSubmatch(tour, -1)
	require.Len(t, kernels, 2, "with the race and without it")
	check := string(checking.FindSubmatch(tour)[1])
	loop := training.FindSubmatch(tour)

	s.write("main.go", program)
	s.must("go mod init example")
	for _, line := range lines[:2] {
		s.must(line)
	}
	require.Contains(t, s.must(lines[2]), want)

	s.write("mse.metal", string(kernels[0][1]))
	out, err := s.sh(check)
	require.Error(t, err)
	require.Contains(t, out, string(race.FindSubmatch(tour)[1]))
	s.write("mse.metal", string(kernels[1][1]))
	require.Contains(t, s.must(check), "2 kernels, 2 launches, 0 errors, 0 portability findings")

	s.write("main.go", string(loop[1]))
	require.Contains(t, s.must("go run ."), string(loop[2]))
	t.Log(s.transcript.String())
	if *transcriptFile != "" {
		require.NoError(t, os.WriteFile(*transcriptFile, []byte(s.transcript.String()), 0o644))
	}
}

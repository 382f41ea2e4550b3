package setup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// The fake go builds programs that print their arguments.
func TestBuildScript(t *testing.T) {
	if runtime.GOOS == "windows" {
		skip.Platform(t, "Windows has no bash")
	}
	parent := t.TempDir()
	root := filepath.Join(parent, "a checkout")
	third, bin := filepath.Join(root, "third_party", "mlx-c"), filepath.Join(parent, "bin")
	require.NoError(t, os.MkdirAll(filepath.Join(third, "install"), 0o755))
	require.NoError(t, os.MkdirAll(bin, 0o755))
	script, err := os.ReadFile(filepath.Join("..", "..", "build.sh"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "build.sh"), script, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), []byte(`#!/bin/sh
[ -z "$GO_FAILS" ] || { echo "$GO_FAILS" >&2; exit 1; }
[ "$1" != list ] || { printf 'm/ops\nm/internal/setup\nm/compare\n'; exit 0; }
[ "$1" = build ] || { echo "go in $PWD: $*${CXX:+, CXX=$CXX}${MLXGRAD_LONG:+, long $MLXGRAD_LONG}"; case $* in ${GO_TEST_FAILS:-none}) exit 1 ;; esac; exit 0; }
case $* in *-buildvcs=false*) ;; *) echo "error obtaining VCS status" >&2; exit 1 ;; esac
while [ "$1" != -o ]; do shift; done
mkdir -p "$(dirname "$2")"
printf '#!/bin/sh\necho "$(basename "$0"): $*"\n' >"$2"
chmod +x "$2"
`), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "clang++"), []byte("#!/bin/sh\n"), 0o755))
	// The fake pip creates the folder of --target.
	require.NoError(t, os.WriteFile(filepath.Join(bin, "python3"), []byte(`#!/bin/sh
while [ "$1" != --target ]; do shift; done
mkdir -p "$2"
`), 0o755))

	path := "a checkout/build.sh"
	run := func(env []string, args ...string) (string, int) {
		t.Helper()
		cmd := exec.Command("bash", append([]string{path}, args...)...)
		cmd.Dir = parent
		cmd.Env = append([]string{"PATH=" + bin + ":/usr/bin:/bin"}, env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			require.IsType(t, &exec.ExitError{}, err, "%s", out)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	set := "setup: " + third

	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, set + "\n"},
		{[]string{"--backend", "cuda13"}, set + " --backend cuda13\n"},
		{[]string{"setup", "--backend", "cuda13"}, set + " --backend cuda13\n"},
		{[]string{"install", "--prefix", "a b"}, set + "\n" + set + " install --prefix a b\n"},
		{[]string{"package", "a b"}, set + "\n" + set + " package a b\n"},
		{[]string{"parity", "--help"}, set + "\nmlxgrad: parity --help\n"},
		{[]string{"parity", "--case", "a b"}, set + "\nmlxgrad: parity --case a b\n"},
		{[]string{"test"}, set + "\ngo in " + root + ": test " + testFlags + " -timeout 40m ./ops ./...\n"},
		{
			[]string{"test", "./ops", "-run", "X"},
			set + "\ngo in " + root + ": test " + testFlags + " -timeout 40m ./ops -run X\n",
		},
		{
			[]string{"bench", "-bench", "X"},
			set + "\ngo in " + root + ": test " + testFlags + " -timeout 40m ./ops ./... -run=^$ -bench=. -bench X\n",
		},
		{
			[]string{"bench", "overhead", "-count=2"},
			set + "\ngo in " + root + ": test " + testFlags + " -timeout 40m -run=^$ -bench=. ./mlxc/internal/overhead -count=2\n",
		},
	} {
		// A CDPATH with a folder of the same name changes nothing.
		require.NoError(t, os.MkdirAll(filepath.Join(parent, "other", "a checkout"), 0o755))
		out, code := run([]string{"CDPATH=" + filepath.Join(parent, "other")}, test.args...)
		require.Equal(t, test.want, out, "%q", test.args)
		require.Zero(t, code)
	}

	// test-long continues after a failed part and reports it at the end.
	require.NoError(t, os.MkdirAll(filepath.Join(root, "customkernels", "shaders"), 0o755))
	for _, shader := range []string{"rows.h", "softmax.metal"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, "customkernels", "shaders", shader), nil, 0o644))
	}
	var ran []string
	out, code := run([]string{"GO_TEST_FAILS=*rows*"}, "test-long")
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, "go in "+root+": "); ok {
			ran = append(ran, strings.TrimSpace(rest))
		}
	}
	require.Equal(t, []string{
		"test -timeout 2h -count=1 ./internal/setup, long 1",
		"test -tags=mlxheaders -timeout 6h -skip ^TestMutationsAreNoticed$ m/ops m/compare, long 1",
		"test -timeout 2h ./customkernels/internal/nvrtc, long 1",
		"test -timeout 24h ./ops -run ^TestMutationsAreNoticed$/^rows$, long 1",
		"test -timeout 24h ./ops -run ^TestMutationsAreNoticed$/^softmax$, long 1",
		"test -timeout 2h ./customkernels/... ./ops, CXX=clang++, long full",
	}, ran, out)
	require.Contains(t, out, "mlxgrad: parity --full\n== passed in ")
	require.Contains(t, out,
		"mlxgrad test-long: 1 parts failed:\n  go test -timeout 24h ./ops -run ^TestMutationsAreNoticed$/^rows$\n")
	require.Equal(t, 1, code)
	_, code = run(nil, "test-long")
	require.Zero(t, code)
	out, code = run(nil, "test-long", "clang", "rows.h")
	require.Zero(t, code)
	require.Regexp(t, `(?s)go in [^\n]* ./customkernels/... ./ops, CXX=clang\+\+, long full\n.*go in [^\n]*/\^rows\$, long 1\n`, out)
	require.Equal(t, 2, strings.Count(out, "go in "))
	out, code = run(nil, "test-long", "setup", "rows")
	require.Equal(t, 1, code)
	require.Contains(t, out,
		"mlxgrad test-long: rows is not a part; the parts are: setup tests cuda parity rows.h softmax.metal clang\n")
	require.NotContains(t, out, "go in ", "nothing runs if a part is misnamed")

	// Links lead to the checkout, whatever the folder of the link.
	links := filepath.Join(parent, "links")
	require.NoError(t, os.Mkdir(links, 0o755))
	for link, target := range map[string]string{
		"links/absolute": filepath.Join(root,
			"build.sh"), "links/relative": "../a checkout/build.sh", "links/link": "relative",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(parent, link)))
	}
	for _, path = range []string{"links/absolute", "links/relative", "links/link", filepath.Join(links, "link")} {
		out, code := run(nil, "setup")
		require.Equal(t, set+"\n", out, path)
		require.Zero(t, code)
	}
	path = "a checkout/build.sh"

	for _, verb := range []string{
		"help", "-h", "--help", "setup", "install", "package", "test", "test-long", "bench",
		"lint", "clean",
	} {
		out, code := run(nil, verb, "--help")
		require.Contains(t, out, "usage: ./build.sh [verb] [flags]", verb)
		require.NotContains(t, out, "setup: ", verb)
		require.Zero(t, code)
	}
	require.FileExists(t, filepath.Join(third, "build", "setup"), "asking for help does not clean")

	for _, verb := range []string{"lint", "clean"} {
		out, code := run(nil, verb, "--dry-run")
		require.Contains(t, out, "mlxgrad "+verb+": unexpected argument --dry-run: the verb takes none; see ./build.sh help")
		require.Equal(t, 1, code)
	}
	require.FileExists(t, filepath.Join(third, "build", "setup"), "nor does a flag that clean has not")
	out, code = run(nil, "celan")
	require.Contains(t, out, "mlxgrad celan: unknown verb: see above")
	require.Equal(t, 1, code)

	for says, want := range map[string]string{
		"open " + third + "/build/setup: permission denied":     "make third_party/mlx-c writable",
		"open " + third + "/build/setup: read-only file system": "make third_party/mlx-c writable",
		"write setup: no space left on device":                  "the disk is full",
		"mkdir /cache: permission denied":                       "mkdir /cache: permission denied",
		"main.go:1: syntax error":                               "main.go:1: syntax error",
	} {
		out, code := run([]string{"GO_FAILS=" + says}, "setup")
		require.Contains(t, out, want)
		require.Equal(t, 1, code)
	}

	out, code = run(nil, "clean")
	require.Empty(t, out)
	require.Zero(t, code)
	require.NoDirExists(t, filepath.Join(third, "build"))
}

// testFlags are the flags that build.sh passes to every go test.
var testFlags = fmt.Sprintf("-tags=mlxheaders -p %d -vet=off -ldflags=-w", 1+runtime.NumCPU())

// Package skip skips tests for one of two reasons: a tool is missing, or the test does not apply to the platform.
// Package long skips tests that take minutes. The linter rejects direct calls of testing.T.Skip elsewhere.
//
// The environment variable MLXGRAD_REQUIRE lists tools, separated by commas. A test that lacks a listed tool
// fails. Continuous integration lists every tool that its tests use, so that no test is skipped unnoticed.
package skip

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Variable is the environment variable that lists required tools.
const Variable = "MLXGRAD_REQUIRE"

// A Tool is something that a machine may lack.
type Tool string

// The tools that MLXGRAD_REQUIRE may list.
const (
	CXX             Tool = "c++"              // a C++ compiler for the host executor
	GXX             Tool = "g++"              // g++ in particular
	Clang           Tool = "clang"            // clang and clang++
	Go              Tool = "go"               // the go command
	Git             Tool = "git"              // the git command
	MLXHeaders      Tool = "mlx-headers"      // MLX's headers in this repository's own installation
	Zig             Tool = "zig"              // a Zig compiler that set-up knows for this platform
	TrafficCompiler Tool = "traffic-compiler" // the compiler of ops/testdata/traffic.md
	Chromium        Tool = "chromium"         // the browser chromium or google-chrome
	Python          Tool = "python3"          // the python3 command
	GPU             Tool = "gpu"              // a GPU that MLX can use
	CUDA            Tool = "cuda"             // an NVIDIA GPU that MLX can use
	Metal           Tool = "metal"            // an Apple GPU that MLX can use
	NVRTC           Tool = "nvrtc"            // the CUDA compiler library that ./build.sh test-long cuda installs
	Corpus          Tool = "corpus"           // the repositories of package corpus
)

var tools = []Tool{CXX, GXX, Clang, Go, Git, MLXHeaders, Zig, TrafficCompiler, Chromium, Python, GPU, CUDA, Metal, NVRTC, Corpus}

// required reports whether MLXGRAD_REQUIRE lists the tool. It returns an error if the list has an unknown name.
func required(tool Tool) (bool, error) {
	found := false
	for name := range strings.SplitSeq(os.Getenv(Variable), ",") {
		listed := Tool(strings.TrimSpace(name))
		if listed != "" && !slices.Contains(tools, listed) {
			return false, fmt.Errorf("%s lists %q; the tools are %q", Variable, listed, tools)
		}
		found = found || listed == tool
	}
	return found, nil
}

// Lacking reports a missing tool. It fails the test if MLXGRAD_REQUIRE lists the tool. Otherwise it logs why the tool
// is missing, and the test continues.
func Lacking(t testing.TB, tool Tool, why any) {
	t.Helper()
	must, err := required(tool)
	switch {
	case err != nil:
		t.Fatal(err)
	case must:
		t.Fatalf("%s, which %s lists, is missing: %v", tool, Variable, why)
	}
	t.Logf("%s is missing: %v", tool, why)
}

// Missing skips the test because the machine lacks the tool, or fails it if MLXGRAD_REQUIRE lists the tool.
func Missing(t testing.TB, tool Tool, why any) {
	t.Helper()
	Lacking(t, tool, why)
	t.SkipNow()
}

// Program returns the path of the command with the tool's name. If it is not found, Program calls Missing.
func Program(t testing.TB, tool Tool) string {
	t.Helper()
	path, err := exec.LookPath(string(tool))
	if err != nil {
		Missing(t, tool, err)
	}
	return path
}

// GXXVersion returns the major version of g++. If there is no g++, GXXVersion calls Missing.
func GXXVersion(t testing.TB) int {
	t.Helper()
	out, err := exec.Command(Program(t, GXX), "-dumpversion").Output()
	if err != nil {
		t.Fatal(err)
	}
	var major int
	if _, err := fmt.Sscan(strings.SplitN(string(out), ".", 2)[0], &major); err != nil {
		t.Fatalf("g++ -dumpversion prints %q: %v", out, err)
	}
	return major
}

// Browser returns the path of Chromium. If it is not found, Browser calls Missing.
func Browser(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Missing(t, Chromium, "neither chromium nor google-chrome is on the PATH")
	return ""
}

// Platform skips a test that does not apply to this platform, build or device, regardless of the installed tools.
func Platform(t testing.TB, why string) {
	t.Helper()
	t.Skip(why)
}

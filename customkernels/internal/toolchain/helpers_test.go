package toolchain

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// testCache is the value of MLXGRAD_CACHE at the start of the tests.
var testCache string

// TestMain runs the tests with a new, empty cache. In a child process it runs fillCache instead.
func TestMain(m *testing.M) {
	writable = []string{os.TempDir()} // stand-ins for compilers write beside themselves
	if fill := os.Getenv("HOST_TEST_FILL"); fill != "" {
		os.Setenv("MLXGRAD_CACHE", fill)
		fillCache()
	}
	dir, err := os.MkdirTemp("", "host-test-")
	if err != nil {
		panic(err)
	}
	testCache = dir
	os.Setenv("MLXGRAD_CACHE", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// cold sets MLXGRAD_CACHE to an empty folder for the test and returns the folder of the cache in it.
func cold(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("MLXGRAD_CACHE", dir)
	forget()
	t.Cleanup(forget)
	return filepath.Join(dir, "host")
}

// forget clears the process's caches of libraries, compilers and folders, as a new process would start.
func forget() {
	cache.mu.Lock()
	clear(cache.loaded)
	cache.mu.Unlock()
	versions.Clear()
	precompiled.Clear()
	placesLock.Lock()
	clear(examined)
	clear(told)
	placesLock.Unlock()
}

// A library holds the bytes of a compiled library. These tests never load one.
type library struct{ content []byte }

var cache = &Cache[*library]{Load: func(path string) (*library, error) {
	content, err := os.ReadFile(path)
	return &library{content}, err
}}

// library returns the library that c compiles from source, or the cached one.
func (c *compiler) library(ctx context.Context, source string) (*library, error) {
	return cache.CompileWith(ctx, &Toolchain{c}, source)
}

// works requires that l has the bytes of copyLibrary, which every [standIn] returns as its result.
func works(t *testing.T, l *library) {
	t.Helper()
	want, err := os.ReadFile(copyLibrary())
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, l.content), "the library has other %d bytes than the compiler's %d", len(l.content), len(want))
}

// files lists the files of a folder whose names match a pattern.
func files(t *testing.T, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	return found
}

// A standIn is a fake compiler: a shell script that copies copyLibrary to its output file, for any source.
type standIn struct {
	*compiler
	dir string // the script's folder; the script reads it as $DIR
}

// newStandIn returns a stand-in that reports the version of the machine's first compiler and runs script before it
// copies. Each compilation appends a line to the file "starts": "headers" or "kernel".
func newStandIn(t *testing.T, script string) standIn {
	t.Helper()
	real := compilers(t)[0]
	dir := t.TempDir()
	path := filepath.Join(dir, "stand-in")
	text := "#!/bin/sh\nDIR='" + dir + `'
case " $* " in
*' --version '*) echo '` + real.version + `'; exit;;
*' c++-header '*) echo headers >>$DIR/starts;;
*) echo kernel >>$DIR/starts;;
esac
` + script + `
while [ "$1" != -o ]; do shift; done
cp ` + copyLibrary() + ` $2
`
	require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
	return standIn{&compiler{command: []string{path}, path: path, version: real.version}, dir}
}

// copyVariable is the environment variable that passes the result of copyLibrary to child processes.
const copyVariable = "HOST_TEST_COPY"

// copyLibrary returns the path of the library of the kernel "copy" in testCache. The first call compiles it.
var copyLibrary = sync.OnceValue(func() string {
	if path := os.Getenv(copyVariable); path != "" {
		return path
	}
	old := os.Getenv("MLXGRAD_CACHE")
	os.Setenv("MLXGRAD_CACHE", testCache)
	defer os.Setenv("MLXGRAD_CACHE", old)
	text, err := os.ReadFile("../executor/testdata/copy.cpp")
	if err != nil {
		panic(err)
	}
	c, err := findCompiler()
	if err != nil {
		panic(err)
	}
	if _, err := cache.obtain(context.Background(), c, cacheKey(c, string(text)), string(text)); err != nil {
		panic(err)
	}
	path, err := find(filepath.Join(testCache, "host"), cacheKey(c, string(text)), ".so")
	if err != nil {
		panic(err)
	}
	return path
})

// starts returns the number of compilations of a kind: "kernel" or "headers".
func (s standIn) starts(t *testing.T, kind string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "starts"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	require.NoError(t, err)
	return strings.Count(string(text), kind+"\n")
}

// set sets a variable for the duration of a test.
func set[T any](t *testing.T, variable *T, value T) {
	t.Helper()
	old := *variable
	*variable = value
	t.Cleanup(func() { *variable = old })
}

// eventually waits up to a minute until state returns true.
func eventually(t *testing.T, state func() bool) {
	t.Helper()
	require.Eventually(t, state, time.Minute, time.Millisecond)
}

// logged redirects slog's default logger for the test and returns a function that returns its output.
func logged(t *testing.T) func() string {
	t.Helper()
	var mu sync.Mutex
	var text bytes.Buffer
	old := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return text.Write(p)
	}), nil)))
	t.Cleanup(func() { slog.SetDefault(old) })
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// compilers returns a g++ and a clang++, if the machine has them. It skips the test if the machine has neither.
func compilers(t testing.TB) []*compiler {
	t.Helper()
	var found []*compiler
	for _, kind := range []struct {
		tool  skip.Tool
		names string
	}{
		{skip.GXX, "g++ g++-14 g++-13 g++-12"},
		{skip.Clang, "clang++ clang++-20 clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14"},
	} {
		names := strings.Fields(kind.names)
		i := slices.IndexFunc(names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
		if i < 0 {
			skip.Lacking(t, kind.tool, "none of "+kind.names+" is on the PATH")
			continue
		}
		path, err := exec.LookPath(names[i])
		require.NoError(t, err)
		version, err := compilerVersion(path, nil)
		require.NoError(t, err)
		found = append(found, &compiler{command: names[i : i+1], path: path, version: version})
	}
	if len(found) == 0 {
		skip.Missing(t, skip.CXX, ErrNoCompiler)
	}
	return found
}

func source(t testing.TB, name string, replace ...string) string {
	t.Helper()
	text, err := os.ReadFile("../executor/testdata/" + name + ".cpp")
	require.NoError(t, err)
	return strings.NewReplacer(replace...).Replace(string(text))
}

// compileFile compiles a kernel of package executor's testdata with the default compiler.
func compileFile(t testing.TB, name string, replace ...string) *library {
	t.Helper()
	l, err := cache.Compile(context.Background(), source(t, name, replace...))
	require.NoError(t, err)
	return l
}

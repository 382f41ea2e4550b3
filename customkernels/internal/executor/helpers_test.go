package executor

import (
	"bytes"
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/quickcompile"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// TestMain runs the tests with a new, empty cache.
func TestMain(m *testing.M) {
	flag.Parse()
	quickcompile.Set(!long.Full())
	dir, err := os.MkdirTemp("", "executor-test-")
	if err != nil {
		panic(err)
	}
	os.Setenv("MLXGRAD_CACHE", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// A compiler is a C++ compiler of the tests.
type compiler struct {
	*toolchain.Toolchain
	name string
}

// compilers returns a g++ and a clang++, if the machine has them. It skips the test if the machine has neither.
func compilers(t testing.TB) []compiler {
	t.Helper()
	var found []compiler
	for _, kind := range []struct {
		tool  skip.Tool
		names string
	}{
		{skip.GXX, "g++ g++-14 g++-13 g++-12"},
		{skip.Clang, "clang++ clang++-20 clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14"},
	} {
		before := len(found)
		for name := range strings.FieldsSeq(kind.names) {
			if c, err := toolchain.NewToolchain(name); err == nil {
				found = append(found, compiler{c, name})
				break
			}
		}
		if len(found) == before {
			skip.Lacking(t, kind.tool, "none of "+kind.names+" is on the PATH")
		}
	}
	if len(found) == 0 {
		skip.Missing(t, skip.CXX, toolchain.ErrNoCompiler)
	}
	return found
}

// source reads a kernel of testdata.
func source(t testing.TB, name string, replace ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".cpp")
	require.NoError(t, err)
	return strings.NewReplacer(replace...).Replace(string(text))
}

// compileFile compiles a file of testdata with the default compiler.
func compileFile(t testing.TB, name string, replace ...string) *Library {
	t.Helper()
	l, err := Compile(context.Background(), source(t, name, replace...))
	require.NoError(t, err)
	return l
}

// withCompilers runs the test once with every compiler, and requires that the returned buffers have the same bytes for
// all compilers.
func withCompilers(t *testing.T, text string, test func(t *testing.T, l *Library) []Buffer) {
	t.Helper()
	t.Parallel()
	var first [][]byte
	for _, c := range compilers(t) {
		ok := t.Run(c.name, func(t *testing.T) {
			l, err := libraries.CompileWith(context.Background(), c.Toolchain, text)
			require.NoError(t, err)
			results := test(t, l)
			for i, b := range results {
				got := unsafe.Slice((*byte)(b.Data), b.Shape[0])
				if len(first) <= i {
					first = append(first, bytes.Clone(got))
				}
				require.True(t, bytes.Equal(first[i], got), "result %d differs from that of the first compiler", i)
			}
		})
		if !ok {
			return
		}
	}
}

// buf returns a slice as a buffer. The shape counts elements.
func buf[T any](x []T) Buffer {
	return Buffer{Data: unsafe.Pointer(unsafe.SliceData(x)), Shape: []int{len(x)}}
}

// raw returns a slice as a buffer of bytes, for the comparison of withCompilers.
func raw[T any](x []T) Buffer {
	return Buffer{Data: unsafe.Pointer(unsafe.SliceData(x)), Shape: []int{len(x) * int(unsafe.Sizeof(x[0]))}}
}

// run runs the kernel on inputs without metadata.
func run(t testing.TB, l *Library, grid, threadgroup [3]int, in, out []Buffer) {
	t.Helper()
	require.NoError(t, l.Run(grid, threadgroup, make([]Metadata, len(in)), in, out))
}

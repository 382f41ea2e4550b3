package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// withPrecompiled returns, in an empty cache, what compiles a kernel to the bytes of its library,
// and where the headers are kept that it precompiles.
func withPrecompiled(t *testing.T) (library func() []byte, path string) {
	t.Helper()
	c := compilers(t)[0]
	if c.clang() {
		skip.Missing(t, skip.GXX, "clang++ reads the text of the headers")
	}
	text := source(t, "rms_norm_like", "TYPE", "half", "READS", "4")
	dir := cold(t)
	_, err := CacheDir()
	require.NoError(t, err)
	library = func() []byte {
		t.Helper()
		require.NoError(t, fill(t.Context(), c, dir, cacheKey(c, text), text))
		_, content := takeLibrary(t, dir)
		return content
	}
	return library, precompiledHeaders(dir, &Toolchain{c}, "", c.flags())
}

// A kernel is the same bytes with precompiled headers as with their text, which is read while
// others precompile them.
func TestPrecompiledHeadersChangeNothing(t *testing.T) {
	library, path := withPrecompiled(t)
	precompiled.Store(path, true)
	content := library()
	require.NoFileExists(t, path)
	precompiled.Delete(path)
	require.Equal(t, content, library())
	require.FileExists(t, path)
	require.Equal(t, content, library(), "with what was kept")
}

// The text is read instead of what is not whole, which is removed if the compiler minds it.
func TestDamagedPrecompiledHeaders(t *testing.T) {
	library, path := withPrecompiled(t)
	content := library()
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for _, size := range []int{0, 100, len(whole) / 2, len(whole) - 1} {
		require.NoError(t, os.WriteFile(path, whole[:size], 0o600))
		require.Equal(t, content, library(), size)
		if size > 50 {
			require.NoFileExists(t, path, size)
		}
	}
	require.NoError(t, os.WriteFile(path, []byte("no such file"), 0o600))
	require.Equal(t, content, library())
}

// Nobody else is to blame for a kernel that is refused.
func TestRefusedKernelKeepsPrecompiledHeaders(t *testing.T) {
	_, path := withPrecompiled(t)
	_, err := compilers(t)[0].library(t.Context(), source(t, "copy")+"nonsense;")
	var refused *CompileError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Output, "nonsense")
	require.FileExists(t, path)
}

// Where the headers cannot be precompiled, kernels are compiled all the same, and the next does not
// try again.
func TestHeadersThatAreNotPrecompiled(t *testing.T) {
	cold(t)
	real := compilers(t)[0]
	dir := t.TempDir()
	script, tries := filepath.Join(dir, "full-c++"), filepath.Join(dir, "tries")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\ncase \" $* \" in *' c++-header '*) "+
		"echo try >> "+tries+"; echo 'no space left on device' >&2; exit 1;; esac\nexec "+real.path+" \"$@\"\n"), 0o700))
	c := &compiler{command: []string{script}, path: script, version: real.version}
	for _, text := range []string{source(t, "copy"), source(t, "copy") + "// another\n"} {
		l, err := c.library(t.Context(), text)
		require.NoError(t, err)
		works(t, l)
	}
	count, err := os.ReadFile(tries)
	if !c.clang() {
		require.NoError(t, err)
		require.Equal(t, "try\n", string(count))
	}
}

// Precompiled headers are what the compiler reads: there may be no text.
func TestPrecompiledHeadersAreUsed(t *testing.T) {
	_, path := withPrecompiled(t)
	toolchain := &Toolchain{compilers(t)[0]}
	for turn := range 2 {
		work, err := os.MkdirTemp(filepath.Dir(path), "compile-")
		require.NoError(t, err)
		require.NoError(t, WriteHeaders(work))
		if turn == 1 {
			require.NoError(t, os.WriteFile(filepath.Join(work, metalHost), []byte("#error read as text\n"), 0o600))
		}
		require.NoError(t, os.WriteFile(filepath.Join(work, "a.cpp"), []byte(source(t, "copy")), 0o600))
		require.NoError(t, toolchain.RunOnHeaders(t.Context(), work, "a", "", toolchain.c.flags(), "-o", "a.so", "a.cpp"))
	}
}

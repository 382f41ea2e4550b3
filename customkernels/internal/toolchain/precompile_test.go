package toolchain

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// withPrecompiled sets up an empty cache. It returns the cache's folder, and a function that compiles a kernel with g++
// and returns the bytes of its library.
func withPrecompiled(t *testing.T) (library func() []byte, dir string) {
	t.Helper()
	c := compilers(t)[0]
	if c.clang() {
		skip.Missing(t, skip.GXX, "clang++ reads the text of the headers")
	}
	text := source(t, "rms_norm_like", "TYPE", "half", "READS", "4")
	dir = cold(t)
	_, err := CacheDir()
	require.NoError(t, err)
	library = func() []byte {
		t.Helper()
		require.NoError(t, fill(t.Context(), c, dir, cacheKey(c, text), text))
		_, content := takeLibrary(t, dir)
		return content
	}
	return library, dir
}

// A kernel compiles to the same bytes with precompiled headers as with their text.
func TestPrecompiledHeadersChangeNothing(t *testing.T) {
	library, dir := withPrecompiled(t)
	content := library()
	require.Len(t, files(t, dir, "*.gch"), 1)
	require.Equal(t, content, library(), "with precompiled headers from the cache")
	require.NoError(t, os.Remove(files(t, dir, "*.gch")[0]))
	require.Equal(t, content, library(), "with their text")
	require.Empty(t, files(t, dir, "*.gch"), "a process precompiles headers only once")
}

// Damaged precompiled headers are not read, and the next process precompiles them again.
func TestDamagedPrecompiledHeaders(t *testing.T) {
	library, dir := withPrecompiled(t)
	content := library()
	path := files(t, dir, "*.gch")[0]
	damaged := damage(t, path)
	forget()
	require.Equal(t, content, library())
	require.Len(t, files(t, dir, "*.gch"), 1)
	now, err := os.ReadFile(files(t, dir, "*.gch")[0])
	require.NoError(t, err)
	require.False(t, bytes.Equal(damaged, now))
	require.InDelta(t, len(damaged), len(now), 1e5)
}

// damage changes a byte of a file and returns its new content.
func damage(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	content[len(content)/2]++
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return content
}

// Precompiled headers that change while a process runs are verified again.
func TestPrecompiledHeadersThatChange(t *testing.T) {
	library, dir := withPrecompiled(t)
	content := library()
	damage(t, files(t, dir, "*.gch")[0])
	require.Equal(t, content, library())
	require.Empty(t, files(t, dir, "*.gch"))
}

// If g++ rejects precompiled headers whose hash is right, the kernel is compiled from the text, and they are removed.
func TestRefusedPrecompiledHeaders(t *testing.T) {
	library, dir := withPrecompiled(t)
	content := library()
	path := files(t, dir, "*.gch")[0]
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	c := compilers(t)[0]
	key := Hash(append([]string{(&Toolchain{c}).Key(), metalstd.HostHeader, ""}, c.flags()...)...)
	work, remove, err := WorkFolder(dir, "compile-")
	require.NoError(t, err)
	defer remove()
	half := filepath.Join(work, "half")
	require.NoError(t, os.WriteFile(half, whole[:len(whole)/2], 0o600))
	require.NoError(t, store(dir, key, ".gch", half))
	forget()
	require.Equal(t, content, library())
	require.Equal(t, []string{path}, files(t, dir, "*.gch"))
	require.Equal(t, content, library())
	_, err = find(dir, key, ".gch")
	require.NoError(t, err)
}

// A kernel with a compile error does not remove the precompiled headers.
func TestRefusedKernelKeepsPrecompiledHeaders(t *testing.T) {
	_, dir := withPrecompiled(t)
	_, err := compilers(t)[0].library(t.Context(), source(t, "copy")+"nonsense;")
	var refused *CompileError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, refused.Output, "nonsense")
	require.Len(t, files(t, dir, "*.gch"), 1)
}

// If precompiling the headers fails, kernels are compiled from the text, and later kernels do not try it again.
func TestPrecompilationFails(t *testing.T) {
	cold(t)
	c := newStandIn(t, `case " $* " in *' c++-header '*) echo 'internal compiler error' >&2; exit 1;; esac`)
	for _, text := range []string{source(t, "copy"), source(t, "copy") + "// another\n"} {
		l, err := c.library(t.Context(), text)
		require.NoError(t, err)
		works(t, l)
	}
	if !c.clang() {
		require.Equal(t, 1, c.starts(t, "headers"))
	}
}

// The compiler reads the precompiled headers, not the text: a kernel compiles even if the text is broken.
func TestPrecompiledHeadersAreUsed(t *testing.T) {
	_, dir := withPrecompiled(t)
	toolchain := &Toolchain{compilers(t)[0]}
	for turn := range 2 {
		work, remove, err := WorkFolder(dir, "compile-")
		require.NoError(t, err)
		defer remove()
		require.NoError(t, metalstd.WriteHost(work))
		if turn == 1 {
			require.NoError(t, os.WriteFile(filepath.Join(work, metalstd.HostHeader), []byte("#error read as text\n"), 0o600))
		}
		require.NoError(t, os.WriteFile(filepath.Join(work, "a.cpp"), []byte(source(t, "copy")), 0o600))
		require.NoError(t, toolchain.RunOnHeaders(t.Context(), work, "a", "metal_host.h", "", toolchain.c.flags(), "-o", "a.so", "a.cpp"))
	}
}

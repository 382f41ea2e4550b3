package toolchain

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClangVersion(t *testing.T) {
	for line, want := range map[string]int{
		"Ubuntu clang version 18.1.3 (1)":                18,
		"Debian clang version 14.0.6":                    14,
		"Apple clang version 17.0.0 (clang-1700.0.13.5)": 17,
		"g++ (Debian 12.2.0-14+deb12u1) 12.2.0":          0,
	} {
		require.Equal(t, want, clangVersion(line), line)
	}
}

// A wrapper such as ccache starts the compiler that its arguments name. The version is that of the compiler, also after
// another compiler has taken its place.
func TestVersionOfAWrappedCompiler(t *testing.T) {
	t.Setenv("MLXGRAD_CACHE", t.TempDir())
	dir := t.TempDir()
	wrapper, compiler := filepath.Join(dir, "wrapper"), filepath.Join(dir, "compiler")
	require.NoError(t, os.WriteFile(wrapper, []byte("#!/bin/sh\nexec \"$@\"\n"), 0o700))
	for _, version := range []string{"g++ 12", "clang version 18"} {
		require.NoError(t, os.WriteFile(compiler, []byte("#!/bin/sh\necho "+version+"\n"), 0o700))
		for range 2 {
			c, err := newCompiler([]string{wrapper, compiler})
			require.NoError(t, err)
			require.Equal(t, version, c.version)
		}
	}
}

func TestLargeFrames(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "library.so-k.su"), []byte(text), 0o600))
	}
	require.NoError(t, refuseFrames(dir, "k"), "no file")
	write(fmt.Sprintf("k.cpp:1:6:void f()\t%d\tstatic\nk.cpp:9:6:void g(float*)\t16\tdynamic,bounded\n\n", maxFrame))
	require.NoError(t, refuseFrames(dir, "k"))
	write(fmt.Sprintf("k.cpp:1:6:void f()\t16\tstatic\nk.cpp:9:6:void g()\t%d\tstatic\n", maxFrame+16))
	require.ErrorContains(t, refuseFrames(dir, "k"),
		fmt.Sprintf("kernel k: the local variables of a thread take %d bytes", maxFrame+16))
}

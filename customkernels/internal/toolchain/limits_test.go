package toolchain

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hangs is a script that waits for ever, in a process of its own as a compiler's driver does.
const hangs = `sleep 1000 & echo $! >$DIR/child; wait`

// untilStarted sets a limit that is long enough for the script hangs to start, and calls run with it.
func (s standIn) untilStarted(t *testing.T, limit *time.Duration, run func(limit string)) {
	t.Helper()
	set(t, limit, *limit)
	for *limit = 50 * time.Millisecond; len(files(t, s.dir, "child")) == 0; *limit *= 2 {
		forget()
		run(limit.String())
	}
}

// childIsGone waits for the end of the process that hangs started.
func (s standIn) childIsGone(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "child"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	eventually(t, func() bool {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		// One that has ended may wait for its parent.
		return err == nil && strings.Contains(string(status), ") Z ") || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	})
}

// A compiler that hangs is stopped with its children, and the error says so.
func TestCompilerThatHangs(t *testing.T) {
	dir := cold(t)
	c := newStandIn(t, hangs)
	c.untilStarted(t, &compilerLimit, func(limit string) {
		_, err := c.library(t.Context(), source(t, "copy"))
		require.EqualError(t, err, "compiling kernel custom_kernel_copy: "+c.path+" did not end within "+limit+" and was stopped")
	})
	c.childIsGone(t)
	require.Empty(t, files(t, dir, "compile-*"))
}

// A compiler that hangs when it is asked for its version is asked once.
func TestVersionThatHangs(t *testing.T) {
	cold(t)
	c := newStandIn(t, "")
	require.NoError(t, os.WriteFile(c.path, []byte("#!/bin/sh\nDIR='"+c.dir+"'\necho version >>$DIR/starts\n"+hangs+"\n"), 0o700))
	t.Setenv("CXX", c.path)
	c.untilStarted(t, &versionLimit, func(limit string) {
		require.NoError(t, os.RemoveAll(filepath.Join(c.dir, "starts")))
		for range 3 {
			_, err := cache.Compile(t.Context(), source(t, "copy"))
			require.ErrorIs(t, err, ErrNoCompiler)
			require.ErrorContains(t, err, c.path+" did not end within "+limit+" and was stopped")
		}
	})
	c.childIsGone(t)
	require.Equal(t, 1, c.starts(t, "version"))
}

// A file with the version of a compiler is believed only if it is whole.
func TestDamagedVersion(t *testing.T) {
	t.Setenv("CXX", newStandIn(t, "").path)
	dir := cold(t)
	works(t, compileFile(t, "copy"))
	path := files(t, dir, "*.version")[0]
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	libraries := files(t, dir, "*.so")
	for _, text := range []string{"", "\x00\xff\x00", "clang version 1", string(whole[:len(whole)-1]), string(whole) + "x", "\n" + string(whole)} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		forget()
		works(t, compileFile(t, "copy"))
		require.Equal(t, libraries, files(t, dir, "*.so"), "%q", text)
		now, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(whole), string(now))
	}
}

// CXX is read as the go command reads it, and a relative path holds in any folder.
func TestCXX(t *testing.T) {
	cold(t)
	c := newStandIn(t, "")
	odd := filepath.Join(t.TempDir(), "my tools")
	require.NoError(t, os.Mkdir(odd, 0o755))
	script, err := os.ReadFile(c.path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(odd, "g++"), script, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(odd, "wrap"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o700))
	text := source(t, "copy")
	t.Chdir(odd)
	for number, value := range []string{
		`"` + odd + `/g++"`, `'` + odd + `/g++'`, `./g++`, `./wrap "` + odd + `/g++" -DX=1`,
	} {
		t.Setenv("CXX", value)
		l, err := cache.Compile(t.Context(), text+"// "+value+"\n")
		require.NoError(t, err, value)
		works(t, l)
		require.Equal(t, number+1, c.starts(t, "kernel"), value)
	}
	for value, says := range map[string]string{
		odd + "/g++":       "within CXX, a path with spaces stands in quotes",
		`"` + odd + `/g++`: "the quote \" is not closed",
	} {
		t.Setenv("CXX", value)
		require.ErrorIs(t, Available(), ErrNoCompiler)
		require.ErrorContains(t, Available(), says)
	}
}

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

// hangs is a script that hangs in a child process, as a compiler driver does.
const hangs = `sleep 1000 & echo $! >$DIR/child; wait`

// untilStarted doubles limit and calls run, until the limit is long enough for the script hangs to start its child. It
// restores the limit after the test.
func (s standIn) untilStarted(t *testing.T, limit *time.Duration, run func(limit string)) {
	t.Helper()
	set(t, limit, *limit)
	for *limit = 50 * time.Millisecond; len(files(t, s.dir, "child")) == 0; *limit *= 2 {
		forget()
		run(limit.String())
	}
}

// childIsGone waits until the child process of the script hangs has ended.
func (s standIn) childIsGone(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "child"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	eventually(t, func() bool {
		status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		// An ended child remains a zombie until its parent reads its exit status.
		return err == nil && strings.Contains(string(status), ") Z ") || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	})
}

// A hanging compiler and its child processes are killed, and the error names the limit.
func TestHangingCompiler(t *testing.T) {
	dir := cold(t)
	c := newStandIn(t, hangs)
	c.untilStarted(t, &compilerLimit, func(limit string) {
		_, err := c.library(t.Context(), source(t, "copy"))
		require.EqualError(t, err, "compiling kernel custom_kernel_copy: "+c.path+" did not end within "+limit+" and was stopped")
	})
	c.childIsGone(t)
	require.Empty(t, files(t, dir, "compile-*"))
}

// A compiler whose --version hangs is run only once: the error is cached.
func TestHangingVersionQuery(t *testing.T) {
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

// A damaged version file in the cache is ignored and replaced.
func TestDamagedVersionFile(t *testing.T) {
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

// CXX has the syntax of the go command: quotes and arguments. A relative path in it works although the compiler runs in
// another folder.
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
		odd + "/g++":       "within CXX, quote a path that contains spaces",
		`"` + odd + `/g++`: "the quote \" is not closed",
	} {
		t.Setenv("CXX", value)
		require.ErrorIs(t, Available(), ErrNoCompiler)
		require.ErrorContains(t, Available(), says)
	}
}

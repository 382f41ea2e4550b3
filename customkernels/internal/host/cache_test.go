package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCompileError(t *testing.T) {
	for _, c := range compilers(t) {
		_, err := c.library(t.Context(), source(t, "broken"))
		var refused *CompileError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, "custom_kernel_broken", refused.Kernel)
		require.ErrorContains(t, err, "custom_kernel_broken.cpp:3:")
		require.ErrorContains(t, err, "undeclared_name")
		require.ErrorContains(t, err, c.version)
		require.NotContains(t, err.Error(), os.Getenv("MLXGRAD_CACHE"), "a message must not depend on the machine")
	}
}

func TestNoCompiler(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CXX", "")
	require.ErrorIs(t, Available(), ErrNoCompiler)
	require.ErrorContains(t, Available(), "install g++")
	require.Empty(t, CompilerInfo())
	_, err := Compile(t.Context(), source(t, "copy"))
	require.ErrorIs(t, err, ErrNoCompiler)
	t.Setenv("CXX", "no-such-compiler")
	require.ErrorIs(t, Available(), ErrNoCompiler)
	require.ErrorContains(t, Available(), "no-such-compiler")
}

// cold gives the test a cache of its own, and forgets what the process knows.
func cold(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("MLXGRAD_CACHE", dir)
	forget()
	t.Cleanup(forget)
	return filepath.Join(dir, "host")
}

func forget() {
	mu.Lock()
	clear(loaded)
	mu.Unlock()
}

func works(t *testing.T, l *Library) {
	t.Helper()
	y := make([]uint16, 3)
	run(t, l, [3]int{3, 1, 1}, [3]int{3, 1, 1}, []Buffer{buf([]uint16{0, 0x3c00, 0x4000}), buf([]float32{1})}, []Buffer{buf(y)})
	require.Equal(t, []uint16{0x4200, 0x4400, 0x4500}, y)
}

func TestCache(t *testing.T) {
	dir := cold(t)
	text := source(t, "copy")
	works(t, compileFile(t, "copy"))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	files := func(suffix string) []string {
		found, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
		require.NoError(t, err)
		return found
	}
	require.Len(t, files(".so"), 1)
	require.Len(t, files(".key"), 1)
	require.Empty(t, files("compile-*"), "a compilation leaves nothing else")

	// Nobody is asked for what is in memory, and no compiler for what is on disk.
	c, err := findCompiler()
	require.NoError(t, err)
	dead := *c
	dead.path = "/nonexistent"
	_, err = obtain(t.Context(), &dead, cacheKey(c, text), text)
	require.NoError(t, err)

	// Whatever befalls an entry, it is replaced.
	damage := map[string]func(path string){
		"library truncated": func(string) { require.NoError(t, os.Truncate(files(".so")[0], 5000)) },
		"library changed": func(string) {
			text, err := os.ReadFile(files(".so")[0])
			require.NoError(t, err)
			text[len(text)/2] ^= 1
			// A new file: the old one is mapped.
			require.NoError(t, os.Remove(files(".so")[0]))
			require.NoError(t, os.WriteFile(files(".so")[0]+"", text, 0o600))
		},
		"library gone": func(string) { require.NoError(t, os.Remove(files(".so")[0])) },
		"key empty":    func(string) { require.NoError(t, os.Truncate(files(".key")[0], 0)) },
		"key names another": func(string) {
			require.NoError(t, os.WriteFile(files(".key")[0], []byte(strings.Repeat("../", 21)+"x"), 0o600))
		},
	}
	delete(damage, "library truncated") // needs a library that is not mapped: below
	for name, do := range damage {
		if name == "library changed" {
			continue
		}
		do("")
		forget()
		l, err := Compile(t.Context(), text)
		require.NoError(t, err, name)
		works(t, l)
	}
}

// A library that is broken on disk is never mapped.
func TestCorruptLibrary(t *testing.T) {
	dir := cold(t)
	text := source(t, "copy")
	c, err := findCompiler()
	require.NoError(t, err)
	_, err = CacheDir()
	require.NoError(t, err)
	key := cacheKey(c, text)
	for _, damage := range []func(path string, content []byte) []byte{
		func(_ string, content []byte) []byte { return content[:len(content)/3] },
		func(_ string, content []byte) []byte { content[len(content)/2] ^= 1; return content },
		func(string, []byte) []byte { return nil },
	} {
		require.NoError(t, fill(t.Context(), c, dir, key, text))
		path, content := takeLibrary(t, dir)
		require.NoError(t, os.WriteFile(path, damage(path, content), 0o600))
		_, err = loadCached(dir, key)
		require.ErrorContains(t, err, "content differs from its hash")
		forget()
		l, err := Compile(t.Context(), text)
		require.NoError(t, err)
		works(t, l)
		require.NoError(t, os.Remove(path))
	}
}

// takeLibrary takes the only library out of a cache.
func takeLibrary(t *testing.T, dir string) (path string, content []byte) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.so"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	content, err = os.ReadFile(found[0])
	require.NoError(t, err)
	require.NoError(t, os.Remove(found[0]))
	return found[0], content
}

func TestCacheKey(t *testing.T) {
	t.Parallel()
	base := compiler{command: []string{"g++"}, path: "/usr/bin/g++", version: "g++ 12"}
	keys := map[string]string{}
	add := func(name string, c compiler, text string) {
		key := cacheKey(&c, text)
		require.NotContains(t, keys, key, name)
		keys[key] = name
	}
	add("base", base, "text")
	add("text", base, "text ")
	for name, change := range map[string]func(*compiler){
		"path":      func(c *compiler) { c.path = "/opt/g++" },
		"version":   func(c *compiler) { c.version = "g++ 13" },
		"arguments": func(c *compiler) { c.command = []string{"g++", "-m64"} },
	} {
		c := base
		change(&c)
		add(name, c, "text")
	}
	require.Equal(t, "base", keys[cacheKey(&base, "text")])
	require.NotEmpty(t, processor())
	require.Equal(t, processor(), processor())
}

func TestCacheWithoutHome(t *testing.T) {
	forget()
	t.Cleanup(forget)
	tmp := t.TempDir()
	t.Setenv("MLXGRAD_CACHE", "")
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("TMPDIR", tmp)
	dir, err := CacheDir()
	require.NoError(t, err)
	require.Equal(t, filepath.Join(tmp, fmt.Sprintf("mlxgrad-host-%d", os.Getuid())), dir)
	works(t, compileFile(t, "copy"))
	// A folder that others can write is made private, a file in its place refused.
	require.NoError(t, os.Chmod(dir, 0o777))
	checked.Clear()
	_, err = CacheDir()
	require.NoError(t, err)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	checked.Clear()
	_, err = CacheDir()
	require.Error(t, err)
}

// Callers with one source share a compilation; one that gives up leaves the
// others theirs, and the last to give up ends the compiler.
func TestSharedCompilation(t *testing.T) {
	cold(t)
	slow := slowCompiler(t)
	text := source(t, "copy")
	_, err := slow.library(t.Context(), text+"// for the headers\n")
	require.NoError(t, err)
	require.NoError(t, os.Remove(slow.command[1]))

	impatient, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	libraries, errs := make([]*Library, 8), make([]error, 8)
	for i := range libraries {
		ctx := t.Context()
		if i == 0 {
			ctx = impatient
		}
		wg.Go(func() { libraries[i], errs[i] = slow.library(ctx, text) })
	}
	time.Sleep(100 * time.Millisecond)
	cancel()
	wg.Wait()
	require.ErrorIs(t, errs[0], context.Canceled)
	for i := range libraries[1:] {
		require.NoError(t, errs[1+i])
		require.Same(t, libraries[1], libraries[1+i])
	}
	starts, err := os.ReadFile(slow.command[1])
	require.NoError(t, err)
	require.Equal(t, "start\n", string(starts), "compiled once")

	forget()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err = slow.library(ctx, text+"// other\n")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(began), 5*time.Second)
	mu.Lock()
	require.Empty(t, flights)
	mu.Unlock()
	// The compiler and its folder go away.
	require.Eventually(t, func() bool {
		left, err := filepath.Glob(filepath.Join(os.Getenv("MLXGRAD_CACHE"), "host", "compile-*"))
		return err == nil && len(left) == 0
	}, 5*time.Second, 10*time.Millisecond)
	l, err := slow.library(t.Context(), text)
	require.NoError(t, err)
	works(t, l)
}

// slowCompiler is a compiler that takes half a second more and notes its
// starts in its first argument.
func slowCompiler(t *testing.T) *compiler {
	t.Helper()
	c, err := findCompiler()
	require.NoError(t, err)
	dir := t.TempDir()
	script := filepath.Join(dir, "slow-c++")
	require.NoError(t, os.WriteFile(script, []byte("#!/bin/sh\necho start >> \"$1\"; shift\nsleep 0.5\nexec "+c.path+" \"$@\"\n"), 0o700))
	return &compiler{command: []string{script, filepath.Join(dir, "starts")}, path: script, version: c.version}
}

// Processes that fill one cache at once all come out with a good library.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	exe, err := os.Executable()
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), "HOST_TEST_FILL="+dir)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	found, err := filepath.Glob(filepath.Join(dir, "host", "*.key"))
	require.NoError(t, err)
	require.Len(t, found, 1)
}

// fillCache is what such a process does.
func fillCache() {
	text, err := os.ReadFile("testdata/copy.cpp")
	if err == nil {
		for range 3 {
			forget()
			if _, err = Compile(context.Background(), string(text)); err != nil {
				break
			}
		}
	}
	if err != nil && !errors.Is(err, ErrNoCompiler) {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

func BenchmarkCachedLoad(b *testing.B) {
	text := source(b, "row_sum")
	_, err := Compile(b.Context(), text)
	require.NoError(b, err)
	for b.Loop() {
		forget()
		versions.Clear()
		_, err := Compile(b.Context(), text)
		require.NoError(b, err)
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, c := range compilers(b) {
		b.Run(c.command[0], func(b *testing.B) {
			i := 0
			for b.Loop() {
				i++
				_, err := c.library(b.Context(), source(b, "rms_norm_like", "TYPE", "float", "READS", "4")+fmt.Sprintf("// %d %d\n", b.N, i))
				require.NoError(b, err)
			}
		})
	}
}

package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

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
	_, err := cache.Compile(t.Context(), source(t, "copy"))
	require.ErrorIs(t, err, ErrNoCompiler)
	t.Setenv("CXX", "no-such-compiler")
	require.ErrorIs(t, Available(), ErrNoCompiler)
	require.ErrorContains(t, Available(), "no-such-compiler")
}

func TestCache(t *testing.T) {
	t.Setenv("CXX", newStandIn(t, "").path)
	dir := cold(t)
	text := source(t, "copy")
	works(t, compileFile(t, "copy"))
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.Len(t, files(t, dir, "*.so"), 1)
	require.Empty(t, files(t, dir, "compile-*"), "a compilation removes its work folder")

	// A library in memory or on disk needs no compiler.
	c, err := findCompiler()
	require.NoError(t, err)
	dead := *c
	dead.path = "/nonexistent"
	_, err = cache.obtain(t.Context(), &dead, cacheKey(c, text), text)
	require.NoError(t, err)

	// An incomplete or damaged entry is replaced.
	library, key := files(t, dir, "*.so")[0], keyFile(dir, cacheKey(c, text))
	for name, do := range map[string]func() error{
		"library gone": func() error { return os.Remove(library) },
		"key empty":    func() error { return os.Truncate(key, 0) },
		"key gone":     func() error { return os.Remove(key) },
		"key names another": func() error {
			return os.WriteFile(key, []byte(strings.Repeat("../", 21)+"x"), 0o600)
		},
	} {
		require.NoError(t, do(), name)
		forget()
		l, err := cache.Compile(t.Context(), text)
		require.NoError(t, err, name)
		works(t, l)
	}
}

// A key file that names another kernel's library is rejected, and the kernel is compiled again.
func TestKeyFileNamesAnotherKernel(t *testing.T) {
	dir := cold(t)
	c := newStandIn(t, "")
	text := source(t, "copy")
	another := text + "// another\n"
	for _, text := range []string{text, another} {
		_, err := c.library(t.Context(), text)
		require.NoError(t, err)
	}
	key, err := os.ReadFile(keyFile(dir, cacheKey(c.compiler, another)))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(keyFile(dir, cacheKey(c.compiler, text)), key, 0o600))
	_, err = cache.loadCached(dir, cacheKey(c.compiler, text))
	require.Error(t, err)
	require.Equal(t, 2, c.starts(t, "kernel"))
	forget()
	l, err := c.library(t.Context(), text)
	require.NoError(t, err)
	works(t, l)
	require.Equal(t, 3, c.starts(t, "kernel"))
	_, err = cache.loadCached(dir, cacheKey(c.compiler, text))
	require.NoError(t, err)
}

// A damaged library on disk is rejected before it is mapped, and the kernel is compiled again.
func TestCorruptLibrary(t *testing.T) {
	t.Setenv("CXX", newStandIn(t, "").path)
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
		_, err = cache.loadCached(dir, key)
		require.ErrorIs(t, err, errDamaged)
		forget()
		l, err := cache.Compile(t.Context(), text)
		require.NoError(t, err)
		works(t, l)
		for _, path := range files(t, dir, "*.so") {
			require.NoError(t, os.Remove(path))
		}
	}
}

// takeLibrary removes the only library from a cache and returns its path and content.
func takeLibrary(t *testing.T, dir string) (path string, content []byte) {
	t.Helper()
	found := files(t, dir, "*.so")
	require.Len(t, found, 1)
	content, err := os.ReadFile(found[0])
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

// Concurrent callers with the same source share one compilation. If one caller's context is canceled, the compilation
// continues for the others. Canceling the last one kills the compiler.
func TestSharedCompilation(t *testing.T) {
	dir := cold(t)
	// While the file "hold" exists, the compiler blocks until it reads a line from the pipe "gate".
	slow := newStandIn(t, `if [ -e $DIR/hold ]; then read line <$DIR/gate; fi`)
	gate := filepath.Join(slow.dir, "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	text := source(t, "copy")
	_, err := slow.library(t.Context(), text+"// for the headers\n")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(slow.dir, "hold"), nil, 0o600))
	before := slow.starts(t, "kernel")

	impatient, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	compiled, errs := make([]*library, 8), make([]error, 8)
	for i := range compiled {
		ctx := t.Context()
		if i == 0 {
			ctx = impatient
		}
		wg.Go(func() { compiled[i], errs[i] = slow.library(ctx, text) })
	}
	waiting := func() int {
		cache.mu.Lock()
		defer cache.mu.Unlock()
		if f := cache.flights[cacheKey(slow.compiler, text)]; f != nil {
			return f.waiting
		}
		return 0
	}
	eventually(t, func() bool { return waiting() == len(compiled) })
	cancel()
	eventually(t, func() bool { return waiting() == len(compiled)-1 })
	require.NoError(t, os.WriteFile(gate, []byte("go\n"), 0)) // blocks until the compiler reads
	wg.Wait()
	require.ErrorIs(t, errs[0], context.Canceled)
	for i := range compiled[1:] {
		require.NoError(t, errs[1+i])
		require.Same(t, compiled[1], compiled[1+i])
	}
	require.Equal(t, before+1, slow.starts(t, "kernel"), "compiled once")

	forget()
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() { _, err = slow.library(ctx, text+"// other\n") })
	eventually(t, func() bool { return slow.starts(t, "kernel") == before+2 })
	cancel()
	wg.Wait()
	require.ErrorIs(t, err, context.Canceled)
	cache.mu.Lock()
	require.Empty(t, cache.flights)
	cache.mu.Unlock()
	// The compiler is killed and its work folder removed.
	eventually(t, func() bool { return len(files(t, dir, "compile-*")) == 0 })
	l, err := slow.library(t.Context(), text)
	require.NoError(t, err)
	works(t, l)
}

// Two processes that compile the same kernel into one cache at the same time both load a valid library.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	c := newStandIn(t, "")
	exe, err := os.Executable()
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			cmd := exec.Command(exe)
			cmd.Env = append(os.Environ(), "HOST_TEST_FILL="+dir, "CXX="+c.path)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
	require.NotEmpty(t, files(t, filepath.Join(dir, "host"), "*.so"))
	require.Empty(t, files(t, filepath.Join(dir, "host"), "compile-*"))
}

// fillCache is the main function of a child process that compiles the kernel "copy" into the cache, three times.
func fillCache() {
	text, err := os.ReadFile("../executor/testdata/copy.cpp")
	if err == nil {
		for range 3 {
			forget()
			if _, err = cache.Compile(context.Background(), string(text)); err != nil {
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
	_, err := cache.Compile(b.Context(), text)
	require.NoError(b, err)
	for b.Loop() {
		forget()
		versions.Clear()
		_, err := cache.Compile(b.Context(), text)
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

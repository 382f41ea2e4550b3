package toolchain

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
)

// A Cache compiles kernels and loads their libraries, each once in a process. L is the type of a loaded library. Other
// processes use the compiled libraries on disk.
type Cache[L any] struct {
	// Load loads a library from a file.
	Load func(path string) (L, error)

	mu      sync.Mutex
	loaded  map[string]L
	flights map[string]*flight[L]
}

// A flight is one running compilation, which all callers with the same key share.
type flight[L any] struct {
	done    chan struct{}
	library L
	err     error
	waiting int // callers
	cancel  context.CancelCauseFunc
}

// Compile returns the library of a kernel from this process, from the cache on disk, or from the compiler. source is a
// translation unit that includes metal_host.h and defines mlxg_invoke and mlxgrad_entry.
//
// Callers with the same source share one compilation. It is canceled when the contexts of all callers have ended. The
// error is a *CompileError if the compiler rejects the kernel, and ErrNoCompiler without a compiler.
func (cache *Cache[L]) Compile(ctx context.Context, source string) (L, error) {
	t, err := FindToolchain()
	if err != nil {
		var none L
		return none, err
	}
	return cache.CompileWith(ctx, t, source)
}

// CompileWith is Compile with a given compiler.
func (cache *Cache[L]) CompileWith(ctx context.Context, t *Toolchain, source string) (L, error) {
	key := cacheKey(t.c, source)
	return cache.Share(ctx, key, kernelName(source), func(ctx context.Context) (L, error) {
		return cache.obtain(ctx, t.c, key, source)
	})
}

// Share returns the library with the key if this process holds it, and calls obtain otherwise. Concurrent callers share
// one call, whose context ends when the contexts of all callers have ended. Errors name the kernel.
func (cache *Cache[L]) Share(ctx context.Context, key, kernel string, obtain func(context.Context) (L, error)) (L, error) {
	cache.mu.Lock()
	if l, ok := cache.loaded[key]; ok {
		cache.mu.Unlock()
		return l, nil
	}
	f := cache.flights[key]
	if f == nil {
		work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		f = &flight[L]{done: make(chan struct{}), cancel: cancel}
		if cache.flights == nil {
			cache.loaded, cache.flights = map[string]L{}, map[string]*flight[L]{}
		}
		cache.flights[key] = f
		go func() {
			l, err := obtain(work)
			cache.mu.Lock()
			f.library, f.err = l, err
			if err == nil {
				cache.loaded[key] = l
			}
			if cache.flights[key] == f {
				delete(cache.flights, key)
			}
			cache.mu.Unlock()
			close(f.done)
			cancel(nil)
		}()
	}
	f.waiting++
	cache.mu.Unlock()

	select {
	case <-f.done:
		return f.library, f.err
	case <-ctx.Done():
		cache.mu.Lock()
		defer cache.mu.Unlock()
		if f.waiting--; f.waiting == 0 {
			f.cancel(context.Cause(ctx))
			// The next caller starts a new compilation.
			if cache.flights[key] == f {
				delete(cache.flights, key)
			}
		}
		var none L
		return none, fmt.Errorf("compiling kernel %s: %w", kernel, context.Cause(ctx))
	}
}

// cacheFormat is part of the key of a library. Change it when the names or the format of cached files change, because
// different versions of this package share the cache.
const cacheFormat = "2"

// cacheKey returns the key of the library that c compiles from source on this processor.
func cacheKey(c *compiler, source string) string {
	return Hash(append([]string{
		cacheFormat, source, string(metalstd.HostHash[:]), c.path, c.version, processorName(),
		strings.Join(c.command[1:], "\x00"),
	}, append(c.flags(), libraries()...)...)...)
}

// obtain loads the library from the cache on disk, and compiles it first if it is missing.
func (cache *Cache[L]) obtain(ctx context.Context, c *compiler, key, source string) (l L, err error) {
	dirs, _ := folders()
	for _, dir := range dirs {
		if l, err := cache.loadCached(dir, key); err == nil {
			return l, nil
		}
	}
	err = InCache(func(dir string) error {
		err := fill(ctx, c, dir, key, source)
		if err != nil {
			return err
		}
		if l, err = cache.loadCached(dir, key); err != nil {
			return fmt.Errorf("kernel %s: loading the compiled library: %w", kernelName(source), err)
		}
		return nil
	})
	return l, err
}

func (cache *Cache[L]) loadCached(dir, key string) (L, error) {
	path, err := find(dir, key, ".so")
	if err != nil {
		var none L
		return none, err
	}
	return cache.Load(path)
}

// fill compiles source and stores the library in dir, a folder of the cache.
func fill(ctx context.Context, c *compiler, dir, key, source string) error {
	defer Compiling(c)()
	work, remove, err := WorkFolder(dir, "compile-")
	if err != nil {
		return fmt.Errorf("cache of compiled kernels: %w", err)
	}
	defer remove()
	if err := metalstd.WriteHost(work); err != nil {
		return fmt.Errorf("cache of compiled kernels: %w", err)
	}
	name := kernelName(source)
	file := fileName(name) + ".cpp"
	if err := os.WriteFile(filepath.Join(work, file), []byte(source), 0o600); err != nil {
		return fmt.Errorf("cache of compiled kernels: %w", err)
	}
	flags := c.flags()
	if err := (&Toolchain{c}).RefuseExpanded(ctx, work, name, file, source, flags); err != nil {
		return err
	}
	const out = "library.so"
	if err := c.compile(ctx, work, name, file, out, flags); err != nil {
		return err
	}
	if err := refuseFrames(work, name); err != nil {
		return err
	}
	if err := RefuseImports(filepath.Join(work, out), name); err != nil {
		return err
	}
	if err := store(dir, key, ".so", filepath.Join(work, out)); err != nil {
		return fmt.Errorf("cache of compiled kernels: %w", err)
	}
	return nil
}

var entryName = regexp.MustCompile(`mlxgrad_entry\s*=\s*\{\s*"([^"]*)"`)

// kernelName returns the kernel's name in a translation unit.
func kernelName(source string) string {
	if m := entryName.FindStringSubmatch(source); m != nil {
		return m[1]
	}
	return "kernel"
}

// fileName returns a file name for a kernel that any file system and compiler accepts.
func fileName(kernel string) string {
	name := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, kernel)
	return name[:min(len(name), 100)]
}

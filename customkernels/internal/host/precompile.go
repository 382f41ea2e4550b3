package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// precompiled holds the paths at which this process has tried to keep precompiled headers. It
// does so once: kernels that come meanwhile or later read the text if there are none.
var precompiled sync.Map

// RunOnHeaders is Run with flags and args in work, a folder of the cache that holds the headers
// and a kernel that includes metal_host.h first.
//
// Reading that is half of what g++ does for a kernel, so it is kept in the cache as
// precompiled with these flags, 30 to 50 MB for a compiler, and made by the first kernel, which
// takes three times as long. g++ finds it by itself beside the text; more names what it holds
// beyond this package's headers. It spares time and decides nothing: where it cannot be made
// or read, the text is. clang would save a quarter, and have to be told.
func (t *Toolchain) RunOnHeaders(ctx context.Context, work, kernel, more string, flags []string, args ...string) error {
	args = slices.Concat(flags, []string{"-I."}, args)
	if t.Clang() {
		return t.Run(ctx, work, kernel, args...)
	}
	path := precompiledHeaders(filepath.Dir(work), t, more, flags)
	link := filepath.Join(work, metalHost+".gch")
	linked := t.precompile(ctx, work, kernel, path, flags) &&
		os.Symlink(filepath.Join("..", filepath.Base(path)), link) == nil
	err := t.Run(ctx, work, kernel, args...)
	var refused *CompileError
	if linked && errors.As(err, &refused) && os.Remove(link) == nil {
		// g++ says the same where what was kept is damaged.
		if err = t.Run(ctx, work, kernel, args...); err == nil {
			os.Remove(path)
		}
	}
	return err
}

const metalHost = "metal_host.h"

// precompiledHeaders is where they are kept.
func precompiledHeaders(dir string, t *Toolchain, more string, flags []string) string {
	return filepath.Join(dir, Hash(append([]string{t.Key(), more}, flags...)...)+".gch")
}

// precompile makes the precompiled headers if need be and reports whether they are there.
func (t *Toolchain) precompile(ctx context.Context, work, kernel, path string, flags []string) bool {
	if Kept(path) {
		return true
	}
	if _, tried := precompiled.LoadOrStore(path, true); tried {
		return false
	}
	out := filepath.Join(work, "precompiled")
	defer os.Remove(out)
	return t.Run(ctx, work, kernel, slices.Concat(flags, []string{"-I.", "-x", "c++-header", "-o", out, metalHost})...) == nil &&
		keep(out, path) == nil
}

// keep gives a file its name in the cache once it is on the disk: nothing looks at its
// content before it is used.
func keep(path, name string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = f.Sync()
	f.Close()
	if err != nil {
		return err
	}
	return os.Rename(path, name)
}

package toolchain

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// precompiled holds the folder and key of the headers that this process has tried to precompile. It tries once for
// each. During the attempt, and after a failed one, g++ reads the plain headers.
var precompiled sync.Map

// RunOnHeaders runs the compiler like Run, with flags and args. work is a work folder of the cache with the headers and
// a kernel whose first include is header. more identifies headers in addition to package metalstd's.
//
// g++ spends half of its time reading headers. So the cache holds them precompiled: 30 to 50 MB for each compiler and
// set of flags. The first kernel precompiles them, which takes three times as long as compiling a kernel. g++ finds
// precompiled headers beside the plain ones. This is only an optimization: on any failure g++ reads the plain headers.
// Clang always reads the plain headers: it needs an option for precompiled ones, and would save only a quarter of the
// time.
func (t *Toolchain) RunOnHeaders(
	ctx context.Context, work, kernel, header, more string, flags []string, args ...string,
) error {
	args = slices.Concat(flags, []string{"-I."}, args)
	if t.Clang() {
		return t.Run(ctx, work, kernel, args...)
	}
	dir, key := filepath.Dir(work), Hash(append([]string{t.Key(), header, more}, flags...)...)
	path, err := t.precompiledHeaders(ctx, dir, key, work, kernel, header, flags)
	link := filepath.Join(work, header+".gch")
	linked := err == nil && os.Symlink(filepath.Join("..", filepath.Base(path)), link) == nil
	err = t.Run(ctx, work, kernel, args...)
	var refused *CompileError
	if linked && errors.As(err, &refused) && os.Remove(link) == nil {
		// The precompiled headers may have caused the error.
		if err = t.Run(ctx, work, kernel, args...); err == nil {
			os.Remove(path)
		}
	}
	return err
}

// precompiledHeaders returns the path of the precompiled headers with the key in dir. If they are missing or damaged,
// it makes them.
func (t *Toolchain) precompiledHeaders(
	ctx context.Context, dir, key, work, kernel, header string, flags []string,
) (string, error) {
	at := filepath.Join(dir, key)
	if path, err := findHeaders(dir, key); err == nil {
		return path, nil
	} else if _, tried := precompiled.LoadOrStore(at, true); tried {
		return "", err
	}
	out := filepath.Join(work, "precompiled")
	defer os.Remove(out)
	if err := t.Run(ctx, work, kernel, slices.Concat(flags, []string{
		"-I.", "-x", "c++-header", "-o", out, header,
	})...); err != nil {
		return "", err
	}
	if err := store(dir, key, ".gch", out); err != nil {
		return "", err
	}
	return findHeaders(dir, key)
}

// findHeaders returns the path of the precompiled headers in dir with the key. It hashes up to 50 MB to verify them,
// which takes a tenth of the time of a compilation. So it records the file's metadata after it has verified them.
func findHeaders(dir, key string) (string, error) {
	path, _, err := locate(dir, key, ".gch")
	if err != nil {
		return "", err
	}
	id, err := Identity(path)
	if err != nil {
		return "", err
	}
	stamp := filepath.Join(dir, key+".verified")
	if known, err := readKept(stamp); err == nil && string(known) == id {
		return path, nil
	}
	if path, err = find(dir, key, ".gch"); err != nil {
		return "", err
	}
	writeAtomically(stamp, id)
	return path, nil
}

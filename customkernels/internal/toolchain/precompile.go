package toolchain

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
)

// precompiled holds the folder and key of every header that this process has tried to precompile. It tries once.
// Kernels that are compiled meanwhile, or after a failure, read the text.
var precompiled sync.Map

// verified holds, by folder and key, the file of precompiled headers whose content this process has verified last.
// Hashing 50 MB for every kernel would take 5 % of the time of its compilation.
var verified sync.Map

// verifiedHeaders is a file of precompiled headers with its state when it was verified.
type verifiedHeaders struct {
	path string
	info os.FileInfo
}

// unchanged reports whether the file is still the verified one, and still one that no other user could have written.
func (v verifiedHeaders) unchanged() bool {
	info, err := os.Lstat(v.path)
	return err == nil && Kept(v.path) &&
		os.SameFile(info, v.info) && info.Size() == v.info.Size() && info.ModTime().Equal(v.info.ModTime())
}

// RunOnHeaders is Run with flags and args in work, a work folder of the cache with the headers and a kernel that
// includes metal_host.h first.
//
// g++ spends half of its time reading headers. So the cache holds them precompiled: 30 to 50 MB for each compiler and
// set of flags. The first kernel precompiles them, which takes three times as long as a kernel. g++ finds precompiled
// headers beside the text. more identifies headers in addition to package metalstd's. This is only an optimization: on
// any failure g++ reads the text. Clang needs an option for precompiled headers and would save a quarter of the time,
// so it reads the text.
func (t *Toolchain) RunOnHeaders(ctx context.Context, work, kernel, more string, flags []string, args ...string) error {
	args = slices.Concat(flags, []string{"-I."}, args)
	if t.Clang() {
		return t.Run(ctx, work, kernel, args...)
	}
	dir, key := filepath.Dir(work), Hash(append([]string{t.Key(), more}, flags...)...)
	path, err := t.precompiledHeaders(ctx, dir, key, work, kernel, flags)
	link := filepath.Join(work, metalstd.HostHeader+".gch")
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
	ctx context.Context, dir, key, work, kernel string, flags []string,
) (string, error) {
	at := filepath.Join(dir, key)
	if v, ok := verified.Load(at); ok && v.(verifiedHeaders).unchanged() {
		return v.(verifiedHeaders).path, nil
	}
	if path, err := findHeaders(dir, key); err == nil {
		return path, nil
	} else if _, tried := precompiled.LoadOrStore(at, true); tried {
		return "", err
	}
	out := filepath.Join(work, "precompiled")
	defer os.Remove(out)
	if err := t.Run(ctx, work, kernel, slices.Concat(flags, []string{
		"-I.", "-x", "c++-header", "-o",
		out, metalstd.HostHeader,
	})...); err != nil {
		return "", err
	}
	if err := store(dir, key, ".gch", out); err != nil {
		return "", err
	}
	return findHeaders(dir, key)
}

// findHeaders returns the path of the precompiled headers in dir with the key, and notes that they are verified.
func findHeaders(dir, key string) (string, error) {
	path, err := find(dir, key, ".gch")
	if err != nil {
		return "", err
	}
	if info, err := os.Lstat(path); err == nil {
		verified.Store(filepath.Join(dir, key), verifiedHeaders{path, info})
	}
	return path, nil
}

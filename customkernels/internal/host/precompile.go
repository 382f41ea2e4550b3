package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// precompiling is held by who precompiles the headers.
var precompiling sync.Mutex

// Precompile puts metal_host.h as compiled with flags into work, a folder of the cache that
// holds the headers. Reading it is half of what g++ does for a kernel. g++ finds it by itself
// beside the text, and reads the text if the two do not fit: the code is the same. clang would save a
// quarter, and refuse what does not fit. It is kept in the cache, 50 to 80 MB for a compiler
// and its flags; more names what else it holds than this package's headers.
func (t *Toolchain) Precompile(ctx context.Context, work, kernel string, flags []string, more string) error {
	if t.Clang() {
		return nil
	}
	const header = "metal_host.h"
	h := sha256.New()
	for _, part := range append([]string{t.Key(), more}, flags...) {
		fmt.Fprintf(h, "%d\n%s", len(part), part)
	}
	kept := hex.EncodeToString(h.Sum(nil)) + ".gch"
	path := filepath.Join(filepath.Dir(work), kept)
	if !Kept(path) {
		// It takes as long as some kernels: nobody waits for another's.
		if !precompiling.TryLock() {
			return nil
		}
		defer precompiling.Unlock()
		const out = "precompiled"
		if err := t.Run(ctx, work, kernel, slices.Concat(flags, []string{"-I.", "-x", "c++-header", "-o", out, header})...); err != nil {
			return err
		}
		if err := keep(filepath.Join(work, out), path); err != nil {
			return fmt.Errorf("host: cache: %w", err)
		}
	}
	if err := os.Symlink(filepath.Join("..", kept), filepath.Join(work, header+".gch")); err != nil {
		return fmt.Errorf("host: cache: %w", err)
	}
	return nil
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

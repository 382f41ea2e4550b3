package toolchain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// versions holds the version lines of compilers, or the error of one that hangs, by identity.
var versions sync.Map

// compilerVersion returns the version line of a compiler. Asking starts a
// process, so the answer is kept, in memory and in the cache folder, for as
// long as the file stays the same one.
func compilerVersion(path string, args []string) (string, error) {
	id, err := identity(path)
	if err != nil {
		return "", err
	}
	id += "\x00" + strings.Join(args, "\x00")
	switch known, _ := versions.Load(id); known := known.(type) {
	case string:
		return known, nil
	case error:
		return "", known
	}
	var file string
	if dir, err := CacheDir(); err == nil {
		file = filepath.Join(dir, Hash(id)+".version")
		if text, err := readKept(file); err == nil {
			sum, version, _ := strings.Cut(string(text), "\n")
			if sum == Hash(id, version) {
				versions.Store(id, version)
				return version, nil
			}
		}
	}
	version, err := askVersion(path, args)
	if errors.Is(err, errHangs) {
		versions.Store(id, err) // every launch would hang as long
	}
	if err != nil {
		return "", err
	}
	versions.Store(id, version)
	if file != "" {
		writeAtomically(file, Hash(id, version)+"\n"+version)
	}
	return version, nil
}

// identity tells a file from any that replaced it, through symbolic links.
func identity(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s\x00%s\x00%d\x00%d", path, real, info.Size(), info.ModTime().UnixNano()), nil
}

// writeAtomically writes a file that may be lost but is never half there.
func writeAtomically(path, text string) {
	f, err := os.CreateTemp(filepath.Dir(path), "write-")
	if err != nil {
		return
	}
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
}

// Available returns nil when kernels can be compiled, and otherwise an error,
// ErrNoCompiler, that names what to install.
func Available() error {
	_, err := findCompiler()
	return err
}

// CompilerInfo returns the compiler's path and version, or "" without one.
func CompilerInfo() string {
	c, err := findCompiler()
	if err != nil {
		return ""
	}
	return c.String()
}

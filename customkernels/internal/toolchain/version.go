package toolchain

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// versions caches the version line of each compiler, or the error of a compiler that hangs, by identity and arguments.
var versions sync.Map

// compilerVersion returns the version line of a compiler. Running the compiler takes time, so the line is cached in
// memory and on disk while the compiler's file does not change.
func compilerVersion(path string, args []string) (string, error) {
	id, err := Identity(path)
	if err != nil {
		return "", err
	}
	for _, arg := range args { // a compiler behind a wrapper such as ccache, or an option
		id += "\x00" + arg
		if program, err := exec.LookPath(arg); err == nil {
			if of, err := Identity(program); err == nil {
				id += "\x00" + of
			}
		}
	}
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
	version, err := queryVersion(path, args)
	if errors.Is(err, errHangs) {
		versions.Store(id, err) // every launch would hang
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

// Identity returns a string that changes with the target, size or modification time of the file at path.
func Identity(path string) (string, error) {
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

// writeAtomically writes a file completely or not at all. It ignores errors.
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

// Available returns nil if kernels can be compiled, and otherwise ErrNoCompiler.
func Available() error {
	_, err := findCompiler()
	return err
}

// CompilerInfo returns the path and version of the compiler, or "" without one.
func CompilerInfo() string {
	c, err := findCompiler()
	if err != nil {
		return ""
	}
	return c.String()
}

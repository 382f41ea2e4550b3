// Package savefile replaces files atomically: after an error or a crash, the old file is still there.
package savefile

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// staleAge is the age from which a temporary file is assumed to be left by a dead process. Each write of a running save
// renews the file's modification time.
const staleAge = 24 * time.Hour

var temporaryPattern = regexp.MustCompile(`^\.mlxgrad-[0-9a-f]{16}\.tmp$`)

// temporaryName returns a random name; process ids would repeat in containers. It does not contain the name of the
// final file, whose length may be the file system's maximum.
func temporaryName() string { return fmt.Sprintf(".mlxgrad-%016x.tmp", rand.Uint64()) }

// IsSpecial reports whether path is a FIFO, a device or another special file, which [Replace] must not replace.
func IsSpecial(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// Replace calls write with a temporary file in the folder of path, and renames it to path once write has returned
// nil and the bytes are on the disk. The new file has the mode of the old one, or 0666 less the umask. If path is a
// symbolic link, its target is replaced. Replace removes temporary files of dead processes from the folder.
func Replace(path string, write func(f *os.File) error) error {
	path, err := followLinks(path)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o666) // the umask applies
	old, err := os.Stat(path)
	switch {
	case err == nil && old.IsDir():
		return errors.New("it is a directory")
	case err == nil:
		mode = old.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	dir, _ := filepath.Split(path) // ends with a separator or is empty
	removeStale(dir)
	f, err := os.OpenFile(dir+temporaryName(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode|0o200)
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	if old != nil {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// followLinks returns the target of the symbolic links at path. The target need not exist.
func followLinks(path string) (string, error) {
	for range 40 { // Linux's limit
		link, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // not a link, or no file
		}
		if !filepath.IsAbs(link) {
			dir, _ := filepath.Split(path)
			link = dir + link // not cleaned: .. after a link to a folder is the target's parent
		}
		path = link
	}
	return "", errors.New("too many symbolic links")
}

// removeStale removes the temporary files of dead processes from a folder. It ignores errors.
func removeStale(dir string) {
	entries, _ := os.ReadDir(cmp.Or(dir, "."))
	for _, e := range entries {
		if !temporaryPattern.MatchString(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > staleAge {
			_ = os.Remove(dir + e.Name())
		}
	}
}

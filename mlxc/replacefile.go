package mlxc

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// staleAge is the age from which a temporary file counts as left by a process that died. A save
// in progress is younger: each write renews the file's time.
const staleAge = 24 * time.Hour

var temporaryPattern = regexp.MustCompile(`^\.mlxgrad-[0-9a-f]{16}\.tmp$`)

// temporaryName is short, whatever the length of the name that the file gets, and random: the
// numbers of processes repeat in containers.
func temporaryName() string { return fmt.Sprintf(".mlxgrad-%016x.tmp", rand.Uint64()) }

// saveFile writes a file as replaceFile does. A FIFO, device or other special file stays, and
// gets the bytes as a stream.
func saveFile(op, path string, write func(w io.Writer) error) (err error) {
	defer func() {
		if err != nil {
			err = opError(op, fmt.Errorf("%s: %w", path, err))
		}
	}()
	buffered := func(f *os.File) error {
		w := bufio.NewWriterSize(f, 1<<20)
		if err := write(w); err != nil {
			return err
		}
		return w.Flush()
	}
	if !isSpecial(path) {
		return replaceFile(path, buffered)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(buffered(f), f.Close())
}

func isSpecial(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// replaceFile lets write fill a temporary file beside path, and renames it once it is complete
// and on the disk. After an error or a crash, path holds the old file. The new file has the mode
// of the old one. If path is a symbolic link, its target is replaced.
func replaceFile(path string, write func(f *os.File) error) error {
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
	defer os.Remove(f.Name()) // fails after the renaming
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

// followLinks returns the target of the symbolic links at path, which need not exist.
func followLinks(path string) (string, error) {
	for range 40 { // Linux's limit
		link, err := os.Readlink(path)
		if err != nil {
			return path, nil //nolint:nilerr // no link, or nothing is there
		}
		if !filepath.IsAbs(link) {
			dir, _ := filepath.Split(path)
			link = dir + link // uncleaned: .. after a link to a folder is the target's parent
		}
		path = link
	}
	return "", errors.New("too many symbolic links")
}

// removeStale removes the temporary files of dead processes from a folder.
func removeStale(dir string) {
	entries, _ := os.ReadDir(cmp.Or(dir, ".")) // best effort
	for _, e := range entries {
		if !temporaryPattern.MatchString(e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > staleAge {
			_ = os.Remove(dir + e.Name())
		}
	}
}

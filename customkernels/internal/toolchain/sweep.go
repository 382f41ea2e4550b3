package toolchain

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// atWork matches the names of work folders and temporary files, and kept matches the names of cached files, which begin
// with a hash. A folder that the user chose may hold other files.
var (
	atWork = regexp.MustCompile(`^(compile|checked|probe|write)-[0-9]+$`)
	kept   = regexp.MustCompile(`^[0-9a-f]{64}\.`)
)

const (
	day    = 24 * time.Hour
	unused = 30 * day
)

// sweep removes work folders of processes that have ended. Once a day it also removes files that were last used more
// than 30 days before the previous daily sweep: a kernel whose text, headers or compiler have changed is never read
// again. So after a pause, the first sweep keeps the files that were in use before the pause.
func sweep(dir string) {
	swept := filepath.Join(dir, "swept")
	now := time.Now()
	last := time.Time{} // before all files
	if info, err := os.Lstat(swept); err == nil {
		last = info.ModTime()
	}
	daily := now.Sub(last) >= day
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		work := atWork.MatchString(e.Name())
		if !work && !(daily && kept.MatchString(e.Name())) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue
		}
		path, written := filepath.Join(dir, e.Name()), info.ModTime()
		if work && abandoned(path, now.Sub(written)) || !work && last.Sub(written) > unused {
			os.RemoveAll(path)
		}
	}
	if daily {
		// Updated last, and removed first: on a full disk the next process sweeps again.
		os.Remove(swept)
		_ = os.WriteFile(swept, nil, 0o600)
	}
}

// WorkFolder creates a work folder in a folder of the cache, for one compilation. Its name begins with prefix. The
// caller calls remove at the end. If the process dies first, another process removes the folder.
func WorkFolder(dir, prefix string) (work string, remove func(), err error) {
	work, err = os.MkdirTemp(dir, prefix)
	if err != nil {
		return "", nil, err
	}
	// Lock the file under another name, so that sweep never sees an unlocked one.
	unnamed := filepath.Join(work, "new-lock")
	f, err := os.OpenFile(unnamed, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		// Without file locks, the age of the folder decides.
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			err = os.Rename(unnamed, filepath.Join(work, lockName))
		}
	}
	remove = func() {
		os.RemoveAll(work)
		f.Close()
	}
	if err != nil {
		remove()
		return "", nil, err
	}
	return work, remove, nil
}

// lockName is a file of a work folder that is locked while the process lives.
const lockName = "lock"

// abandoned reports whether the process that created path has ended. Without a lock, path is abandoned after a day.
func abandoned(path string, age time.Duration) bool {
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if err != nil {
		return age > day
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return err == nil || age > day && !errors.Is(err, syscall.EWOULDBLOCK)
}

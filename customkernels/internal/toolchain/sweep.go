package toolchain

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// The names in the cache: folders and files of a process that works there, and files that are kept,
// under a hash. A folder that the user named may hold other files.
var (
	atWork = regexp.MustCompile(`^(compile|checked|probe|write)-[0-9]+$`)
	kept   = regexp.MustCompile(`^[0-9a-f]{64}\.`)
)

const (
	day    = 24 * time.Hour
	unused = 30 * day
)

// sweep removes the folders that ended processes left in the cache. Once a day it removes files that
// were not used for long: a kernel whose text, header or compiler has changed is never read
// again. Time in which the cache itself was not used does not count.
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
		// Last, and removed first: on a full disk the next process sweeps.
		os.Remove(swept)
		_ = os.WriteFile(swept, nil, 0o600)
	}
}

// WorkFolder makes a folder in a folder of the cache, for one compilation. Its name begins with prefix. The
// caller calls remove when it is done. If the process ends before, the next one removes the folder.
func WorkFolder(dir, prefix string) (work string, remove func(), err error) {
	work, err = os.MkdirTemp(dir, prefix)
	if err != nil {
		return "", nil, err
	}
	// The lock is taken under another name, so that sweep never sees one that is free.
	unnamed := filepath.Join(work, "new-lock")
	f, err := os.OpenFile(unnamed, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		// Where files cannot be locked, the age of the folder decides.
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

// lockName is a file of a work folder, which is locked as long as the process lives.
const lockName = "lock"

// abandoned reports whether the process that made path has ended. A path without a lock is
// abandoned when it is a day old.
func abandoned(path string, age time.Duration) bool {
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if err != nil {
		return age > day
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return err == nil || age > day && !errors.Is(err, syscall.EWOULDBLOCK)
}

package toolchain

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// This process runs the code in the cache. So only the user and the administrator may be able to write its files, its
// folder and the folders above it.

// trustFile returns an error unless info describes a regular file that only the user and the administrator can write.
func trustFile(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	return trust(info)
}

// trustAbove returns an error if other users can replace dir, a path without symbolic links. They can if they can reach
// and write a folder above it. In a sticky folder such as /tmp, users can replace only their own files.
//
// In a user namespace without root, as in some build sandboxes, the administrator's folders and the root folder seem to
// belong to another user. That user's folders are trusted, but not in a sticky folder, where every user outside the
// namespace seems to be the same.
func trustAbove(dir string) error {
	var problem, seeming error
	for dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		private := info.Mode().Perm()&0o011 == 0 // other users reach no folder below it
		sticky := info.Mode()&fs.ModeSticky != 0
		if private || sticky {
			err = trustOwner(info)
		} else {
			err = trust(info)
		}
		if sticky {
			problem = cmp.Or(problem, seeming)
		}
		if err != nil && ownsRoot(info) && (private || sticky || !writableByOthers(info)) {
			seeming, err = cmp.Or(seeming, fmt.Errorf("%s: %w", dir, err)), nil
		}
		switch {
		case err == nil && private:
			problem = nil
		case err != nil && problem == nil:
			problem = fmt.Errorf("%s: %w", dir, err)
		}
	}
	return problem
}

func writableByOthers(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

func trust(info fs.FileInfo) error {
	if writableByOthers(info) {
		return fmt.Errorf("writable by others (mode %04o)", info.Mode().Perm())
	}
	return trustOwner(info)
}

func trustOwner(info fs.FileInfo) error {
	owner, ok := ownerOf(info)
	if !ok {
		return errors.New("the owner is unknown")
	}
	if owner == os.Geteuid() || owner == 0 {
		return nil
	}
	return fmt.Errorf("owned by user %d", owner)
}

// ownsRoot reports whether the owner is that of the root folder.
func ownsRoot(info fs.FileInfo) bool {
	root, err := os.Lstat("/")
	if err != nil {
		return false
	}
	administrator, known := ownerOf(root)
	owner, ok := ownerOf(info)
	return known && ok && owner == administrator
}

func ownerOf(info fs.FileInfo) (uid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

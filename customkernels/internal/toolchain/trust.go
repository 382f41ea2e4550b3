package toolchain

import (
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
func trustAbove(dir string) error {
	var problem error
	for dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		private := info.Mode().Perm()&0o011 == 0 // other users reach no folder below it
		if private || info.Mode()&fs.ModeSticky != 0 {
			err = trustOwner(info)
		} else {
			err = trust(info)
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

func trust(info fs.FileInfo) error {
	if info.Mode().Perm()&0o022 != 0 {
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
	// In a user namespace without root, as in some build sandboxes, the administrator's files and the root folder seem
	// to belong to another user.
	if root, err := os.Lstat("/"); err == nil {
		if administrator, ok := ownerOf(root); ok && owner == administrator {
			return nil
		}
	}
	return fmt.Errorf("owned by user %d", owner)
}

func ownerOf(info fs.FileInfo) (uid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

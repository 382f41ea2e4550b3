package setup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// oldSuffix names what a folder is moved to while another takes its place, and is removed after that. No
// user keeps a folder of this name.
const oldSuffix = ".mlxgrad-old"

// replaceDir puts the folder stage in the place of target. Between the two renames
// there is a moment without a target; recoverDir, at the next start, undoes a stop
// in that moment.
func replaceDir(stage, target string) error {
	old := target + oldSuffix
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(target, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(stage, target); err != nil {
		if back := os.Rename(old, target); back != nil && !errors.Is(back, fs.ErrNotExist) {
			return errors.Join(err, back)
		}
		return err
	}
	return os.RemoveAll(old)
}

// recoverDir restores target after an interrupted replaceDir and removes what
// interrupted runs left beside it.
func recoverDir(target string) error {
	old := target + oldSuffix
	if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(old, target); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	left, err := filepath.Glob(target + ".tmp-*")
	if err != nil {
		return err
	}
	for _, p := range append(left, old) {
		if err := os.RemoveAll(p); err != nil {
			return err
		}
	}
	return nil
}

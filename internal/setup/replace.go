package setup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// oldSuffix is added to the name of a folder while another takes its place. The suffix is specific to this project,
// since the folder is removed afterwards.
const oldSuffix = ".mlxgrad-old"

// replaceDir renames the folder stage to target. target does not exist between the two renames; if the process ends
// there, recoverDir restores it at the next start.
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

// recoverDir restores target after an interrupted replaceDir and removes temporary folders of interrupted runs.
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

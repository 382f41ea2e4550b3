package setup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Options are a user's choices.
type Options struct {
	MLX      string         // a version of the lock file; empty: the installed one, else the default
	Backend  string         // cpu, cuda13, cuda12 or metal; empty: the installed one, else the platform's default
	Offline  string         // a folder with the downloads; empty: they are downloaded
	Progress func(Progress) // called for each step, by one goroutine at a time; may be nil
}

// User installs the libraries in dir/install, for programs that use this version of the module. sources has the files
// of the module that a set-up reads. User blocks while another set-up of dir runs. [Explain] adds a remedy to its
// error.
func User(ctx context.Context, dir string, sources fs.FS, o Options) error {
	s, err := newSetup(dir, sources, o.Progress)
	if err != nil {
		return err
	}
	s.offline = o.Offline
	installed, unlock, readOnly, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	c := choice{Backend: o.Backend, MLX: o.MLX}
	if installed != nil {
		c = c.over(installed.Choice)
	}
	if err := s.choose(c.withoutDefault()); err != nil {
		return err
	}
	if err := s.ensure(ctx, installed, readOnly); err != nil || readOnly != nil {
		return err
	}
	// An interrupted set-up continues with these folders. A finished one needs only install.
	for _, name := range []string{"downloads", "src", "build/objects"} {
		if err := os.RemoveAll(s.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// Uninstall removes dir, which contains the folders of [User] for all versions of the module. It blocks while set-ups
// run.
func Uninstall(ctx context.Context, dir string) error {
	locks, err := filepath.Glob(filepath.Join(dir, "*", "build", ".lock"))
	if err != nil {
		return err
	}
	for _, lock := range slices.Sorted(slices.Values(locks)) {
		s := &setup{root: filepath.Dir(filepath.Dir(lock))}
		unlock, readOnly, err := s.exclusive(ctx)
		if err == nil && readOnly != nil {
			unlock()
			err = readOnly
		}
		if err != nil {
			return err
		}
		err = os.RemoveAll(s.root)
		unlock()
		if err != nil {
			return err
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

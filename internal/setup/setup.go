// Package setup installs MLX, mlx-c and libmlxg, which programs load at run time.
//
// MLX is Apple's own package for the platform. mlx-c is source that is patched and compiled; libmlxg is source
// of this repository. A release has both compiled, as archives that are downloaded instead. The lock file,
// third_party/mlx-c/lock.json, names everything with version and hash.
//
// [Checkout] installs for ./build.sh, in the checkout's folder third_party/mlx-c; [User] installs in a folder of
// the user for programs of other modules. The steps are the same: download, verify, unpack, compile, link, load
// once, rename into place. An installation is kept as long as the fingerprint of its sources stays the same.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Progress is a step of a set-up, or the progress of a step.
type Progress struct {
	Message     string // the step, such as "downloading mlx-cpu 0.32.4"
	Done, Total int64  // bytes of a download or files of a compilation; Total is 0 for steps without a measure
}

// A setup is one run of a set-up.
type setup struct {
	root     string // the folder with install, and with downloads, src and build while it runs
	sources  fs.FS  // the repository, or as much of it as is embedded
	tmp      string // removed after the run; in the file system of root, so that files can be renamed into root
	offline  string // if set, the folder that has all downloads
	lock     *lockFile
	pair     *pair // the versions of choice
	choice   choice
	progress func(Progress) // may be nil
	mu       sync.Mutex     // guards calls of progress
}

// The files of the repository that a set-up reads.
const (
	lockName = "third_party/mlx-c/lock.json"
	patches  = "third_party/mlx-c/patches"
)

func newSetup(root string, sources fs.FS, progress func(Progress)) (*setup, error) {
	lock, err := readLock(sources, lockName)
	if err != nil {
		return nil, err
	}
	s := &setup{root: root, sources: sources, lock: lock, progress: progress}
	return s, s.choose(choice{})
}

func (s *setup) path(elem ...string) string {
	return filepath.Join(append([]string{s.root}, elem...)...)
}

// say reports a step.
func (s *setup) say(format string, args ...any) {
	s.report(Progress{Message: fmt.Sprintf(format, args...)})
}

func (s *setup) report(p Progress) {
	if s.progress != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.progress(p)
	}
}

// begin locks the folder, restores an installation after an interrupted run, and returns its manifest, or nil without a
// usable one. If the folder cannot be written, readOnly is the reason.
func (s *setup) begin(ctx context.Context) (installed *manifest, unlock func(), readOnly, err error) {
	unlock, readOnly, err = s.exclusive(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if readOnly == nil {
		if err := recoverDir(s.path("install")); err != nil {
			unlock()
			return nil, nil, nil, err
		}
	}
	if installed, err = readManifest(s.path("install")); err != nil {
		installed = nil
	}
	return installed, unlock, readOnly, nil
}

// ensure makes the installation that s.choice describes unless it exists.
func (s *setup) ensure(ctx context.Context, installed *manifest, readOnly error) error {
	isInstalled := func(fingerprint string) bool {
		return installed != nil && installed.Fingerprint == fingerprint && installed.complete(s.path("install"))
	}
	prebuilt, err := s.prebuilt()
	if err != nil {
		return err
	}
	fingerprint := prebuilt.fingerprint(s.choice)
	if prebuilt != nil && isInstalled(fingerprint) {
		return nil
	}
	tools, toolsErr := findToolchain(ctx)
	if toolsErr == nil {
		built, err := s.fingerprint(tools)
		if err != nil {
			return err
		}
		if isInstalled(built) {
			return nil
		}
		if prebuilt == nil {
			fingerprint = built
		}
	} else if prebuilt == nil {
		return toolsErr
	}
	if readOnly != nil {
		return s.unwritable(readOnly, installed, tools)
	}
	if err := s.clearTmp(); err != nil {
		return err
	}
	if prebuilt != nil {
		err := s.produce(ctx, prebuilt, nil, fingerprint)
		var f *failure
		if !errors.As(err, &f) || !f.unreachable || toolsErr != nil {
			return err
		}
		s.say("note: %s; compiling instead", f.what)
		if fingerprint, err = s.fingerprint(tools); err != nil {
			return err
		}
	}
	return s.produce(ctx, nil, tools, fingerprint)
}

// unwritable returns a failure that explains why a read-only folder, with the given reason, cannot be used as it is.
func (s *setup) unwritable(reason error, installed *manifest, tools *toolchain) error {
	todo := "make " + s.root + " writable and run the set-up again"
	switch {
	case installed == nil:
		return failf(todo, "MLX is not set up here, and nothing can be written (%v)", reason)
	case tools != nil && installed.CXX != "" &&
		(installed.CXX != strings.Join(tools.command, " ") || installed.Compiler != tools.version):
		return failf(todo, "MLX was set up here with %s (%s) and not with %s (%s), and nothing can be written (%v)",
			installed.CXX, installed.Compiler, strings.Join(tools.command, " "), tools.version, reason)
	}
	return failf(todo, "MLX was set up here from other files or for another choice, and nothing can be written (%v)",
		reason)
}

// exclusive locks the folder and blocks while another set-up runs there. It polls, so that an interrupt ends it. If the
// folder cannot be written, readOnly is the reason, and the existing installation can only be used as it is.
func (s *setup) exclusive(ctx context.Context) (unlock func(), readOnly, err error) {
	for told := false; ; told = true {
		f, readOnly, err := s.openLock()
		if err != nil {
			return nil, nil, err
		}
		if f == nil {
			return func() {}, readOnly, nil
		}
		how := syscall.LOCK_EX
		if readOnly != nil {
			how = syscall.LOCK_SH // read-only users wait for writers only
		}
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil && isAt(f) {
			return func() { f.Close() }, readOnly, nil
		}
		f.Close()
		if err == nil {
			continue // Uninstall removed the file
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil, err
		}
		if !told {
			s.say("waiting for another set-up to end")
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// openLock opens the lock's file. It returns neither a file nor an error if the file does not exist and the folder
// cannot be written.
func (s *setup) openLock() (f *os.File, readOnly, err error) {
	name := s.path("build", ".lock")
	if readOnly = os.MkdirAll(filepath.Dir(name), 0o755); readOnly == nil {
		if f, readOnly = os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644); readOnly == nil {
			return f, nil, nil
		}
	}
	if !errors.Is(readOnly, fs.ErrPermission) && !errors.Is(readOnly, syscall.EROFS) {
		return nil, nil, readOnly
	}
	if f, err = os.Open(name); err != nil {
		return nil, readOnly, nil
	}
	return f, readOnly, nil
}

// isAt reports whether the path of an open file still names that file.
func isAt(f *os.File) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(opened, named)
}

// clearTmp removes temporary folders of interrupted runs from build.
func (s *setup) clearTmp() error {
	left, err := filepath.Glob(s.path("build", "tmp-*"))
	if err != nil {
		return err
	}
	for _, p := range left {
		if err := os.RemoveAll(p); err != nil {
			return err
		}
	}
	return nil
}

// readFiles returns the files of the repository that match the patterns, by path. Each pattern must match.
func readFiles(sources fs.FS, patterns ...string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, pattern := range patterns {
		names, err := fs.Glob(sources, pattern)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("the sources have no file %s", pattern)
		}
		for _, name := range names {
			if files[path.Clean(name)], err = fs.ReadFile(sources, name); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

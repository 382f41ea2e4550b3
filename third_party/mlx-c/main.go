// Command mlx-c brings Apple's MLX and mlx-c and installs them beside this file, in
// install/. The script build.sh at the root of the repository runs it; its usage is
// there.
//
// MLX comes as Apple's own package for the platform, mlx-c as source that is
// patched, compiled and linked here, and libmlxg as source of this repository. What the
// first two are, with versions and hashes, stands in lock.json. The steps are: bring, verify, unpack, patch, compile, link, load
// once, rename into place. An installation is used as it is while the fingerprint of
// all that it was made from stays the same.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A setup is one run of the program.
type setup struct {
	root   string // this folder: third_party/mlx-c
	tmp    string // for the run only; on the disk of root, so that files can be renamed
	lock   *lockFile
	choice choice
	log    io.Writer
	start  time.Time
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := run(ctx, os.Stderr, os.Args[1:])
	verb := "setup"
	if len(os.Args) > 2 && (os.Args[2] == "install" || os.Args[2] == "package") {
		verb = os.Args[2]
	}
	switch {
	case ctx.Err() != nil:
		fmt.Fprintf(os.Stderr, "mlxgrad %s: interrupted: what was there before is as it was; run ./build.sh %[1]s again\n", verb)
		os.Exit(1)
	case err != nil:
		fmt.Fprintf(os.Stderr, "mlxgrad %s: %s\n", verb, describe(err))
		os.Exit(1)
	}
}

// run sets up the folder that the first argument names, as the flags after it say, or,
// if the second is "install" or "package", copies what is set up to a prefix or makes a
// package of it.
func run(ctx context.Context, log io.Writer, args []string) error {
	if len(args) == 0 {
		return failf("run ./build.sh instead", "the folder to install to is missing")
	}
	root, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	s := &setup{root: root, log: log, start: time.Now()}
	if s.lock, err = readLock(s.path("lock.json")); err != nil {
		return err
	}
	if err := checkPath(root); err != nil {
		return err
	}
	unlock, readOnly, err := s.exclusive(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if readOnly == nil {
		if err := recoverDir(s.path("install")); err != nil {
			return err
		}
	}
	installed, err := readManifest(s.path("install"))
	if err != nil {
		installed = nil // no installation, or none that can be used
	}
	if len(args) > 1 {
		switch args[1] {
		case "install":
			return s.installTo(installed, args[2:])
		case "package":
			return s.packageTo(ctx, installed, args[2:])
		}
	}
	if s.choice, err = chosen(args[1:], os.Getenv, installed); err != nil {
		return err
	}
	tools, err := findToolchain(ctx)
	if err != nil {
		return err
	}
	fingerprint, err := s.fingerprint(tools)
	if err != nil {
		return err
	}
	if installed != nil && installed.Fingerprint == fingerprint && installed.complete(s.path("install")) {
		return nil
	}
	if readOnly != nil {
		return s.unwritable(readOnly, installed, tools)
	}
	if err := s.clearTmp(); err != nil {
		return err
	}
	if err := s.produce(ctx, tools, fingerprint); err != nil {
		return err
	}
	s.say("MLX and mlx-c are in third_party/mlx-c/install (backend %s)", s.choice.backend())
	return nil
}

// repository is the folder of the project.
func (s *setup) repository() string { return filepath.Dir(filepath.Dir(s.root)) }

func (s *setup) path(elem ...string) string {
	return filepath.Join(append([]string{s.root}, elem...)...)
}

// say prints a line of progress, to the error stream.
func (s *setup) say(format string, args ...any) {
	fmt.Fprintf(s.log, "mlxgrad setup: [%3.0fs] %s\n", time.Since(s.start).Seconds(), fmt.Sprintf(format, args...))
}

// cgoRefuses finds the part of a path with which no program is built here. The go command refuses
// most punctuation in the paths of #cgo lines, a linker splits -rpath at commas and colons,
// and the dynamic loader replaces some words after $.
var cgoRefuses = regexp.MustCompile("[\\x00-\\x1f\\x7f\"#&'()*,:;<>?[\\\\\\]`{|}]|\\$(?:ORIGIN|LIB|PLATFORM)")

// checkPath refuses a checkout in a path with which the go command does not build.
func checkPath(root string) error {
	if bad := cgoRefuses.FindAllString(root, -1); bad != nil {
		slices.Sort(bad)
		return failf("move the checkout to a path of letters, digits, spaces and - _ . + = @ % ~ ^ ! $",
			"the path %q has %q, with which go build cannot name the libraries", root, strings.Join(slices.Compact(bad), " "))
	}
	return nil
}

// unwritable explains why a checkout that cannot be written, for the reason given, cannot be used
// as it is.
func (s *setup) unwritable(reason error, installed *manifest, tools *toolchain) error {
	const todo = "make third_party/mlx-c writable and run ./build.sh setup again, or use a checkout of your own"
	switch {
	case installed == nil:
		return failf(todo, "MLX is not set up here, and nothing can be written (%v)", reason)
	case installed.CXX != strings.Join(tools.command, " ") || installed.Compiler != tools.version:
		return failf(todo, "MLX was set up here with %s (%s) and not with %s (%s), and nothing can be written (%v)",
			installed.CXX, installed.Compiler, strings.Join(tools.command, " "), tools.version, reason)
	}
	return failf(todo, "MLX was set up here from other files or for another choice, and nothing can be written (%v)", reason)
}

// exclusive waits until no other set-up runs on the same folder. It asks again and
// again rather than in one blocking call, which an interrupt would not end. If the folder cannot
// be written, readOnly says why, and what is set up there can only be used.
func (s *setup) exclusive(ctx context.Context) (unlock func(), readOnly, err error) {
	name := s.path("build", ".lock")
	how := syscall.LOCK_EX
	var f *os.File
	if readOnly = os.MkdirAll(s.path("build"), 0o755); readOnly == nil {
		f, readOnly = os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	}
	if readOnly != nil {
		if !errors.Is(readOnly, fs.ErrPermission) && !errors.Is(readOnly, syscall.EROFS) {
			return nil, nil, readOnly
		}
		how = syscall.LOCK_SH // users who do not write wait for the owner only
		if f, err = os.Open(name); err != nil {
			return func() {}, readOnly, nil
		}
	}
	for told := false; ; told = true {
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, readOnly, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			break
		}
		if !told {
			s.say("waiting for another set-up to end")
		}
		select {
		case <-time.After(100 * time.Millisecond):
			continue
		case <-ctx.Done():
			err = ctx.Err()
		}
		break
	}
	f.Close()
	return nil, nil, err
}

// clearTmp removes what interrupted runs left in build.
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

package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const noNetwork = "check the network and run the set-up again, or name a folder that has the downloads with --offline"

// bringMLX puts the chosen backend's wheels into the staged installation, in the
// layout that their libraries' run paths expect.
func (s *setup) bringMLX(ctx context.Context, m *manifest, stage string) error {
	goos, goarch, _ := strings.Cut(m.Platform, "/")
	wheels := s.lock.wheelsFor(m.Backend, goos, goarch)
	if len(wheels) == 0 {
		return failf("choose another backend (cpu and cuda on Linux, metal on macOS arm64) or set MLX_DIR to an MLX of your own",
			"there is no MLX wheel for backend %s on %s", m.Backend, m.Platform)
	}
	if err := s.requireOffline(wheels); err != nil {
		return err
	}
	for _, w := range wheels {
		file, err := s.bring(w.File, w.Size, w.SHA256, func() error { return s.pipDownload(ctx, w) })
		if err != nil {
			return err
		}
		if err := unzip(file, stage); err != nil {
			return err
		}
		m.Sources[w.File] = w.SHA256
	}
	return nil
}

// requireOffline returns an error that lists the wheels that the folder of --offline lacks, if one is named.
func (s *setup) requireOffline(wheels []wheel) error {
	var files, platforms, packages []string
	for _, w := range wheels {
		if _, err := os.Stat(filepath.Join(s.offline, w.File)); s.offline != "" && err != nil {
			files = append(files, w.File)
			packages = append(packages, w.Package+"=="+w.Version)
			if !slices.Contains(platforms, w.Platform) {
				platforms = append(platforms, w.Platform)
			}
		}
	}
	if len(files) == 0 {
		return nil
	}
	return failf(fmt.Sprintf("download them where there is a network: pip download --no-deps --only-binary=:all: --platform %s %s",
		strings.Join(platforms, " --platform "), strings.Join(packages, " ")),
		"%s lacks %s", s.offline, strings.Join(files, " and "))
}

// bring returns the path of a verified file: in the folder of --offline if one is named, else in downloads, where
// download puts it if necessary. A file of downloads that does not verify is downloaded again, since it was damaged
// after it had been verified there.
func (s *setup) bring(name string, size int64, sha string, download func() error) (file string, err error) {
	if s.offline != "" {
		file = filepath.Join(s.offline, name)
		err = verifyFile(file, size, sha)
		if errors.Is(err, os.ErrNotExist) {
			err = failf("copy it there; third_party/mlx-c/downloads of a checkout that is set up has it", "%s lacks %s", s.offline, name)
		}
		return file, err
	}
	file = s.path("downloads", name)
	err = verifyFile(file, size, sha)
	if err == nil {
		return file, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		var f *failure
		if !errors.As(err, &f) {
			return "", err
		}
		s.say("note: %s; downloading it again", f.what)
		if err := os.Remove(file); err != nil {
			return "", err
		}
	}
	return file, download()
}

// watch runs a download and reports how many bytes it has written to the run's temporary folder.
func (s *setup) watch(message string, total int64, download func() error) error {
	s.say("%s", message)
	done := make(chan error, 1)
	go func() { done <- download() }()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			s.report(Progress{Message: message, Done: min(folderSize(s.tmp), total), Total: total})
		}
	}
}

// folderSize returns the bytes of the files in a folder, which may come and go.
func folderSize(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil
	})
	return size
}

// keep verifies a downloaded file and moves it into the downloads folder.
func (s *setup) keep(from, name string, size int64, sha string) error {
	if err := verifyFile(from, size, sha); err != nil {
		return err
	}
	if err := os.MkdirAll(s.path("downloads"), 0o755); err != nil {
		return err
	}
	return os.Rename(from, s.path("downloads", name))
}

// pips are the ways to run pip, the first that answers is used. The last lets uv,
// which cannot itself save a wheel, run pip in an environment of its own.
var pips = [][]string{{"pip"}, {"pip3"}, {"python3", "-m", "pip"}, {"uv", "tool", "run", "pip"}}

func (s *setup) findPip(ctx context.Context) ([]string, error) {
	for _, pip := range pips {
		if _, err := exec.LookPath(pip[0]); err != nil {
			continue
		}
		if _, err := s.tool(ctx, nil, append(pip[:len(pip):len(pip)], "--version")...); err == nil {
			return pip, nil
		}
	}
	return nil, failf("install one (Debian and Ubuntu: apt-get install python3-pip; with macOS' command line tools comes one) and run the set-up again",
		"neither pip nor uv is on the PATH, one of which brings MLX")
}

// pipDownload brings a wheel by its name and hash.
func (s *setup) pipDownload(ctx context.Context, w wheel) error {
	pip, err := s.findPip(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.tmp, "pip-")
	if err != nil {
		return err
	}
	requirements := filepath.Join(dir, "requirements.txt")
	line := fmt.Sprintf("%s==%s --hash=sha256:%s\n", w.Package, w.Version, w.SHA256)
	if err := os.WriteFile(requirements, []byte(line), 0o644); err != nil {
		return err
	}
	var out string
	message := fmt.Sprintf("downloading %s %s (%.0f MB) with %s", w.Package, w.Version, float64(w.Size)/1e6, strings.Join(pip, " "))
	err = s.watch(message, w.Size, func() (err error) {
		out, err = s.tool(ctx, nil, append(pip[:len(pip):len(pip)], "download",
			"--require-hashes", "--no-deps", "--only-binary=:all:", "--platform", w.Platform,
			"--no-input", "--retries", "3", "--disable-pip-version-check", "--progress-bar", "off",
			"--requirement", requirements, "--dest", dir)...)
		return err
	})
	if err == nil {
		return s.keep(filepath.Join(dir, w.File), w.File, w.Size, w.SHA256)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case outOfSpace(out):
		return diskFull("downloading " + w.File)
	case strings.Contains(out, "DO NOT MATCH THE HASHES"):
		return failf("do not use it, and report it to the project", "pip brought a %s whose SHA-256 is not the one in the lock file (%s)", w.File, got(out))
	case noConnection.MatchString(out):
		return failf(noNetwork, "pip could not reach its package index to download %s %s", w.Package, w.Version)
	default:
		return failf(noNetwork, "pip could not download %s %s (%s)", w.Package, w.Version, telling(out, err))
	}
}

// noConnection matches pip's complaints about the network. Its last line, "no
// matching distribution found", would send the user looking for another cause.
var noConnection = regexp.MustCompile(`Failed to establish a new connection|name resolution|Name or service not known|Connection refused|Network is unreachable|timed out|Cannot connect to proxy|NewConnectionError|NameResolutionError`)

var gotHash = regexp.MustCompile(`Got +([0-9a-f]{64})`)

func got(out string) string {
	if m := gotHash.FindStringSubmatch(out); m != nil {
		return m[1]
	}
	return "unknown"
}

// telling picks the line of a tool's output that says most: the last that is marked
// as an error, or the last at all.
func telling(out string, err error) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if l := strings.TrimSpace(lines[i]); strings.HasPrefix(strings.ToLower(l), "error") || strings.HasPrefix(l, "fatal") {
			return oneLine(l)
		}
	}
	if last := oneLine(lines[len(lines)-1]); last != "" {
		return last
	}
	return err.Error()
}

// openMLXC returns the folder of the mlx-c sources that MLX_C_SOURCE names: a folder
// as it is, an archive unpacked, if the lock file has its hash.
func (s *setup) openMLXC(source string) (string, error) {
	if st, err := os.Stat(source); err != nil || st.IsDir() {
		return source, err
	}
	sum, err := hashFile(source)
	if err != nil {
		return "", err
	}
	for _, known := range []struct{ sha, folder string }{
		{s.lock.MLXC.Crate.SHA256, s.lock.MLXC.Crate.Folder},
		{s.lock.MLXC.Archive.SHA256, s.lock.MLXC.Archive.Folder},
	} {
		if sum == known.sha {
			return s.source("archive", sum, func(dir string) error { return untarGz(source, known.folder, dir) })
		}
	}
	return "", failf("set MLX_C_SOURCE to a folder, or to an archive whose hash the lock file has",
		"%s has SHA-256 %s, which the lock file does not have", filepath.Base(source), sum)
}

// bringMLXC returns a folder with the pinned mlx-c sources, as upstream has them.
//
// The crate comes before git: it is one small file that can be checked against a
// hash and kept, it comes in a fraction of a second, and it is to be had where only
// package registries can be reached.
func (s *setup) bringMLXC(ctx context.Context, m *manifest) (string, error) {
	l := s.lock.MLXC
	clone := s.path("downloads", "mlx-c-"+l.Git.Tag+".git")

	crate, crateErr := s.bring(l.Crate.File, l.Crate.Size, l.Crate.SHA256, func() error {
		if _, err := os.Stat(clone); err == nil {
			return errHaveClone
		}
		return s.cargoDownload(ctx)
	})
	if crateErr == nil {
		m.Sources[l.Crate.File] = l.Crate.SHA256
		return s.source("crate", l.Crate.SHA256, func(dir string) error { return untarGz(crate, l.Crate.Folder, dir) })
	}
	// What is not about reaching the crate (a hash that differs, a full disk) must
	// not be covered up by trying elsewhere.
	var f *failure
	if ctx.Err() != nil || errors.As(crateErr, &f) || isDiskFull(crateErr) {
		return "", cmp.Or(ctx.Err(), crateErr)
	}
	if err := s.gitClone(ctx, clone); err != nil {
		if ctx.Err() != nil || errors.As(err, &f) || isDiskFull(err) {
			return "", cmp.Or(ctx.Err(), err)
		}
		return "", failf("install cargo (1.82 or later) or git, check the network, and run the set-up again; or set MLX_C_SOURCE to an mlx-c "+l.Version+" tree",
			"the sources of mlx-c %s could not be brought (cargo: %s; git: %s)", l.Version, oneLine(crateErr.Error()), oneLine(err.Error()))
	}
	m.Sources["mlx-c "+l.Git.Tag] = l.Git.Commit
	return s.source("git", l.Git.Commit, func(dir string) error { return s.gitExport(ctx, clone, dir) })
}

var errHaveClone = errors.New("not asked, there is a clone")

// source returns the folder of unpacked sources with the given identity, unpacking
// them first if they are not there.
func (s *setup) source(kind, id string, unpack func(dir string) error) (string, error) {
	dir := s.path("src", "mlx-c-"+s.lock.MLXC.Version+"-"+kind+"-"+id[:12])
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	tmp := filepath.Join(s.tmp, "unpack")
	if err := unpack(tmp); err != nil {
		return "", err
	}
	return dir, os.Rename(tmp, dir)
}

// cargoDownload brings the crate that carries the mlx-c tree. "cargo info", in a
// home of its own, downloads exactly that crate; "fetch" and "vendor" would bring
// everything that the crate depends on.
func (s *setup) cargoDownload(ctx context.Context) error {
	c := s.lock.MLXC.Crate
	cargo, err := exec.LookPath("cargo")
	if err != nil {
		return errors.New("not on the PATH")
	}
	s.say("downloading mlx-c %s (crate %s, %.1f MB) with cargo", s.lock.MLXC.Version, c.Name, float64(c.Size)/1e6)
	home, err := os.MkdirTemp(s.tmp, "cargo-")
	if err != nil {
		return err
	}
	env := []string{"CARGO_HOME=" + home}
	// The user's settings (a mirror, a proxy) hold in the temporary home too.
	users := os.Getenv("CARGO_HOME")
	if users == "" {
		users = filepath.Join(os.Getenv("HOME"), ".cargo")
	}
	for _, name := range []string{"config.toml", "config"} {
		if data, err := os.ReadFile(filepath.Join(users, name)); err == nil {
			if err := os.WriteFile(filepath.Join(home, name), data, 0o600); err != nil {
				return err
			}
		}
	}
	// rustup's stand-in for cargo looks for its toolchains in the home folder; if
	// HOME is elsewhere, as in CI, they are still beside the stand-in.
	if resolved, err := filepath.EvalSymlinks(cargo); err == nil && os.Getenv("RUSTUP_HOME") == "" {
		rustup := filepath.Join(filepath.Dir(resolved), "..", "..", ".rustup")
		if st, err := os.Stat(rustup); err == nil && st.IsDir() {
			env = append(env, "RUSTUP_HOME="+rustup)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	out, err := s.tool(ctx, env, cargo, "info", "--color", "never", c.Name+"@"+c.Version)
	if outOfSpace(out) {
		return diskFull("downloading " + c.File)
	}
	if ctx.Err() == context.DeadlineExceeded {
		return errors.New("no answer within two minutes")
	}
	found, _ := filepath.Glob(filepath.Join(home, "registry", "cache", "*", c.File))
	if len(found) != 1 {
		if err == nil {
			err = errors.New("it left no crate")
		}
		return fmt.Errorf("%s", telling(out, err))
	}
	return s.keep(found[0], c.File, c.Size, c.SHA256)
}

// gitClone brings upstream's tag as a bare clone and checks the commit it is at.
func (s *setup) gitClone(ctx context.Context, clone string) error {
	g := s.lock.MLXC.Git
	if _, err := exec.LookPath("git"); err != nil {
		return errors.New("not on the PATH")
	}
	if _, err := os.Stat(clone); err == nil {
		return s.gitVerify(ctx, clone)
	}
	s.say("downloading mlx-c %s with git", s.lock.MLXC.Version)
	tmp := filepath.Join(s.tmp, "clone")
	// Where upstream cannot be reached, a connection may hang instead of failing.
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := s.tool(ctx, []string{"GIT_TERMINAL_PROMPT=0"}, "git", "clone", "--quiet", "--bare", "--depth", "1", "--branch", g.Tag, g.URL, tmp)
	if outOfSpace(out) {
		return diskFull("cloning mlx-c")
	}
	if ctx.Err() == context.DeadlineExceeded {
		return errors.New("no answer within a minute")
	}
	if err != nil {
		return fmt.Errorf("%s", telling(out, err))
	}
	if err := s.gitVerify(ctx, tmp); err != nil {
		return err
	}
	if err := os.MkdirAll(s.path("downloads"), 0o755); err != nil {
		return err
	}
	return os.Rename(tmp, clone)
}

func (s *setup) gitVerify(ctx context.Context, clone string) error {
	g := s.lock.MLXC.Git
	out, err := s.tool(ctx, nil, "git", "--git-dir", clone, "rev-parse", "refs/tags/"+g.Tag+"^{commit}")
	if err != nil {
		return fmt.Errorf("%s", telling(out, err))
	}
	if commit := strings.TrimSpace(out); commit != g.Commit {
		return fmt.Errorf("tag %s is at commit %s where the lock file says %s", g.Tag, commit, g.Commit)
	}
	return nil
}

// gitExport unpacks the locked commit of a clone.
func (s *setup) gitExport(ctx context.Context, clone, dir string) error {
	archive := filepath.Join(s.tmp, "mlx-c.tar")
	if out, err := s.tool(ctx, nil, "git", "--git-dir", clone, "archive", "--format", "tar", "--output", archive, s.lock.MLXC.Git.Commit); err != nil {
		return fmt.Errorf("git: %s", telling(out, err))
	}
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	return untar(f, ".", dir)
}

// tool runs a program and returns all that it printed. Its temporary files go below
// our own folder, which is removed in the end.
func (s *setup) tool(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := command(ctx, args...)
	cmd.Dir = s.tmp
	cmd.Env = append(os.Environ(), "TMPDIR="+s.tmp, "LC_ALL=C")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

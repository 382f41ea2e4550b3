package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// openMLXC returns the folder of the mlx-c sources of MLX_C_SOURCE, which names a folder, or an archive whose hash is
// in the lock file.
func (s *setup) openMLXC(source string) (string, error) {
	if st, err := os.Stat(source); err != nil || st.IsDir() {
		return source, err
	}
	sum, err := hashFile(source)
	if err != nil {
		return "", err
	}
	for _, known := range []struct{ sha, folder string }{
		{s.pair.MLXC.Crate.SHA256, s.pair.MLXC.Crate.Folder},
		{s.pair.MLXC.Archive.SHA256, s.pair.MLXC.Archive.Folder},
	} {
		if sum == known.sha {
			return s.source("archive", sum, func(dir string) error { return untarGz(source, known.folder, dir) })
		}
	}
	return "", failf("set MLX_C_SOURCE to a folder, or to an archive whose hash the lock file has",
		"%s has SHA-256 %s, which the lock file does not have", filepath.Base(source), sum)
}

// bringMLXC returns a folder with the pinned, unpatched mlx-c sources. It prefers the crate to git: the crate is one
// small file that can be hashed and stored, downloads in less than a second, and is available where only package
// registries are reachable.
func (s *setup) bringMLXC(ctx context.Context, m *manifest) (string, error) {
	l := s.pair.MLXC
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
	// Only failures to reach the crate may fall back to git. Others, such as a wrong hash or a full disk, must be
	// reported.
	var f *failure
	if ctx.Err() != nil || errors.As(crateErr, &f) || isDiskFull(crateErr) {
		return "", cmp.Or(ctx.Err(), crateErr)
	}
	if err := s.gitClone(ctx, clone); err != nil {
		if ctx.Err() != nil || errors.As(err, &f) || isDiskFull(err) {
			return "", cmp.Or(ctx.Err(), err)
		}
		return "", failf("install cargo (1.82 or later) or git, check the network, and run the set-up again; or set MLX_C_SOURCE to an mlx-c "+l.Version+" tree",
			"the sources of mlx-c %s could not be downloaded (cargo: %s; git: %s)", l.Version, oneLine(crateErr.Error()), oneLine(err.Error()))
	}
	m.Sources["mlx-c "+l.Git.Tag] = l.Git.Commit
	return s.source("git", l.Git.Commit, func(dir string) error { return s.gitExport(ctx, clone, dir) })
}

var errHaveClone = errors.New("skipped, since a git clone exists")

// source returns the folder of the unpacked sources. id is their hash or commit. It unpacks them if necessary.
func (s *setup) source(kind, id string, unpack func(dir string) error) (string, error) {
	dir := s.path("src", "mlx-c-"+s.pair.MLXC.Version+"-"+kind+"-"+id[:12])
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

// cargoDownload downloads the crate that contains the mlx-c tree. "cargo info" with a separate CARGO_HOME downloads
// exactly this crate; "fetch" and "vendor" would also download its dependencies.
func (s *setup) cargoDownload(ctx context.Context) error {
	c := s.pair.MLXC.Crate
	cargo, err := exec.LookPath("cargo")
	if err != nil {
		return errors.New("not on the PATH")
	}
	s.say("downloading mlx-c %s (crate %s, %.1f MB) with cargo", s.pair.MLXC.Version, c.Name, float64(c.Size)/1e6)
	home, err := os.MkdirTemp(s.tmp, "cargo-")
	if err != nil {
		return err
	}
	env := []string{"CARGO_HOME=" + home}
	// Copy the user's settings, such as a mirror or a proxy, to the temporary home.
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
	// cargo may be rustup's proxy, which looks for toolchains below HOME. If rustup was installed with another HOME, as
	// in CI, the toolchains are found relative to the proxy.
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
			err = errors.New("cargo info downloaded no crate")
		}
		return fmt.Errorf("%s", telling(out, err))
	}
	return s.keep(found[0], c.File, c.Size, c.SHA256)
}

// gitClone clones upstream's tag as a bare repository and checks its commit.
func (s *setup) gitClone(ctx context.Context, clone string) error {
	g := s.pair.MLXC.Git
	if _, err := exec.LookPath("git"); err != nil {
		return errors.New("not on the PATH")
	}
	if _, err := os.Stat(clone); err == nil {
		return s.gitVerify(ctx, clone)
	}
	s.say("downloading mlx-c %s with git", s.pair.MLXC.Version)
	tmp := filepath.Join(s.tmp, "clone")
	// Without this limit, a connection to an unreachable host may hang.
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := s.tool(ctx, []string{"GIT_TERMINAL_PROMPT=0"}, "git", "clone", "--quiet", "--bare", "--depth", "1",
		"--branch", g.Tag, g.URL, tmp)
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
	g := s.pair.MLXC.Git
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
	if out, err := s.tool(ctx, nil, "git", "--git-dir", clone, "archive", "--format", "tar", "--output", archive,
		s.pair.MLXC.Git.Commit); err != nil {
		return fmt.Errorf("git: %s", telling(out, err))
	}
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	return untar(f, ".", dir)
}

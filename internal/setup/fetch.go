package setup

import (
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

// bringMLX unpacks the wheels of the chosen backend in the staged installation, in the layout that the libraries' run
// paths require.
func (s *setup) bringMLX(ctx context.Context, m *manifest, stage string) error {
	goos, goarch, _ := strings.Cut(m.Platform, "/")
	wheels := s.pair.wheelsFor(m.Backend, goos, goarch)
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

// bring returns the path of a verified file: in the folder of --offline if set, otherwise in downloads, where download
// puts it if necessary. A damaged file in downloads is downloaded again, since files are verified when they are stored.
func (s *setup) bring(name string, size int64, sha string, download func() error) (file string, err error) {
	if s.offline != "" {
		file = filepath.Join(s.offline, name)
		err = verifyFile(file, size, sha)
		if errors.Is(err, os.ErrNotExist) {
			err = failf("copy it there; third_party/mlx-c/downloads of a checkout that is set up has it",
				"%s lacks %s", s.offline, name)
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

// watch runs a download and reports the number of bytes in the run's temporary folder.
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

// folderSize returns the size of the files in a folder. Files may appear and disappear meanwhile.
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

// pips lists the commands for pip; findPip uses the first that works. uv cannot download a wheel itself, but can run
// pip in a separate environment.
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
	return nil, failf("install pip (Debian and Ubuntu: apt-get install python3-pip; macOS: xcode-select --install) and run the set-up again",
		"neither pip nor uv is on the PATH; one of them must download MLX")
}

// pipDownload downloads a wheel by name and hash and keeps it.
func (s *setup) pipDownload(ctx context.Context, w wheel) error {
	file, err := s.pipFile(ctx, w)
	if err != nil {
		return err
	}
	return s.keep(file, w.File, w.Size, w.SHA256)
}

// pipFile downloads a wheel by name and hash to a temporary folder. w.Size is only used for the progress and may be 0.
func (s *setup) pipFile(ctx context.Context, w wheel) (string, error) {
	pip, err := s.findPip(ctx)
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(s.tmp, "pip-")
	if err != nil {
		return "", err
	}
	requirements := filepath.Join(dir, "requirements.txt")
	line := fmt.Sprintf("%s==%s --hash=sha256:%s\n", w.Package, w.Version, w.SHA256)
	if err := os.WriteFile(requirements, []byte(line), 0o644); err != nil {
		return "", err
	}
	var out string
	size := ""
	if w.Size > 0 {
		size = fmt.Sprintf(" (%.0f MB)", float64(w.Size)/1e6)
	}
	message := fmt.Sprintf("downloading %s %s%s with %s", w.Package, w.Version, size, strings.Join(pip, " "))
	err = s.watch(message, w.Size, func() (err error) {
		out, err = s.tool(ctx, nil, append(pip[:len(pip):len(pip)], "download",
			"--require-hashes", "--no-deps", "--only-binary=:all:", "--platform", w.Platform,
			"--no-input", "--retries", "3", "--disable-pip-version-check", "--progress-bar", "off",
			"--requirement", requirements, "--dest", dir)...)
		return err
	})
	if err == nil {
		return filepath.Join(dir, w.File), nil
	}
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case outOfSpace(out):
		return "", diskFull("downloading " + w.File)
	case strings.Contains(out, "DO NOT MATCH THE HASHES"):
		return "", failf("do not use it, and report it to the project",
			"pip downloaded a %s whose SHA-256 is not the one in the lock file (%s)", w.File, got(out))
	case noConnection.MatchString(out):
		return "", failf(noNetwork, "pip could not reach its package index to download %s %s", w.Package, w.Version)
	default:
		return "", failf(noNetwork, "pip could not download %s %s (%s)", w.Package, w.Version, telling(out, err))
	}
}

// noConnection matches pip's network errors. pip's last line, "no matching distribution found", would mislead.
var noConnection = regexp.MustCompile(`Failed to establish a new connection|name resolution|Name or service not known|Connection refused|Network is unreachable|timed out|Cannot connect to proxy|NewConnectionError|NameResolutionError`)

var gotHash = regexp.MustCompile(`Got +([0-9a-f]{64})`)

func got(out string) string {
	if m := gotHash.FindStringSubmatch(out); m != nil {
		return m[1]
	}
	return "unknown"
}

// telling returns the most informative line of a tool's output: the last line marked as an error, or the last line.
func telling(out string, err error) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if l := strings.TrimSpace(lines[i]); strings.HasPrefix(strings.ToLower(l), "error") ||
			strings.HasPrefix(l, "fatal") {
			return oneLine(l)
		}
	}
	if last := oneLine(lines[len(lines)-1]); last != "" {
		return last
	}
	return err.Error()
}

// tool runs a program and returns its output. The program's temporary files are below s.tmp, which is removed at the
// end of the run.
func (s *setup) tool(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := command(ctx, args...)
	cmd.Dir = s.tmp
	cmd.Env = append(os.Environ(), "TMPDIR="+s.tmp, "LC_ALL=C")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

package setup

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// releaseURL is the folder of a version's archives; %s is the tag.
const releaseURL = "https://github.com/mlxgrad/mlxgrad/releases/download/%s"

// A releaseTarget is a platform with the compilers for it.
type releaseTarget struct {
	goos, goarch, backend string
	cxx                   *toolchain
	env                   []string // of the go command
}

func (t releaseTarget) platform() string { return t.goos + "-" + t.goarch }

// releaseTargets returns the platforms with their compilers: GCC for Linux, since libmlx uses GCC's C++ library there,
// and Zig for macOS.
func (s *setup) releaseTargets(ctx context.Context) ([]releaseTarget, error) {
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		return nil, failf("use a machine with Linux on amd64", "a release is made on linux/amd64 and not on %s/%s",
			runtime.GOOS, runtime.GOARCH)
	}
	var targets []releaseTarget
	for _, linux := range []struct{ arch, prefix string }{
		{"amd64", "x86_64-linux-gnu-"},
		{"arm64", "aarch64-linux-gnu-"},
	} {
		cxx := &toolchain{command: []string{linux.prefix + "g++"}, goos: "linux"}
		out, err := command(ctx, cxx.command[0], "--version").Output()
		if err != nil {
			return nil, failf("install it (Debian and Ubuntu: apt-get install g++ g++-aarch64-linux-gnu)",
				"the compiler %s cannot be run (%v)", cxx.command[0], err)
		}
		cxx.version, _, _ = strings.Cut(string(out), "\n")
		targets = append(targets, releaseTarget{
			goos: "linux", goarch: linux.arch, backend: "cpu", cxx: cxx,
			env: []string{
				"CGO_ENABLED=1", "GOOS=linux", "GOARCH=" + linux.arch, "CC=" + linux.prefix + "gcc",
				"CXX=" + linux.prefix + "g++",
			},
		})
	}
	zig, err := s.zig(ctx)
	if err != nil {
		return nil, err
	}
	return append(targets, releaseTarget{
		goos: "darwin", goarch: "arm64", backend: "metal",
		cxx: zig.cxx, env: zig.goEnv(),
	}), nil
}

var versionTag = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`)

// release makes all files of a release in the repository's folder release. The argument is the version. It compiles the
// libraries and writes their hashes to the lock file. If that changes the lock file, it stops, since the commands embed
// the lock file and take their version from the tag of the commit. Without an argument it makes a snapshot, which
// changes nothing else in the repository and needs no tag.
func (s *setup) release(ctx context.Context, _ *manifest, args []string) error {
	version := "snapshot"
	switch {
	case len(args) == 1 && versionTag.MatchString(args[0]):
		version = args[0]
	case len(args) > 0:
		return failf("name one version such as v0.1.0, or none for a snapshot", "release does not take %q",
			strings.Join(args, " "))
	}
	targets, err := s.releaseTargets(ctx)
	if err != nil {
		return err
	}
	target := filepath.Join(s.repository(), "release")
	if err := recoverDir(target); err != nil {
		return err
	}
	stage, err := os.MkdirTemp(s.repository(), "release.tmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage) // nothing is left of it after a success
	if s.tmp, err = os.MkdirTemp(s.path("build"), "tmp-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.tmp)

	lock := lockFile{Default: s.lock.Default, Pairs: slices.Clone(s.lock.Pairs)}
	for i := range lock.Pairs {
		s.pair = &s.lock.Pairs[i]
		if lock.Pairs[i].Prebuilt, err = s.releaseLibraries(ctx, targets, version, stage); err != nil {
			return err
		}
	}
	if version != "snapshot" {
		if err := s.lockRelease(lock); err != nil {
			return err
		}
	}
	notes, err := releaseNotes(filepath.Join(s.repository(), "CHANGELOG.md"), version)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(stage, "release-notes.md"), notes, 0o644); err != nil {
		return err
	}
	for _, t := range targets {
		if err := s.releaseCommand(ctx, t, version, stage); err != nil {
			return err
		}
	}
	if err := writeSums(stage); err != nil {
		return err
	}
	if err := os.Chmod(stage, 0o755); err != nil {
		return err
	}
	if err := replaceDir(stage, target); err != nil {
		return err
	}
	s.say("the files of %s are in %s", version, target)
	return nil
}

// releaseLibraries makes the archives with libmlxc and libmlxg for s.pair in the folder stage.
func (s *setup) releaseLibraries(
	ctx context.Context, targets []releaseTarget, version, stage string,
) (*lockPrebuilt, error) {
	hash, err := s.sourcesHash()
	if err != nil {
		return nil, err
	}
	prebuilt := &lockPrebuilt{URL: fmt.Sprintf(releaseURL, version), Sources: hash}
	for _, t := range targets {
		s.say("libraries of %s for %s", s.pair, t.platform())
		name := fmt.Sprintf("mlxgrad-libraries-%s-mlx-%s-%s", version, s.pair.MLX.Version, t.platform())
		folder := filepath.Join(s.tmp, name)
		m := &manifest{Backend: t.backend, Platform: t.goos + "/" + t.goarch, Sources: map[string]string{}}
		if err := os.Mkdir(folder, 0o755); err != nil {
			return nil, err
		}
		if err := s.clean("sources"); err != nil {
			return nil, err
		}
		if _, err := s.assemble(ctx, t.cxx, m, folder); err != nil {
			return nil, err
		}
		if t.goos == "linux" {
			if err := compatible(folder); err != nil {
				return nil, err
			}
		}
		notice := filepath.Join(s.repository(), "third_party", "mlx-c", "NOTICE.md")
		for from, to := range map[string]string{
			notice:                                   "NOTICE.md",
			filepath.Join(s.repository(), "LICENSE"): "LICENSE",
		} {
			if err := copyTree(from, filepath.Join(folder, to)); err != nil {
				return nil, err
			}
		}
		a := prebuiltArchive{OS: t.goos, Arch: t.goarch, File: name + ".tar.gz"}
		archive := filepath.Join(stage, a.File)
		if err := writeArchive(archive, prebuiltFolder, folder, "lib", "include", "NOTICE.md", "LICENSE"); err != nil {
			return nil, err
		}
		info, err := os.Stat(archive)
		if err != nil {
			return nil, err
		}
		a.Size = info.Size()
		if a.SHA256, err = hashFile(archive); err != nil {
			return nil, err
		}
		prebuilt.Archives = append(prebuilt.Archives, a)
	}
	return prebuilt, nil
}

// clean removes the folder name below the run's temporary folder.
func (s *setup) clean(name string) error { return os.RemoveAll(filepath.Join(s.tmp, name)) }

// lockRelease writes the lock file with the archives of a release. If that changes the file, lockRelease returns an
// error with the next step.
func (s *setup) lockRelease(lock lockFile) error {
	var text strings.Builder
	if err := encodeLock(&text, lock); err != nil {
		return err
	}
	before, err := fs.ReadFile(s.sources, lockName)
	if err != nil || string(before) == text.String() {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.repository(), filepath.FromSlash(lockName)), []byte(text.String()),
		0o644); err != nil {
		return err
	}
	return failf("commit it, tag the commit and run ./build.sh release again",
		"%s has the hashes of these libraries now", lockName)
}

// releaseCommand makes the archive of the command mlxgrad for a platform, and its bill of materials.
func (s *setup) releaseCommand(ctx context.Context, t releaseTarget, version, stage string) error {
	s.say("mlxgrad for %s", t.platform())
	folder := filepath.Join(s.tmp, "mlxgrad-"+t.platform())
	program := filepath.Join(folder, "mlxgrad")
	flags := "-s -w -buildid="
	if t.goos == "darwin" {
		flags = "-linkmode=external " + flags // this machine's strip cannot read the format
	}
	if _, err := s.releaseTool(ctx, t.env, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", flags, "-o",
		program, "./cmd/mlxgrad"); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	if version != "snapshot" && info.Main.Version != version {
		return failf("tag the commit "+version+", with no changes in the checkout",
			"Go names the version of the command %s and not %s", info.Main.Version, version)
	}
	notices, err := s.notices(ctx, info)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "NOTICES.txt"), notices, 0o644); err != nil {
		return err
	}
	if err := copyTree(filepath.Join(s.repository(), "LICENSE"), filepath.Join(folder, "LICENSE")); err != nil {
		return err
	}
	if err := copyTree(filepath.Join(s.repository(), "docs", "man"), filepath.Join(folder, "man")); err != nil {
		return err
	}
	name := fmt.Sprintf("mlxgrad-%s-%s", version, t.platform())
	if err := s.materials(ctx, t, version, program, filepath.Join(stage, name+".cdx.json")); err != nil {
		return err
	}
	return writeArchive(filepath.Join(stage, name+".tar.gz"), name, folder, "mlxgrad", "LICENSE", "NOTICES.txt", "man")
}

// releaseTool runs a program in the repository and returns its output.
func (s *setup) releaseTool(ctx context.Context, env []string, args ...string) ([]byte, error) {
	cmd := command(ctx, args...)
	cmd.Dir = s.repository()
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil || ctx.Err() != nil {
		return out, ctx.Err()
	}
	if isDiskFull(err) || outOfSpace(stderr.String()) {
		return nil, diskFull(strings.Join(args, " "))
	}
	return nil, failf("run it by hand and correct its error", "%s failed (%s)", strings.Join(args, " "),
		oneLine(stderr.String()))
}

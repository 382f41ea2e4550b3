package setup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// releaseURL is where the archives of a version are, with the tag and the version in place of %s.
const releaseURL = "https://github.com/mlxgrad/mlxgrad/releases/download/%s"

// A releaseTarget is a platform with the compilers for it.
type releaseTarget struct {
	goos, goarch, backend string
	cxx                   *toolchain
	env                   []string // of the go command
}

func (t releaseTarget) platform() string { return t.goos + "-" + t.goarch }

// releaseTargets finds the compilers: GCC for Linux, since libmlx there uses GCC's C++ library, and Zig for macOS.
func (s *setup) releaseTargets(ctx context.Context) ([]releaseTarget, error) {
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" {
		return nil, failf("use a machine with Linux on amd64", "a release is made on linux/amd64 and not on %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	var targets []releaseTarget
	for _, linux := range []struct{ arch, prefix string }{{"amd64", "x86_64-linux-gnu-"}, {"arm64", "aarch64-linux-gnu-"}} {
		cxx := &toolchain{command: []string{linux.prefix + "g++"}, goos: "linux"}
		out, err := command(ctx, cxx.command[0], "--version").Output()
		if err != nil {
			return nil, failf("install it (Debian and Ubuntu: apt-get install g++ g++-aarch64-linux-gnu)", "the compiler %s cannot be run (%v)", cxx.command[0], err)
		}
		cxx.version, _, _ = strings.Cut(string(out), "\n")
		targets = append(targets, releaseTarget{
			goos: "linux", goarch: linux.arch, backend: "cpu", cxx: cxx,
			env: []string{"CGO_ENABLED=1", "GOOS=linux", "GOARCH=" + linux.arch, "CC=" + linux.prefix + "gcc", "CXX=" + linux.prefix + "g++"},
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

// release makes all files of a release in the folder release of the repository. Its argument is the version. It
// compiles the libraries, and writes their hashes into the lock file. If that changes the lock file, it stops: the
// commands have the lock file in them, and their version is the tag of the commit. Without a version it makes a
// snapshot, which changes nothing in the repository and needs no tag.
func (s *setup) release(ctx context.Context, _ *manifest, args []string) error {
	version := "snapshot"
	switch {
	case len(args) == 1 && versionTag.MatchString(args[0]):
		version = args[0]
	case len(args) > 0:
		return failf("name one version such as v0.1.0, or none for a snapshot", "release does not take %q", strings.Join(args, " "))
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

	prebuilt, err := s.releaseLibraries(ctx, targets, version, stage)
	if err != nil {
		return err
	}
	if version != "snapshot" {
		if err := s.lockRelease(prebuilt); err != nil {
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

// releaseLibraries makes the archives with libmlxc and libmlxg in the folder stage.
func (s *setup) releaseLibraries(ctx context.Context, targets []releaseTarget, version, stage string) (*lockPrebuilt, error) {
	hash, err := s.sourcesHash()
	if err != nil {
		return nil, err
	}
	prebuilt := &lockPrebuilt{URL: fmt.Sprintf(releaseURL, version), Sources: hash}
	for _, t := range targets {
		s.say("libraries for %s", t.platform())
		folder := filepath.Join(s.tmp, t.platform())
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
		for from, to := range map[string]string{notice: "NOTICE.md", filepath.Join(s.repository(), "LICENSE"): "LICENSE"} {
			if err := copyTree(from, filepath.Join(folder, to)); err != nil {
				return nil, err
			}
		}
		a := prebuiltArchive{OS: t.goos, Arch: t.goarch, File: fmt.Sprintf("mlxgrad-libraries-%s-%s.tar.gz", version, t.platform())}
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

// clean removes a folder of the run's temporary folder.
func (s *setup) clean(name string) error { return os.RemoveAll(filepath.Join(s.tmp, name)) }

// lockRelease compares the archives with the lock file. It writes another lock file if they differ, and returns an
// error that says what to do then.
func (s *setup) lockRelease(prebuilt *lockPrebuilt) error {
	s.lock.Prebuilt = prebuilt
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(s.lock); err != nil {
		return err
	}
	before, err := fs.ReadFile(s.sources, lockName)
	if err != nil || bytes.Equal(before, text.Bytes()) {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.repository(), filepath.FromSlash(lockName)), text.Bytes(), 0o644); err != nil {
		return err
	}
	return failf("commit it, tag the commit and run ./build.sh release again", "%s has the hashes of these libraries now", lockName)
}

// releaseCommand makes the archive of the command mlxgrad for a platform, and its bill of materials.
func (s *setup) releaseCommand(ctx context.Context, t releaseTarget, version, stage string) error {
	s.say("mlxgrad for %s", t.platform())
	folder := filepath.Join(s.tmp, "mlxgrad-"+t.platform())
	program := filepath.Join(folder, "mlxgrad")
	flags := "-s -w -buildid="
	if t.goos == "darwin" {
		flags = "-linkmode=external " + flags // strip of this machine does not know the format
	}
	if _, err := s.releaseTool(ctx, t.env, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", flags, "-o", program, "./cmd/mlxgrad"); err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	if version != "snapshot" && info.Main.Version != version {
		return failf("tag the commit "+version+", with no changes in the checkout", "Go names the version of the command %s and not %s", info.Main.Version, version)
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
	name := fmt.Sprintf("mlxgrad-%s-%s", version, t.platform())
	if err := s.materials(ctx, t, version, program, filepath.Join(stage, name+".cdx.json")); err != nil {
		return err
	}
	return writeArchive(filepath.Join(stage, name+".tar.gz"), name, folder, "mlxgrad", "LICENSE", "NOTICES.txt")
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
	return nil, failf("make the command work first", "%s failed (%s)", strings.Join(args, " "), oneLine(stderr.String()))
}

// licenseName matches the files of a Go module that must go with its binaries.
var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|notice|copying|patents)(\.|-|$)`)

// notices returns the licenses of Go and of all modules in a program.
func (s *setup) notices(ctx context.Context, info *buildinfo.BuildInfo) ([]byte, error) {
	var text bytes.Buffer
	add := func(title, dir string) error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		found := false
		for _, e := range entries {
			if e.IsDir() || !licenseName.MatchString(e.Name()) {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			found = true
			fmt.Fprintf(&text, "==== %s: %s\n\n%s\n\n", title, e.Name(), bytes.TrimSpace(data))
		}
		if !found {
			return failf("add its license to the notices by hand", "%s has no license file in %s", title, dir)
		}
		return nil
	}
	goroot, err := s.releaseTool(ctx, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	if err := add(info.GoVersion, strings.TrimSpace(string(goroot))); err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		dir, err := s.releaseTool(ctx, nil, "go", "list", "-m", "-f", "{{.Dir}}", m.Path)
		if err != nil {
			return nil, err
		}
		if err := add(m.Path+" "+m.Version, strings.TrimSpace(string(dir))); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// materials writes the bill of materials of a command in CycloneDX' format: its Go modules, and what set-up installs
// for it.
func (s *setup) materials(ctx context.Context, t releaseTarget, version, program, file string) error {
	out, err := s.releaseTool(ctx, nil, "go", "tool", "-modfile=tools/go.mod", "cyclonedx-gomod", "bin", "-json", "-noserial", "-licenses", "-version", version, program)
	if err != nil {
		return err
	}
	var bom map[string]any
	if err := json.Unmarshal(out, &bom); err != nil {
		return fmt.Errorf("cyclonedx-gomod: %w", err)
	}
	components, _ := bom["components"].([]any)
	if metadata, ok := bom["metadata"].(map[string]any); ok {
		// The same sources give the same file.
		delete(metadata, "timestamp")
		tools, _ := metadata["tools"].([]any)
		for _, tool := range tools {
			if tool, ok := tool.(map[string]any); ok {
				delete(tool, "hashes")
			}
		}
	}
	add := func(name, version, license, purl, sha string) {
		c := map[string]any{
			"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
			"licenses": []any{map[string]any{"license": map[string]any{"name": license}}},
		}
		if sha != "" {
			c["hashes"] = []any{map[string]any{"alg": "SHA-256", "content": sha}}
		}
		components = append(components, c)
	}
	l := s.lock
	add("mlx-c", l.MLXC.Version, l.MLXC.License, "pkg:github/ml-explore/mlx-c@"+l.MLXC.Git.Tag, "")
	for _, w := range l.MLX.Wheels {
		if w.OS == t.goos && w.Arch == t.goarch {
			add(w.Package, w.Version, w.License, "pkg:pypi/"+w.Package+"@"+w.Version, w.SHA256)
		}
	}
	bom["components"] = components
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	if err := e.Encode(bom); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}

// releaseNotes returns the changelog's section of a version, or the unreleased one for a snapshot.
func releaseNotes(changelog, version string) ([]byte, error) {
	data, err := os.ReadFile(changelog)
	if err != nil {
		return nil, err
	}
	heading := strings.TrimPrefix(version, "v")
	if version == "snapshot" {
		heading = "Unreleased"
	}
	for section := range strings.SplitSeq("\n"+string(data), "\n## ") {
		first, rest, _ := strings.Cut(section, "\n")
		if title, _, _ := strings.Cut(first, " "); strings.Trim(title, "[]") == heading && strings.TrimSpace(rest) != "" {
			return []byte(strings.TrimSpace(rest) + "\n"), nil
		}
	}
	return nil, failf("add it, as RELEASING.md says", "%s has no section %q", filepath.Base(changelog), "## "+heading)
}

// writeArchive writes files and folders of dir to a tar archive, below folder, whose bytes depend on nothing else.
func writeArchive(archive, folder, dir string, names ...string) error {
	var files []string
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(dir, name), func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, p)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	slices.Sort(files)
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		header := &tar.Header{
			Name: folder + "/" + filepath.ToSlash(rel), Mode: int64(info.Mode().Perm()&0o111 | 0o644), Size: info.Size(),
			ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg,
		}
		if err := errors.Join(w.WriteHeader(header), func() error { _, err := w.Write(data); return err }()); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		return err
	}
	return os.WriteFile(archive, out.Bytes(), 0o644)
}

// writeSums writes SHA256SUMS, which "sha256sum --check" reads.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		sum, err := hashFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(text.String()), 0o644)
}

// compatible returns an error if a library of ours needs a newer C or C++ library than libmlx does.
func compatible(install string) error {
	allowed, err := neededVersions(filepath.Join(install, "mlx", "lib", "libmlx.so"))
	if err != nil {
		return err
	}
	for _, name := range []string{"libmlxc.so", "libmlxg.so"} {
		needed, err := neededVersions(filepath.Join(install, "lib", name))
		if err != nil {
			return err
		}
		for family, version := range needed {
			if slices.Compare(version, allowed[family]) > 0 {
				return failf("compile on an older system, such as Debian 12", "%s needs %s %v, and MLX at most %v", name, family, version, allowed[family])
			}
		}
	}
	return nil
}

var symbolVersion = regexp.MustCompile(`^(GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)$`)

// neededVersions returns the newest versions of the symbols that a library needs, such as GLIBC 2 35.
func neededVersions(library string) (map[string][]int, error) {
	f, err := elf.Open(library)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return nil, err
	}
	newest := map[string][]int{}
	for _, s := range symbols {
		m := symbolVersion.FindStringSubmatch(s.Version)
		if m == nil {
			continue
		}
		var version []int
		for part := range strings.SplitSeq(m[2], ".") {
			var n int
			if _, err := fmt.Sscan(part, &n); err != nil {
				return nil, err
			}
			version = append(version, n)
		}
		if slices.Compare(version, newest[m[1]]) > 0 {
			newest[m[1]] = version
		}
	}
	return newest, nil
}

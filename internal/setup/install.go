package setup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// A manifest says what an installation holds and what it was made from. It is the
// last file written; a folder without one is not an installation.
type manifest struct {
	Fingerprint string `json:"fingerprint"`
	Choice      choice `json:"choice"`
	Backend     string `json:"backend"`
	Platform    string `json:"platform"`
	MLX         string `json:"mlx"`
	MLXC        string `json:"mlx_c"`
	Tested      bool   `json:"tested_pair"`
	Compiler    string `json:"compiler"`
	CXX         string `json:"cxx"`
	// Sources maps what was brought in to its SHA-256 or commit.
	Sources map[string]string `json:"sources"`
	// Files maps the shared libraries, relative to the folder, to size and SHA-256.
	Files map[string]installedFile `json:"files"`
}

type installedFile struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func readManifest(install string) (*manifest, error) {
	data, err := os.ReadFile(filepath.Join(install, "manifest.json"))
	if err != nil {
		return nil, err
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	return &m, nil
}

// complete tells whether the libraries that the manifest lists are all there. It
// looks at sizes only: this runs before every verb and has to take no time.
func (m *manifest) complete(install string) bool {
	for name, f := range m.Files {
		st, err := os.Stat(filepath.Join(install, filepath.FromSlash(name)))
		if err != nil || st.Size() != f.Size {
			return false
		}
	}
	for _, name := range []string{"include/mlx/c/mlx.h", "mlx/include/mlx/mlx.h"} {
		if _, err := os.Stat(filepath.Join(install, filepath.FromSlash(name))); err != nil {
			return false
		}
	}
	return len(m.Files) > 0
}

// writeManifest lists the shared libraries of a staged installation and writes the
// manifest into it.
func writeManifest(m *manifest, stage string) error {
	m.Files = map[string]installedFile{}
	err := filepath.WalkDir(stage, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if base := filepath.Base(p); !strings.HasPrefix(base, "lib") && filepath.Ext(p) != ".metallib" {
			return nil
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		sum, err := hashFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(stage, p)
		if err != nil {
			return err
		}
		m.Files[filepath.ToSlash(rel)] = installedFile{Size: st.Size(), SHA256: sum}
		return nil
	})
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(stage, "manifest.json"), append(data, '\n'), 0o644)
}

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

// copyHeaders installs mlx-c's public headers and its licence.
func copyHeaders(tree sourceTree, source, stage string) error {
	public := sourceTree{}
	for _, name := range tree.names(".h") {
		if strings.HasPrefix(name, "mlx/c/") && !strings.HasPrefix(name, "mlx/c/private/") {
			public[name] = tree[name]
		}
	}
	if err := public.write(filepath.Join(stage, "include")); err != nil {
		return err
	}
	licence, err := os.ReadFile(filepath.Join(source, "LICENSE"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(stage, "include", "mlx", "c", "LICENSE"), licence, 0o644)
}

var (
	mlxVersionPart = regexp.MustCompile(`(?m)^#define MLX_VERSION_(MAJOR|MINOR|PATCH) +(\d+)`)
	mlxcVersion    = regexp.MustCompile(`(?m)set\(MLX_C_VERSION +([0-9.]+)\)`)
)

// mlxVersionOf reads the version of the MLX in a folder from its headers.
func mlxVersionOf(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "include", "mlx", "version.h"))
	if err != nil {
		return "", failf("set MLX_DIR to a folder that has include/mlx and lib/libmlx", "%s holds no MLX (include/mlx/version.h is missing)", dir)
	}
	part := map[string]string{}
	for _, m := range mlxVersionPart.FindAllStringSubmatch(string(data), -1) {
		part[m[1]] = m[2]
	}
	if len(part) != 3 {
		return "", failf("set MLX_DIR to a folder that has include/mlx and lib/libmlx", "%s/include/mlx/version.h names no version", dir)
	}
	return part["MAJOR"] + "." + part["MINOR"] + "." + part["PATCH"], nil
}

// mlxcVersionOf reads the version of an mlx-c tree from its build file, the only
// place where mlx-c states it.
func mlxcVersionOf(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "CMakeLists.txt"))
	if err == nil {
		if m := mlxcVersion.FindSubmatch(data); m != nil {
			return string(m[1]), nil
		}
	}
	return "", failf("set MLX_C_SOURCE to an unpacked mlx-c release", "%s is not an mlx-c source tree (its CMakeLists.txt names no version)", dir)
}

// fingerprint hashes all that decides what an installation holds. An installation
// with the same fingerprint is up to date.
func (s *setup) fingerprint(tools *toolchain) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s/%s %q %q %q %q %q\n", runtime.GOOS, runtime.GOARCH, s.choice.backend(), s.choice.MLXDir, s.choice.MLXCSource, tools.command, tools.version)
	fmt.Fprintf(h, "%q %q\n", tools.compileFlags(), tools.linkFlags("mlxc"))
	if err := s.hashSources(h); err != nil {
		return "", err
	}
	var files []string
	if s.choice.ASan {
		fmt.Fprintf(h, "%q\n", asanFlags)
	}
	if d := s.choice.MLXDir; d != "" {
		files = append(files, filepath.Join(d, "include", "mlx", "version.h"))
		// The library is too big to hash at every run.
		st, err := os.Stat(filepath.Join(d, "lib", tools.library("mlx")))
		if err != nil {
			return "", failf("set MLX_DIR to a folder that has include/mlx and lib/libmlx", "%s holds no MLX (lib/%s is missing)", d, tools.library("mlx"))
		}
		fmt.Fprintf(h, "%d %d\n", st.Size(), st.ModTime().UnixNano())
	}
	if src := s.choice.MLXCSource; src != "" {
		if st, err := os.Stat(src); err == nil && !st.IsDir() {
			files = append(files, src)
		} else {
			if _, err := mlxcVersionOf(src); err != nil {
				return "", err
			}
			tree, err := readTree(src)
			if err != nil {
				return "", err
			}
			files = append(files, filepath.Join(src, "CMakeLists.txt"))
			for _, name := range tree.names("") {
				files = append(files, filepath.Join(src, filepath.FromSlash(name)))
			}
		}
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", filepath.Base(name), len(data))
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashSources hashes the files of the repository that libmlxc and libmlxg are made from, and the lock file
// without what a release writes into it.
func (s *setup) hashSources(w io.Writer) error {
	lock := *s.lock
	lock.Prebuilt = nil
	data, err := json.Marshal(lock)
	if err != nil {
		return err
	}
	files, err := readFiles(s.sources, append([]string{patches + "/*"}, libmlxgSources...)...)
	if err != nil {
		return err
	}
	files[lockName] = data
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := fmt.Fprintf(w, "%s %d\n%s", name, len(files[name]), files[name]); err != nil {
			return err
		}
	}
	return nil
}

// produce makes a whole installation in a folder beside the final one and renames it into place last. It takes
// the libraries from an archive if one is given, else it compiles them.
func (s *setup) produce(ctx context.Context, prebuilt *prebuiltArchive, tools *toolchain, fingerprint string) (err error) {
	m := &manifest{
		Fingerprint: fingerprint, Choice: s.choice, Backend: s.choice.backend(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Sources:  map[string]string{},
	}
	if tools != nil {
		m.Compiler, m.CXX = tools.version, strings.Join(tools.command, " ")
	}
	stage, err := os.MkdirTemp(s.root, "install.tmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage) // nothing is left of it after a success
	if err := os.Chmod(stage, 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(s.path("build"), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(s.path("build"), "tmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	s.tmp = tmp

	if prebuilt != nil {
		err = s.unpackPrebuilt(ctx, prebuilt, m, stage)
	} else {
		err = s.compileInto(ctx, tools, m, stage)
	}
	if err != nil {
		return err
	}
	if err := writeManifest(m, stage); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := replaceDir(stage, s.path("install")); err != nil {
		return err
	}
	s.say("MLX %s, backend %s, is set up in %s", m.MLX, m.Backend, s.path("install"))
	return nil
}

// compileInto makes the installation in the folder stage with a compiler and loads it once.
func (s *setup) compileInto(ctx context.Context, tools *toolchain, m *manifest, stage string) error {
	b, err := s.assemble(ctx, tools, m, stage)
	if err != nil {
		return err
	}
	return s.check(ctx, b, m, stage)
}

// assemble brings MLX and mlx-c to the folder stage and compiles and links mlx-c there, for the
// manifest's platform.
func (s *setup) assemble(ctx context.Context, tools *toolchain, m *manifest, stage string) (b *build, err error) {
	// Cheap checks of what the user brought come before any download.
	source := s.choice.MLXCSource
	if source != "" {
		if source, err = s.openMLXC(source); err != nil {
			return nil, err
		}
	}
	if m.MLXC = s.lock.MLXC.Version; source != "" {
		if m.MLXC, err = mlxcVersionOf(source); err != nil {
			return nil, err
		}
	}
	if m.MLX = s.lock.MLX.Version; s.choice.MLXDir != "" {
		if m.MLX, err = mlxVersionOf(s.choice.MLXDir); err != nil {
			return nil, err
		}
	}
	if m.Tested, err = s.lock.checkPair(m.MLXC, m.MLX); err != nil {
		return nil, err
	}
	if !m.Tested {
		s.say("note: mlx-c %s with MLX %s is an accepted pair, but the project's tests do not run on it", m.MLXC, m.MLX)
	}

	if source == "" {
		if source, err = s.bringMLXC(ctx, m); err != nil {
			return nil, err
		}
	} else {
		m.Sources["mlx-c"] = s.choice.MLXCSource
	}
	tree, err := s.patchedTree(source)
	if err != nil {
		return nil, err
	}
	if err := tree.addLibmlxg(s.sources); err != nil {
		return nil, err
	}
	tree.addParts("libmlxc", "mlx/c/")
	tree.addParts("libmlxg", libmlxgFolder)
	treeDir := filepath.Join(s.tmp, "sources")
	if err := tree.write(treeDir); err != nil {
		return nil, err
	}
	if err := copyHeaders(tree, source, stage); err != nil {
		return nil, err
	}

	if s.choice.MLXDir == "" {
		if err := s.bringMLX(ctx, m, stage); err != nil {
			return nil, err
		}
	} else {
		m.Sources["mlx"] = s.choice.MLXDir
		if err := os.Symlink(s.choice.MLXDir, filepath.Join(stage, "mlx")); err != nil {
			return nil, err
		}
	}

	b = &build{
		tools: tools, tree: tree, treeDir: treeDir, mlx: filepath.Join(stage, "mlx"),
		objects: s.path("build", "objects"), tmp: s.tmp, mlxcVers: m.MLXC, report: s.report,
	}
	libmlxc := tree.parts("libmlxc")
	objects, err := b.compile(ctx, append(libmlxc, tree.parts("libmlxg")...))
	if err != nil {
		return nil, err
	}
	lib := filepath.Join(stage, "lib")
	if err := os.MkdirAll(lib, 0o755); err != nil {
		return nil, err
	}
	if err := b.link(ctx, objects[:len(libmlxc)], filepath.Join(lib, tools.library("mlxc"))); err != nil {
		return nil, err
	}
	if err := b.libmlxg(ctx, lib, false); err != nil {
		return nil, err
	}
	if s.choice.ASan {
		if err := b.libmlxg(ctx, lib, true); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// check loads the new library once. It must name the versions that were meant.
func (s *setup) check(ctx context.Context, b *build, m *manifest, stage string) error {
	mlxc, headers, loaded, err := b.probe(ctx, stage)
	var f *failure
	if errors.As(err, &f) || ctx.Err() != nil {
		return err
	}
	if err != nil && strings.HasPrefix(m.Backend, "cuda") {
		// CUDA's driver library belongs to the machine that runs, not to the one that
		// builds.
		s.say("note: the CUDA build of MLX does not load on this machine (%s)", oneLine(err.Error()))
		return nil
	}
	if err != nil {
		return failf("a C library as new as the wheel's platform tag is needed (glibc 2.35, macOS 14); or build MLX yourself and set MLX_DIR",
			"the library does not load (%v)", err)
	}
	if mlxc != m.MLXC || headers != m.MLX || loaded != m.MLX {
		return failf("make MLX_DIR's headers and library come from the same release",
			"libmlxc %s was compiled for MLX %s and loads MLX %s", mlxc, headers, loaded)
	}
	return nil
}

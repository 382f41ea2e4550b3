package setup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// copyHeaders installs mlx-c's public headers and its license.
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
	license, err := os.ReadFile(filepath.Join(source, "LICENSE"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(stage, "include", "mlx", "c", "LICENSE"), license, 0o644)
}

var (
	mlxVersionPart = regexp.MustCompile(`(?m)^#define MLX_VERSION_(MAJOR|MINOR|PATCH) +(\d+)`)
	mlxcVersion    = regexp.MustCompile(`(?m)set\(MLX_C_VERSION +([0-9.]+)\)`)
)

// mlxVersionOf reads the version of the MLX in a folder from its headers.
func mlxVersionOf(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "include", "mlx", "version.h"))
	if err != nil {
		return "", failf("set MLX_DIR to a folder that has include/mlx and lib/libmlx",
			"%s holds no MLX (include/mlx/version.h is missing)", dir)
	}
	part := map[string]string{}
	for _, m := range mlxVersionPart.FindAllStringSubmatch(string(data), -1) {
		part[m[1]] = m[2]
	}
	if len(part) != 3 {
		return "", failf("set MLX_DIR to a folder that has include/mlx and lib/libmlx",
			"%s/include/mlx/version.h names no version", dir)
	}
	return part["MAJOR"] + "." + part["MINOR"] + "." + part["PATCH"], nil
}

// mlxcVersionOf reads the version of an mlx-c tree from CMakeLists.txt, the only file that states it.
func mlxcVersionOf(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "CMakeLists.txt"))
	if err == nil {
		if m := mlxcVersion.FindSubmatch(data); m != nil {
			return string(m[1]), nil
		}
	}
	return "", failf("set MLX_C_SOURCE to an unpacked mlx-c release",
		"%s is not an mlx-c source tree (its CMakeLists.txt names no version)", dir)
}

// produce makes an installation in a temporary folder beside the final one and renames it last. It takes the libraries
// from the archive prebuilt or, if that is nil, compiles them.
func (s *setup) produce(
	ctx context.Context, prebuilt *prebuiltArchive, tools *toolchain, fingerprint string,
) (err error) {
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
	defer os.RemoveAll(stage) // has no effect after success, when stage was renamed
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

// compileInto compiles the installation in the folder stage and loads it once.
func (s *setup) compileInto(ctx context.Context, tools *toolchain, m *manifest, stage string) error {
	b, err := s.assemble(ctx, tools, m, stage)
	if err != nil {
		return err
	}
	return s.check(ctx, b, m, stage)
}

// assemble unpacks MLX and mlx-c in the folder stage and compiles and links libmlxc and libmlxg there, for the
// manifest's platform.
func (s *setup) assemble(ctx context.Context, tools *toolchain, m *manifest, stage string) (_ *build, err error) {
	// The user's folders are checked before any download.
	source := s.choice.MLXCSource
	if source != "" {
		if source, err = s.openMLXC(source); err != nil {
			return nil, err
		}
	}
	m.MLX, m.MLXC, m.Tested = s.pair.MLX.Version, s.pair.MLXC.Version, s.pair.Tested
	if source != "" {
		version, err := mlxcVersionOf(source)
		if err != nil {
			return nil, err
		}
		if version != m.MLXC {
			return nil, failf("use mlx-c "+m.MLXC+", or leave MLX_C_SOURCE unset", "mlx-c %s does not work with MLX %s",
				version, m.MLX)
		}
	}
	if !m.Tested {
		s.say("note: the project's tests do not run on %s", s.pair)
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
	if err := tree.addUnits(s.sources); err != nil {
		return nil, err
	}
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

	return s.buildLibraries(ctx, tools, m, tree, treeDir, stage)
}

// buildLibraries compiles and links libmlxc and libmlxg against the MLX in the folder stage. treeDir has the files of
// tree.
func (s *setup) buildLibraries(
	ctx context.Context, tools *toolchain, m *manifest, tree sourceTree, treeDir, stage string,
) (*build, error) {
	b := &build{
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

// check loads the new library once and compares the versions.
func (s *setup) check(ctx context.Context, b *build, m *manifest, stage string) error {
	mlxc, headers, loaded, err := b.probe(ctx, stage)
	var f *failure
	if errors.As(err, &f) || ctx.Err() != nil {
		return err
	}
	if err != nil && strings.HasPrefix(m.Backend, "cuda") {
		// CUDA's driver library is needed where programs run. The machine that builds may lack it.
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

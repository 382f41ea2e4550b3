package setup

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed run.sh
var launcher []byte

// packagedTests lists the packages whose tests are packaged, and the files that the tests read.
var packagedTests = []struct {
	dir   string
	files []string
}{
	{"mlxc", []string{"third_party/mlx-c/lock.json"}},
	{"mlxc/distributed", nil},
	{"mlxc/mlxio", []string{"mlxc/mlxio/testdata"}},
	{"mlxc/internal/valuetest", nil},
	{"customkernels", []string{
		"customkernels/testdata", "customkernels/internal/metalstd/cuda", "customkernels/internal/metalstd/testdata",
	}},
	{"ops", []string{"ops/testdata"}},
	{"ops/sharded", nil},
	{"compare", nil},
	{"compare/suite", nil},
	{"compare/bench", nil},
}

// packageTo makes a folder that runs without Go and network: the command, the example lm, test binaries, the
// installation, and run.sh. Files have the paths of the repository, since tests name them relative to their package. A
// folder of an earlier call is replaced; any other folder that is not empty is an error.
func (s *setup) packageTo(ctx context.Context, m *manifest, args []string) error {
	switch {
	case len(args) != 1 || args[0] == "" || strings.HasPrefix(args[0], "-"):
		return failf("see ./build.sh help", "package takes one folder, DIR")
	case m == nil:
		return failf("run ./build.sh package instead", "there is no installation to package")
	}
	target, err := filepath.Abs(args[0])
	if err != nil {
		return err
	}
	if err := s.outside(target); err != nil {
		return err
	}
	if err := recoverDir(target); err != nil {
		return unwritable(target, err)
	}
	if entries, err := os.ReadDir(target); (err == nil && len(entries) > 0 || err != nil &&
		!errors.Is(err, fs.ErrNotExist)) && !isPackage(target) {
		return failf("name a folder that does not exist or is empty", "%s is neither empty nor a package", target)
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return unwritable(target, err)
	}
	stage, err := os.MkdirTemp(filepath.Dir(target), filepath.Base(target)+".tmp-")
	if err != nil {
		return unwritable(target, err)
	}
	defer os.RemoveAll(stage) // nothing is left of it after a success
	if err := os.Chmod(stage, 0o755); err != nil {
		return err
	}
	if err := s.fillPackage(ctx, stage); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := replaceDir(stage, target); err != nil {
		return err
	}
	s.say("the package for backend %s is in %s: copy it anywhere and call its run.sh", m.Backend, target)
	return nil
}

// isPackage reports whether dir was made by packageTo.
func isPackage(dir string) bool {
	for _, name := range []string{"run.sh", "mlxgrad", "third_party/mlx-c/install/manifest.json"} {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return false
		}
	}
	return true
}

func (s *setup) fillPackage(ctx context.Context, stage string) error {
	repository := s.repository()
	for _, program := range []string{"./cmd/mlxgrad", "./examples/lm"} {
		if err := s.goTool(ctx, repository, "build", "-o", filepath.Join(stage, filepath.Base(program)), program); err != nil {
			return err
		}
	}
	for _, p := range packagedTests {
		binary := filepath.Join(stage, p.dir, filepath.Base(p.dir)+".test")
		if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
			return err
		}
		if err := s.goTool(ctx, repository, "test", "-c", "-o", binary, "./"+p.dir); err != nil {
			return err
		}
		for _, name := range p.files {
			if err := copyTree(filepath.Join(repository, name), filepath.Join(stage, name)); err != nil {
				return err
			}
		}
	}
	install := filepath.Join(stage, "third_party", "mlx-c", "install")
	if err := copyTree(s.path("install"), install); err != nil {
		return err
	}
	if err := copyTree(filepath.Join(repository, "LICENSE"), filepath.Join(stage, "LICENSE")); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(stage, "run.sh"), launcher, 0o755)
}

// goTool runs a verb of go without debug information in the output.
func (s *setup) goTool(ctx context.Context, dir string, args ...string) error {
	verb, rest := args[0], args[1:]
	s.say("go %s %s", verb, rest[len(rest)-1])
	cmd := command(ctx, append([]string{"go", verb, "-ldflags=-s -w"}, rest...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return failf("install Go 1.26 or later", "go is not on the PATH")
	case outOfSpace(string(out)) || strings.Contains(string(out), "no space left on device"):
		return diskFull("building the package")
	}
	return failf("run ./build.sh test and correct its errors first", "go %s %s failed (%s)", verb, rest[len(rest)-1],
		oneLine(string(out)))
}

// copyTree copies a file or a folder. It follows symbolic links, such as a link to the user's own MLX.
func copyTree(from, to string) error {
	resolved, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		data, err := os.ReadFile(resolved)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, info.Mode().Perm())
	}
	entries, err := os.ReadDir(resolved)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyTree(filepath.Join(resolved, e.Name()), filepath.Join(to, e.Name())); err != nil {
			return fmt.Errorf("packaging: %w", err)
		}
	}
	return nil
}

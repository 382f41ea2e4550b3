package setup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mlxgrad/mlxgrad/internal/cxx"
)

// A toolchain is a C++ compiler with the platform's flags for shared libraries.
type toolchain struct {
	command []string // the compiler and the arguments in $CXX
	version string   // first line of --version
	goos    string
	// flags and environment variables of a cross-compiler
	compileExtra, linkExtra, env []string
}

func findToolchain(ctx context.Context) (*toolchain, error) {
	t := &toolchain{goos: runtime.GOOS}
	words, err := cxx.Command()
	if err != nil {
		return nil, failf("close the quote", "%v", err)
	}
	if len(words) > 0 {
		t.command = words
	} else {
		candidates := []string{"g++", "c++", "clang++"}
		if t.goos == "darwin" {
			candidates = []string{"clang++", "c++"}
		}
		for _, name := range candidates {
			if _, err := exec.LookPath(name); err == nil {
				t.command = []string{name}
				break
			}
		}
	}
	install := "install one (Debian and Ubuntu: apt-get install g++) or set CXX"
	if t.goos == "darwin" {
		install = "install Apple's command line tools: xcode-select --install"
	}
	if t.command == nil {
		return nil, failf(install, "there is no C++ compiler on the PATH")
	}
	out, err := command(ctx, append(t.command[:len(t.command):len(t.command)], "--version")...).Output()
	if err != nil {
		if strings.ContainsAny(os.Getenv("CXX"), " \t") {
			install += "; within CXX, quote a path that contains spaces"
		}
		return nil, failf(install, "the C++ compiler %q cannot be run (%v)", strings.Join(t.command, " "), err)
	}
	t.version, _, _ = strings.Cut(string(out), "\n")
	return t, nil
}

// command prepares a program. When ctx ends, the whole process group is stopped, since a compiler driver starts
// processes.
func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func (t *toolchain) run(ctx context.Context, dir, tmp string, args ...string) (string, error) {
	cmd := command(ctx, append(t.command[:len(t.command):len(t.command)], args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "LC_ALL=C")
	cmd.Env = append(cmd.Env, t.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// compileFlags returns the flags of every compilation.
func (t *toolchain) compileFlags() []string {
	flags := []string{"-std=c++20", "-O2", "-fPIC"}
	if t.goos == "darwin" {
		flags = append(flags, "-mmacosx-version-min=14.0")
	}
	return append(flags, t.compileExtra...)
}

func (t *toolchain) library(name string) string {
	if t.goos == "darwin" {
		return "lib" + name + ".dylib"
	}
	return "lib" + name + ".so"
}

// linkFlags returns the linker flags of a library that finds libmlx relative to itself, in the folder mlx beside its
// own, so that an installation can be moved.
func (t *toolchain) linkFlags(name string) []string {
	if t.goos == "darwin" {
		return append([]string{
			"-dynamiclib", "-install_name", "@rpath/" + t.library(name),
			"-Wl,-rpath,@loader_path/../mlx/lib", "-mmacosx-version-min=14.0",
		}, t.linkExtra...)
	}
	// -z defs reports a function that libmlx lacks at link time instead of at the first call.
	return []string{
		"-shared", "-Wl,-soname," + t.library(name),
		"-Wl,-rpath,$ORIGIN/../mlx/lib", "-Wl,-z,defs",
	}
}

// A build compiles mlx-c and libmlxg against an MLX. Objects are stored under their key (see objectKey) and the hash of
// their content: a change recompiles only the affected objects, and a damaged object is detected.
type build struct {
	tools    *toolchain
	tree     sourceTree
	treeDir  string // the folder that contains tree
	mlx      string // the folder with include/mlx and lib/libmlx
	objects  string
	tmp      string
	mlxcVers string
	extra    []string // additional compiler flags
	report   func(Progress)
}

// hashHeaders returns a hash of the names and contents of MLX's headers. CPU and CUDA wheels of one version have equal
// headers and so share objects.
func hashHeaders(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		fmt.Fprintf(h, "%s %d\n", filepath.ToSlash(rel), len(data))
		h.Write(data)
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}

// flags returns all flags of a compilation except -o and the include folders, whose content is hashed instead.
func (b *build) flags() []string {
	return append(append(b.tools.compileFlags(), b.extra...), `-DMLXGRAD_MLX_C_VERSION="`+b.mlxcVers+`"`)
}

// objectKey returns a hash of everything that determines an object: compiler, flags, MLX's headers, the source file and
// all mlx-c files that it includes.
func (b *build) objectKey(source, headers string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %q\n", b.tools.command, b.tools.version, b.flags(), headers)
	for _, name := range b.tree.closure(source) {
		fmt.Fprintf(h, "%s %d\n", name, len(b.tree[name]))
		h.Write(b.tree[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// compile compiles the sources whose objects are missing and returns the paths of all objects.
func (b *build) compile(ctx context.Context, sources []string) ([]string, error) {
	headers, err := hashHeaders(filepath.Join(b.mlx, "include", "mlx"))
	if err != nil {
		return nil, err
	}
	var todo []int
	objects := make([]string, len(sources))
	for i, source := range sources {
		if objects[i] = b.keptObject(b.objectKey(source, headers)); objects[i] == "" {
			todo = append(todo, i)
		}
	}
	if len(todo) == 0 {
		return objects, nil
	}
	message := fmt.Sprintf("compiling %d of %d parts of libmlxc and libmlxg with %s", len(todo), len(objects),
		b.tools.version)
	b.report(Progress{Message: message})
	if err := os.MkdirAll(b.objects, 0o755); err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cpus := make(chan struct{}, runtime.NumCPU())
	var workers sync.WaitGroup
	var compiled atomic.Int64
	for _, i := range todo {
		workers.Go(func() {
			cpus <- struct{}{}
			defer func() { <-cpus }()
			if ctx.Err() != nil {
				return
			}
			var err error
			if objects[i], err = b.compileOne(ctx, sources[i], b.objectKey(sources[i], headers)); err != nil {
				cancel(err)
			}
			b.report(Progress{Message: message, Done: compiled.Add(1), Total: int64(len(todo))})
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return objects, nil
}

// keptObject returns the path of the stored object with this key, or "". It removes damaged objects.
func (b *build) keptObject(key string) (path string) {
	found, _ := filepath.Glob(filepath.Join(b.objects, key+"-*.o"))
	for _, object := range found {
		if sum, err := hashFile(object); err == nil && filepath.Base(object) == key+"-"+sum+".o" {
			path = object
		} else {
			os.Remove(object)
		}
	}
	return path
}

// compileOne compiles a source file and stores the object under key.
func (b *build) compileOne(ctx context.Context, source, key string) (object string, err error) {
	tmp := filepath.Join(b.tmp, key+".o")
	// No path of this machine may get into the object: the include folder is temporary, and mlx-c puts __FILE__ into
	// its messages, so the source path is relative.
	include := filepath.Join(b.mlx, "include")
	args := append(b.flags(), "-ffile-prefix-map="+include+"/=", "-I.", "-I"+include, "-c", source, "-o", tmp)
	out, err := b.tools.run(ctx, b.treeDir, b.tmp, args...)
	if err != nil {
		return "", b.toolFailure(ctx, "compiling "+source, out, err)
	}
	sum, err := hashFile(tmp)
	if err != nil {
		return "", err
	}
	object = filepath.Join(b.objects, key+"-"+sum+".o")
	return object, os.Rename(tmp, object)
}

// link links libmlxc at the given path.
func (b *build) link(ctx context.Context, objects []string, library string) error {
	args := append(b.tools.linkFlags("mlxc"), "-o", library)
	args = append(args, objects...)
	args = append(args, "-L"+filepath.Join(b.mlx, "lib"), "-lmlx")
	if out, err := b.tools.run(ctx, b.treeDir, b.tmp, args...); err != nil {
		return b.toolFailure(ctx, "linking libmlxc", out, err)
	}
	return nil
}

// probeSource is a program that loads the libmlxc at the path in its argument and prints three versions: mlx-c, the MLX
// headers, and the loaded MLX.
const probeSource = `#include <cstdio>
#include <dlfcn.h>
#include "mlx/c/string.h"
int main(int, char** args) {
  void* library = dlopen(args[1], RTLD_NOW);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  auto function = [&](const char* name) { return dlsym(library, name); };
  auto text = [&](const char* name) { return reinterpret_cast<const char* (*)()>(function(name))(); };
  auto version = reinterpret_cast<int (*)(mlx_string*)>(function("mlx_version"));
  auto data = reinterpret_cast<const char* (*)(mlx_string)>(function("mlx_string_data"));
  mlx_string loaded{};
  if (version(&loaded) != 0) return 1;
  std::printf("%s %s %s\n", text("mlxgrad_mlx_c_version"), text("mlxgrad_mlx_c_built_against"), data(loaded));
}
`

// probe loads the libmlxc of an installation in a separate process and returns the versions of mlx-c, of the MLX
// headers that it was compiled against, and of the loaded MLX.
func (b *build) probe(ctx context.Context, install string) (mlxc, headers, loaded string, err error) {
	source, program := filepath.Join(b.tmp, "probe.cpp"), filepath.Join(b.tmp, "probe")
	if err := os.WriteFile(source, []byte(probeSource), 0o644); err != nil {
		return "", "", "", err
	}
	args := []string{"-std=c++20", "-I" + filepath.Join(install, "include"), source, "-o", program}
	if b.tools.goos != "darwin" {
		args = append(args, "-ldl")
	}
	if out, err := b.tools.run(ctx, b.tmp, b.tmp, args...); err != nil {
		return "", "", "", b.toolFailure(ctx, "linking a test program", out, err)
	}
	var stderr bytes.Buffer
	cmd := command(ctx, program, filepath.Join(install, "lib", b.tools.library("mlxc")))
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", "", "", fmt.Errorf("%w %s", err, oneLine(stderr.String()))
	}
	if _, err := fmt.Sscan(string(out), &mlxc, &headers, &loaded); err != nil {
		return "", "", "", fmt.Errorf("the test program printed %q", out)
	}
	return mlxc, headers, loaded, nil
}

var compilerError = regexp.MustCompile(`(?m)^.*(?:error|undefined reference|undefined symbol)\b.*$`)

// toolFailure returns a failure with one line of a compiler's output, and writes the whole output to a log.
func (b *build) toolFailure(ctx context.Context, doing, output string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause // stopped because another file failed, or by the user
	}
	if outOfSpace(output) {
		return diskFull(doing)
	}
	log := filepath.Join(filepath.Dir(b.objects), "compiler.log")
	if os.WriteFile(log, []byte(doing+"\n"+output), 0o644) != nil {
		log = "no log could be written"
	}
	first := compilerError.FindString(output)
	if first == "" {
		first = err.Error()
	}
	return failf("make sure that the compiler is GCC 12, clang 14 or later (CXX chooses one) and that MLX_DIR and MLX_C_SOURCE, if set, are right; the whole output is in "+log,
		"%s failed (%s)", doing, oneLine(first))
}

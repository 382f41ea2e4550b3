package setup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// A world is a folder to set up with a small MLX and mlx-c of its own, and a PATH on
// which stand-ins for pip, cargo, git and the compiler are all there is. What the
// stand-ins do is real as far as this program sees: they bring the archives, write
// the output file, and note each call.
type world struct {
	t    *testing.T
	root string // the folder to set up
	bin  string // the PATH
	lock *lockFile
	log  bytes.Buffer // what the last run printed
}

// repository has the real files.
var repository = os.DirFS("../..")

const fakeIO = "#include <streambuf>\nstd::format(1) std::format(2) std::format(3) std::format(4) std::format(5)\n"

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, root: filepath.Join(dir, "it's a, \"checkout\":1", "third_party", "mlx-c"), bin: filepath.Join(dir, "bin")}
	for _, d := range []string{w.root, w.bin, filepath.Join(w.root, "patches")} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	for _, name := range []string{"MLXGRAD_BACKEND", "MLX_DIR", "MLX_C_SOURCE", "CXX", "CARGO_HOME", "RUSTUP_HOME"} {
		t.Setenv(name, "")
	}
	t.Setenv("PATH", w.bin)
	t.Setenv("HOME", dir)
	t.Setenv("FAKES", dir)

	for _, name := range []string{"rules.json", "mlxgrad_format.h", "mlxgrad_version.cpp"} {
		data, err := fs.ReadFile(repository, patches+"/"+name)
		require.NoError(t, err)
		w.write("patches/"+name, string(data))
	}
	for _, name := range []string{
		"mlxc/mlxg.h", "mlxc/libmlxg/mlxg_init.cpp", "mlxc/libmlxg/mlxg_call.h", "customkernels/internal/executor/runtime.h",
		"customkernels/internal/metalstd/host/mlxg_fiber.h",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(w.root, "../..", name)), 0o755))
		w.write("../../"+name, "// "+name)
	}

	lib := "libmlx.so"
	backend := "cpu"
	if runtime.GOOS == "darwin" {
		lib, backend = "libmlx.dylib", "metal"
	}
	wheelFile, crateFile := filepath.Join(dir, "mlx.whl"), filepath.Join(dir, "mlx-sys-0.7.0.crate")
	makeZip(t, wheelFile,
		entry{name: "mlx/include/mlx/version.h", text: versionHeader(2)},
		entry{name: "mlx/include/mlx/mlx.h", text: "// MLX\n"},
		entry{name: "mlx/lib/" + lib, text: "MLX's library"},
		entry{name: "mlx_cpu.libs/libblas.so", text: "BLAS"})
	const tree = "mlx-sys-0.7.0/src/mlx-c/"
	makeTarGz(t, crateFile,
		entry{name: "mlx-sys-0.7.0/Cargo.toml", text: "[package]"},
		entry{name: tree + "CMakeLists.txt", text: "  set(MLX_C_VERSION 0.7.0)\n"},
		entry{name: tree + "LICENSE", text: "MIT"},
		entry{name: tree + "mlx/c/mlx.h", text: "// mlx-c\n"},
		entry{name: tree + "mlx/c/ops.cpp", text: "#include \"mlx/c/mlx.h\"\n" + strings.Repeat("mlx_error(e.what());\n", 652)},
		entry{name: tree + "mlx/c/io.cpp", text: "#include \"mlx/c/private/io.h\"\n"},
		entry{name: tree + "mlx/c/private/io.h", text: fakeIO})

	w.lock = &lockFile{Pairs: []pair{{MLXC: "0.7.0", MLX: "0.32.2", Tested: true}}}
	w.lock.MLX.Version, w.lock.MLXC.Version = "0.32.2", "0.7.0"
	w.lock.MLX.Wheels = []wheel{{
		Backend: backend, OS: runtime.GOOS, Arch: runtime.GOARCH, Package: "mlx-cpu", Version: "0.32.2",
		Platform: "any", File: "mlx.whl", License: "MIT",
	}}
	wh := &w.lock.MLX.Wheels[0]
	wh.Size, wh.SHA256 = sizeAndHash(t, wheelFile)
	c := &w.lock.MLXC.Crate
	c.Name, c.Version, c.File, c.Folder = "mlx-sys", "0.7.0", "mlx-sys-0.7.0.crate", strings.TrimSuffix(tree, "/")
	c.Size, c.SHA256 = sizeAndHash(t, crateFile)
	w.lock.MLXC.Archive.SHA256, w.lock.MLXC.Archive.Folder = strings.Repeat("0", 64), "mlx-c-0.7.0"
	g := &w.lock.MLXC.Git
	g.URL, g.Tag, g.Commit = "nowhere", "v0.7.0", strings.Repeat("a", 40)
	w.writeLock()

	w.fake("pip", `
[ "$1" = --version ] && exit 0
while [ $# -gt 0 ]; do [ "$1" = --dest ] && dest=$2; shift; done
/bin/cp "$FAKES/mlx.whl" "$dest"`)
	w.fake("cargo", `
/bin/mkdir -p "$CARGO_HOME/registry/cache/here"
/bin/cp "$FAKES/mlx-sys-0.7.0.crate" "$CARGO_HOME/registry/cache/here"`)
	compiler := `
[ "$1" = --version ] && { echo "stand-in compiler 1"; exit 0; }
for arg; do case $arg in *.cpp) source=$arg;; esac; done
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
echo "$source" >>"$FAKES/compiled"
echo "made from $source" >"$out"
case $out in */probe)
  printf '#!/bin/sh\necho 0.7.0 0.32.2 0.32.2\n' >"$out"; /bin/chmod +x "$out";;
esac`
	w.fake("g++", compiler)
	w.fake("clang++", compiler)
	return w
}

func versionHeader(patch int) string {
	return fmt.Sprintf("#define MLX_VERSION_MAJOR 0\n#define MLX_VERSION_MINOR 32\n#define MLX_VERSION_PATCH %d\n", patch)
}

func sizeAndHash(t *testing.T, file string) (int64, string) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	sum := sha256.Sum256(data)
	return int64(len(data)), hex.EncodeToString(sum[:])
}

func (w *world) writeLock() {
	w.t.Helper()
	data, err := json.Marshal(w.lock)
	require.NoError(w.t, err)
	w.write("lock.json", string(data))
}

// write puts a file into the folder to set up.
func (w *world) write(name, text string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(filepath.Join(w.root, name), []byte(text), 0o644))
}

func (w *world) read(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.root, name))
	require.NoError(w.t, err)
	return string(data)
}

// fake puts a program on the PATH.
func (w *world) fake(name, script string) {
	w.t.Helper()
	require.NoError(w.t, os.WriteFile(filepath.Join(w.bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

func (w *world) remove(names ...string) {
	w.t.Helper()
	for _, name := range names {
		require.NoError(w.t, os.Remove(filepath.Join(w.bin, name)))
	}
}

func (w *world) setup(flags ...string) error {
	w.t.Helper()
	return w.setupUnder(w.t.Context(), flags...)
}

func (w *world) setupUnder(ctx context.Context, flags ...string) error {
	w.t.Helper()
	w.log.Reset()
	return Checkout(ctx, newPrinter(&w.log, "setup").print, append([]string{w.root}, flags...))
}

// fails runs a set-up that must fail with one line that starts as given, and leave
// nothing half-made behind.
func (w *world) fails(line string, flags ...string) {
	w.t.Helper()
	err := w.setup(flags...)
	require.Error(w.t, err)
	require.Contains(w.t, describe(err), line)
	require.NotContains(w.t, describe(err), "\n")
	w.tidy()
}

// tidy checks that a run left no temporary folder.
func (w *world) tidy() {
	w.t.Helper()
	for _, pattern := range []string{"install.tmp-*", "install" + oldSuffix, "build/tmp-*"} {
		left, err := filepath.Glob(filepath.Join(w.root, pattern))
		require.NoError(w.t, err)
		require.Empty(w.t, left)
	}
}

// compiled lists the sources compiled since the last call.
func (w *world) compiled() []string {
	w.t.Helper()
	file := filepath.Join(filepath.Dir(w.bin), "compiled")
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil
	}
	require.NoError(w.t, err)
	require.NoError(w.t, os.Remove(file))
	var out []string
	for _, l := range strings.Fields(string(data)) {
		if strings.HasPrefix(l, "libmlxc") {
			out = append(out, l)
		}
	}
	return out
}

func TestSetup(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.setup())
	w.tidy()
	require.ElementsMatch(t, []string{"libmlxc_part1.cpp", "libmlxc_part2.cpp"}, w.compiled())
	require.Equal(t, "// mlx-c\n", w.read("install/include/mlx/c/mlx.h"))
	require.Equal(t, "MIT", w.read("install/include/mlx/c/LICENSE"))
	require.Equal(t, "// MLX\n", w.read("install/mlx/include/mlx/mlx.h"))
	require.Equal(t, "BLAS", w.read("install/mlx_cpu.libs/libblas.so"))
	require.NoDirExists(t, filepath.Join(w.root, "install/include/mlx/c/private"))

	m, err := readManifest(filepath.Join(w.root, "install"))
	require.NoError(t, err)
	require.Equal(t, "0.32.2", m.MLX)
	require.Equal(t, "0.7.0", m.MLXC)
	require.True(t, m.Tested)
	require.Equal(t, "stand-in compiler 1", m.Compiler)
	require.Len(t, m.Files, 4)

	// The second run does nothing, and needs none of the tools but the compiler.
	w.remove("pip", "cargo")
	require.NoError(t, w.setup())
	require.Empty(t, w.compiled())
	require.Empty(t, w.log.String())
}

func TestOnlyWhatChangedIsCompiled(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.setup())
	w.compiled()
	w.remove("pip", "cargo") // everything is in downloads

	w.write("patches/mlxgrad_format.h", "// another formatter\n")
	require.NoError(t, w.setup())
	require.Equal(t, []string{"libmlxc_part2.cpp"}, w.compiled())

	rules := strings.Replace(w.read("patches/rules.json"), `mlx_error(\"%s\", e.what())`, `mlx_error(\"%s!\", e.what())`, 1)
	w.write("patches/rules.json", rules)
	require.NoError(t, w.setup())
	require.Equal(t, []string{"libmlxc_part1.cpp"}, w.compiled())

	w.lock.MLX.License = "changed"
	w.writeLock()
	require.NoError(t, w.setup())
	require.Empty(t, w.compiled())

	// An installation that lost a library is made again.
	require.NoError(t, os.Remove(filepath.Join(w.root, "install", "mlx_cpu.libs", "libblas.so")))
	require.NoError(t, w.setup())
	require.Empty(t, w.compiled())
	require.Equal(t, "BLAS", w.read("install/mlx_cpu.libs/libblas.so"))
}

func TestDamagedDownloadIsBroughtAnew(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.setup())
	require.NoError(t, os.Remove(filepath.Join(w.root, "install", "manifest.json")))
	w.write("downloads/mlx.whl", "damaged")
	require.NoError(t, w.setup())
	require.Contains(t, w.log.String(), "mlx.whl has 7 bytes where the lock file says")
	require.Contains(t, w.log.String(), "downloading it again")
}

func TestFailures(t *testing.T) {
	t.Run("no pip", func(t *testing.T) {
		w := newWorld(t)
		w.remove("pip")
		w.fails("neither pip nor uv is on the PATH, one of which brings MLX: install one")
	})
	t.Run("uv in pip's place", func(t *testing.T) {
		w := newWorld(t)
		w.fake("uv", `[ "$1 $2 $3" = "tool run pip" ] && shift 3 && exec "$FAKES/real-pip" "$@"`)
		require.NoError(t, os.Rename(filepath.Join(w.bin, "pip"), filepath.Join(filepath.Dir(w.bin), "real-pip")))
		require.NoError(t, w.setup())
		require.Contains(t, w.log.String(), "with uv tool run pip")
	})
	t.Run("pip without network", func(t *testing.T) {
		w := newWorld(t)
		w.fake("pip", `[ "$1" = --version ] && exit 0; echo "WARNING: Retrying: Failed to establish a new connection"; echo "ERROR: No matching distribution found"; exit 1`)
		w.fails("pip could not reach its package index to download mlx-cpu 0.32.2: check the network")
	})
	t.Run("pip fails otherwise", func(t *testing.T) {
		w := newWorld(t)
		w.fake("pip", `[ "$1" = --version ] && exit 0; echo "ERROR: No matching distribution found"; echo "notice: x"; exit 1`)
		w.fails("pip could not download mlx-cpu 0.32.2 (ERROR: No matching distribution found): ")
	})
	t.Run("pip on a full disk", func(t *testing.T) {
		w := newWorld(t)
		w.fake("pip", `[ "$1" = --version ] && exit 0; echo "ERROR: Could not install: [Errno 28] No space left on device"; exit 1`)
		w.fails("the disk is full (downloading mlx.whl): free some")
	})
	t.Run("pip finds another hash", func(t *testing.T) {
		w := newWorld(t)
		w.fake("pip", `[ "$1" = --version ] && exit 0; echo "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES"; echo " Got        `+strings.Repeat("b", 64)+`"; exit 1`)
		w.fails("pip brought a mlx.whl whose SHA-256 is not the one in the lock file (" + strings.Repeat("b", 64) + "): do not use it")
	})
	t.Run("the wheel differs though pip let it pass", func(t *testing.T) {
		w := newWorld(t)
		w.lock.MLX.Wheels[0].SHA256 = strings.Repeat("0", 64)
		w.writeLock()
		w.fails("where the lock file says 0000")
		require.NoFileExists(t, filepath.Join(w.root, "downloads", "mlx.whl"))
	})
	t.Run("the crate differs", func(t *testing.T) {
		w := newWorld(t)
		w.fake("git", "exit 1")
		w.lock.MLXC.Crate.SHA256 = strings.Repeat("0", 64)
		w.writeLock()
		w.fails("mlx-sys-0.7.0.crate has SHA-256")
		require.NotContains(t, w.log.String(), "with git", "a wrong hash must not lead to another source")
	})
	t.Run("neither cargo nor git", func(t *testing.T) {
		w := newWorld(t)
		w.remove("cargo")
		w.fails("the sources of mlx-c 0.7.0 could not be brought (cargo: not on the PATH; git: not on the PATH): install cargo")
	})
	t.Run("cargo too old", func(t *testing.T) {
		w := newWorld(t)
		w.fake("cargo", "echo 'error: no such subcommand: `info`'; exit 101")
		w.fails("(cargo: error: no such subcommand: `info`; git: not on the PATH)")
	})
	t.Run("no compiler", func(t *testing.T) {
		w := newWorld(t)
		w.remove("g++", "clang++")
		w.fails("there is no C++ compiler on the PATH: ")
		t.Setenv("CXX", "nosuch -x")
		w.fails(`the C++ compiler "nosuch -x" cannot be run`)
	})
	t.Run("a file does not compile", func(t *testing.T) {
		w := newWorld(t)
		w.failingCompiler("io.cpp:3: error: no such thing")
		w.fails("compiling libmlxc_part2.cpp failed (io.cpp:3: error: no such thing): make sure that the compiler")
		require.Contains(t, w.read("build/compiler.log"), "io.cpp:3: error: no such thing")
	})
	t.Run("the compiler's disk is full", func(t *testing.T) {
		w := newWorld(t)
		w.failingCompiler("fatal error: cannot write: No space left on device")
		w.fails("the disk is full (compiling libmlxc_part2.cpp): free some")
	})
	t.Run("the library does not load", func(t *testing.T) {
		w := newWorld(t)
		w.probeSays("echo GLIBC_2.35 not found >&2; exit 127")
		w.fails("the library does not load (exit status 127 GLIBC_2.35 not found): ")
	})
	t.Run("the library loads another MLX", func(t *testing.T) {
		w := newWorld(t)
		w.probeSays("echo 0.7.0 0.32.2 0.32.1")
		w.fails("libmlxc 0.7.0 was compiled for MLX 0.32.2 and loads MLX 0.32.1: ")
	})
	t.Run("a patch no longer fits", func(t *testing.T) {
		w := newWorld(t)
		w.write("patches/rules.json", strings.Replace(w.read("patches/rules.json"), "652", "651", 1))
		w.fails(`fits 652 places of the mlx-c sources where 651 are expected: `)
	})
	t.Run("no such backend", func(t *testing.T) {
		w := newWorld(t)
		w.fails(`there is no backend "tpu": choose one of cpu, cuda13, cuda12, metal`, "--backend", "tpu")
		w.fails("there is no MLX wheel for backend cuda12 on "+runtime.GOOS, "--backend", "cuda12")
		w.fails("flag provided but not defined: -nosuch: see ./build.sh help", "--nosuch")
		w.fails(`setup does not take "extra": see ./build.sh help`, "extra")
	})
	t.Run("the lock file is damaged", func(t *testing.T) {
		w := newWorld(t)
		w.write("lock.json", "{")
		w.fails("the lock file is not valid (unexpected EOF): ")
	})
}

// Without cargo, upstream's tag is cloned, and it is its commit that is checked.
func TestSourcesByGit(t *testing.T) {
	git := skip.Program(t, skip.Git)
	w := newWorld(t)
	w.remove("cargo")
	require.NoError(t, os.Symlink(git, filepath.Join(w.bin, "git")))
	upstream := filepath.Join(t.TempDir(), "upstream")
	crate := filepath.Join(filepath.Dir(w.bin), "mlx-sys-0.7.0.crate")
	require.NoError(t, untarGz(crate, w.lock.MLXC.Crate.Folder, upstream))
	run := func(args ...string) string {
		cmd := exec.Command(git, append([]string{"-C", upstream, "-c", "user.name=n", "-c", "user.email=e"}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	run("init", "--quiet")
	run("add", ".")
	run("commit", "--quiet", "-m", "release")
	run("tag", "v0.7.0")
	w.lock.MLXC.Git.URL = "file://" + upstream
	w.writeLock()

	w.fails("git: tag v0.7.0 is at commit " + run("rev-parse", "HEAD") + " where the lock file says aaaa")
	require.NoDirExists(t, filepath.Join(w.root, "downloads", "mlx-c-v0.7.0.git"))

	w.lock.MLXC.Git.Commit = run("rev-parse", "HEAD")
	w.writeLock()
	require.NoError(t, w.setup())
	w.tidy()
	require.Equal(t, "// mlx-c\n", w.read("install/include/mlx/c/mlx.h"))

	// The clone is kept: what is populated works offline.
	require.NoError(t, os.RemoveAll(upstream))
	require.NoError(t, os.RemoveAll(filepath.Join(w.root, "install")))
	require.NoError(t, os.RemoveAll(filepath.Join(w.root, "src")))
	require.NoError(t, w.setup())
}

// failingCompiler makes the compiler fail with a message at the part that io.cpp is in.
func (w *world) failingCompiler(message string) {
	w.t.Helper()
	script := `
[ "$1" = --version ] && { echo "stand-in compiler 2"; exit 0; }
case "$*" in *libmlxc_part2.cpp*) echo "` + message + `" >&2; exit 1;; esac
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
echo >"$out"`
	w.fake("g++", script)
	w.fake("clang++", script)
}

// probeSays makes the program that loads the new library run a script instead.
func (w *world) probeSays(script string) {
	w.t.Helper()
	compiler := `
[ "$1" = --version ] && { echo "stand-in compiler 3"; exit 0; }
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
printf '#!/bin/sh\n` + script + `\n' >"$out"; /bin/chmod +x "$out"`
	w.fake("g++", compiler)
	w.fake("clang++", compiler)
}

// A failure leaves a working installation as it was.
func TestFailureKeepsTheInstallation(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.setup())
	before := w.read("install/manifest.json")
	w.failingCompiler("error: broken")
	w.fails("compiling libmlxc_part2.cpp failed (error: broken): ")
	require.Equal(t, before, w.read("install/manifest.json"))
}

func TestInterruptedRun(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.setup())
	before := w.read("install/manifest.json")

	// Stopped by a signal while it compiles.
	slow := `[ "$1" = --version ] && { echo "slow compiler"; exit 0; }; : >"$FAKES/compiling"; exec /bin/sleep 600`
	w.fake("g++", slow)
	w.fake("clang++", slow)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.setupUnder(ctx) }()
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(filepath.Dir(w.bin), "compiling"))
		return err == nil
	}, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Equal(t, before, w.read("install/manifest.json"))
	w.tidy()
}

// Killed between the two renames that put an installation into place, or earlier.
func TestKilledRun(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.setup())
	before := w.read("install/manifest.json")
	install := filepath.Join(w.root, "install")
	require.NoError(t, os.Rename(install, install+oldSuffix))
	require.NoError(t, os.Mkdir(install+".tmp-1", 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(w.root, "build", "tmp-1"), 0o755))
	w.compiled()
	require.NoError(t, w.setup())
	require.Empty(t, w.compiled())
	require.Equal(t, before, w.read("install/manifest.json"))
	require.NoDirExists(t, install+".tmp-1")
	require.NoDirExists(t, install+oldSuffix)
}

func TestReplaceDir(t *testing.T) {
	dir := t.TempDir()
	target, stage := filepath.Join(dir, "install"), filepath.Join(dir, "install.tmp-1")
	for _, text := range []string{"first", "second"} {
		require.NoError(t, os.Mkdir(stage, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(stage, "f"), []byte(text), 0o644))
		require.NoError(t, replaceDir(stage, target))
		data, err := os.ReadFile(filepath.Join(target, "f"))
		require.NoError(t, err)
		require.Equal(t, text, string(data))
		requireOnly(t, dir, "install", "install/f")
	}
	// Without a stage, the target stays.
	require.Error(t, replaceDir(stage, target))
	require.FileExists(t, filepath.Join(target, "f"))
}

func TestMLXOfTheUsersOwn(t *testing.T) {
	w := newWorld(t)
	own := filepath.Join(t.TempDir(), "mlx")
	lib := (&toolchain{goos: runtime.GOOS}).library("mlx")
	for name, text := range map[string]string{"include/mlx/version.h": versionHeader(2), "include/mlx/mlx.h": "", "lib/" + lib: "own"} {
		file := filepath.Join(own, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	w.remove("pip")
	t.Setenv("MLX_DIR", own)
	require.NoError(t, w.setup())
	target, err := os.Readlink(filepath.Join(w.root, "install", "mlx"))
	require.NoError(t, err)
	require.Equal(t, own, target)

	// The choice stays until another is made.
	t.Setenv("MLX_DIR", "")
	require.NoError(t, w.setup())
	require.Empty(t, w.log.String())

	// A change of the library is noticed.
	require.NoError(t, os.WriteFile(filepath.Join(own, "lib", lib), []byte("own, newer"), 0o644))
	require.NoError(t, w.setup())
	require.NotEmpty(t, w.log.String())

	require.NoError(t, os.WriteFile(filepath.Join(own, "include", "mlx", "version.h"), []byte(versionHeader(3)), 0o644))
	w.fails("mlx-c 0.7.0 and MLX 0.32.3 are not a pair that fits together: bring one of: mlx-c 0.7.0 with MLX 0.32.2")
	w.lock.Pairs = append(w.lock.Pairs, pair{MLXC: "0.7.0", MLX: "0.32.3"})
	w.writeLock()
	w.probeSays("echo 0.7.0 0.32.3 0.32.3")
	require.NoError(t, w.setup())
	require.Contains(t, w.log.String(), "mlx-c 0.7.0 with MLX 0.32.3 is an accepted pair, but the project's tests do not run on it")

	w.fails("holds no MLX (lib/"+lib+" is missing): set MLX_DIR to a folder", "--mlx-dir", w.root)
	require.NoError(t, os.RemoveAll(own))
	w.fails("does not exist: correct MLX_DIR or MLX_C_SOURCE, or go back to the pinned ones with ./build.sh setup --backend")
}

func TestSourcesOfTheUsersOwn(t *testing.T) {
	w := newWorld(t)
	w.remove("cargo")
	crate := filepath.Join(filepath.Dir(w.bin), "mlx-sys-0.7.0.crate")
	require.NoError(t, w.setup("--mlx-c-source", crate))

	tree := filepath.Join(t.TempDir(), "mlx-c")
	require.NoError(t, untarGz(crate, w.lock.MLXC.Crate.Folder, tree))
	before, err := os.ReadFile(filepath.Join(tree, "mlx", "c", "ops.cpp"))
	require.NoError(t, err)
	require.NoError(t, w.setup("--mlx-c-source", tree))
	after, err := os.ReadFile(filepath.Join(tree, "mlx", "c", "ops.cpp"))
	require.NoError(t, err)
	require.Equal(t, before, after, "the user's files are patched in a copy")

	require.NoError(t, os.WriteFile(crate, []byte("other"), 0o644))
	w.fails("which the lock file does not have: set MLX_C_SOURCE", "--mlx-c-source", crate)
	w.fails("is not an mlx-c source tree", "--mlx-c-source", w.root)
	require.NoError(t, os.WriteFile(filepath.Join(tree, "CMakeLists.txt"), []byte("set(MLX_C_VERSION 0.6.0)"), 0o644))
	w.fails("mlx-c 0.6.0 and MLX 0.32.2 are not a pair that fits together", "--mlx-c-source", tree)
}

func TestOneSetupAtATime(t *testing.T) {
	w := newWorld(t)
	// Whoever waits says so once, and stops at an interrupt.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &setup{root: w.root, progress: func(p Progress) {
		w.log.WriteString(p.Message)
		cancel()
	}}
	unlock, _, err := s.exclusive(t.Context())
	require.NoError(t, err)
	_, _, err = s.exclusive(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, strings.Count(w.log.String(), "waiting for another set-up to end"))

	// It goes on when the other has ended.
	s.progress = func(Progress) { unlock() }
	unlock2, _, err := s.exclusive(t.Context())
	require.NoError(t, err)
	unlock2()
}

// An object that is not whole is compiled again, and only that one.
func TestDamagedObject(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.setup())
	w.compiled()
	for _, damage := range []string{"", "made from", "made from libmlxc_part2.cpp changed\n"} {
		objects, err := filepath.Glob(filepath.Join(w.root, "build", "objects", "*.o"))
		require.NoError(t, err)
		require.Len(t, objects, 4)
		for _, object := range objects {
			text, err := os.ReadFile(object)
			require.NoError(t, err)
			if strings.Contains(string(text), "libmlxc_part2.cpp") {
				require.NoError(t, os.WriteFile(object, []byte(damage), 0o644))
			}
		}
		require.NoError(t, os.Remove(filepath.Join(w.root, "install", "manifest.json")))
		require.NoError(t, w.setup())
		require.Equal(t, []string{"libmlxc_part2.cpp"}, w.compiled(), "%q", damage)
	}
}

// CXX is read as the go command reads it.
func TestCompilerWithSpaces(t *testing.T) {
	w := newWorld(t)
	tools := filepath.Join(t.TempDir(), "my tools")
	require.NoError(t, os.Mkdir(tools, 0o755))
	require.NoError(t, os.Rename(filepath.Join(w.bin, "g++"), filepath.Join(tools, "g++")))
	t.Setenv("CXX", `"`+tools+`/g++"`)
	require.NoError(t, w.setup())
	t.Setenv("CXX", tools+"/g++")
	w.fails("within CXX, a path with spaces stands in quotes")
	t.Setenv("CXX", `"`+tools+`/g++`)
	w.fails("the quote \" is not closed")
}

// Errors that nobody foresaw still come as one line that says what to do.
func TestDescribe(t *testing.T) {
	for want, err := range map[string]error{
		"x: do y":                     failf("do y", "x"),
		"the disk is full (write f: ": &os.PathError{Op: "write", Path: "f", Err: syscall.ENOSPC},
		"open f: permission denied: make the folder": &os.PathError{Op: "open", Path: "f", Err: syscall.EACCES},
		"a b: run the set-up again; if":              errors.New("a\n b"),
	} {
		require.Contains(t, describe(fmt.Errorf("%w", err)), want)
	}
}

package setup

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

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

	w.pair.MLX.License = "changed"
	w.writeLock()
	require.NoError(t, w.setup())
	require.Empty(t, w.compiled())

	// An installation that lost a library is made again.
	require.NoError(t, os.Remove(filepath.Join(w.root, "install", "mlx_cpu.libs", "libblas.so")))
	require.NoError(t, w.setup())
	require.Empty(t, w.compiled())
	require.Equal(t, "BLAS", w.read("install/mlx_cpu.libs/libblas.so"))
}

func TestDamagedDownloadIsReplaced(t *testing.T) {
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
		w.fails("neither pip nor uv is on the PATH; one of them must download MLX: install pip")
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
		w.fails("pip downloaded a mlx.whl whose SHA-256 is not the one in the lock file (" + strings.Repeat("b",
			64) + "): do not use it")
	})
	t.Run("the wheel differs though pip let it pass", func(t *testing.T) {
		w := newWorld(t)
		w.pair.MLX.Wheels[0].SHA256 = strings.Repeat("0", 64)
		w.writeLock()
		w.fails("where the lock file says 0000")
		require.NoFileExists(t, filepath.Join(w.root, "downloads", "mlx.whl"))
	})
	t.Run("the crate differs", func(t *testing.T) {
		w := newWorld(t)
		w.fake("git", "exit 1")
		w.pair.MLXC.Crate.SHA256 = strings.Repeat("0", 64)
		w.writeLock()
		w.fails("mlx-sys-0.7.0.crate has SHA-256")
		require.NotContains(t, w.log.String(), "with git", "a wrong hash must not lead to another source")
	})
	t.Run("neither cargo nor git", func(t *testing.T) {
		w := newWorld(t)
		w.remove("cargo")
		w.fails("the sources of mlx-c 0.7.0 could not be downloaded (cargo: not on the PATH; git: not on the PATH): install cargo")
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

// Without cargo, set-up clones upstream's tag and checks the commit.
func TestSourcesByGit(t *testing.T) {
	git := skip.Program(t, skip.Git)
	w := newWorld(t)
	w.remove("cargo")
	require.NoError(t, os.Symlink(git, filepath.Join(w.bin, "git")))
	upstream := filepath.Join(t.TempDir(), "upstream")
	crate := filepath.Join(filepath.Dir(w.bin), "mlx-sys-0.7.0.crate")
	require.NoError(t, untarGz(crate, w.pair.MLXC.Crate.Folder, upstream))
	run := func(args ...string) string {
		cmd := exec.Command(git,
			append([]string{"-C", upstream, "-c", "user.name=n", "-c", "user.email=e"}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return strings.TrimSpace(string(out))
	}
	run("init", "--quiet")
	run("add", ".")
	run("commit", "--quiet", "-m", "release")
	run("tag", "v0.7.0")
	w.pair.MLXC.Git.URL = "file://" + upstream
	w.writeLock()

	w.fails("git: tag v0.7.0 is at commit " + run("rev-parse", "HEAD") + " where the lock file says aaaa")
	require.NoDirExists(t, filepath.Join(w.root, "downloads", "mlx-c-v0.7.0.git"))

	w.pair.MLXC.Git.Commit = run("rev-parse", "HEAD")
	w.writeLock()
	require.NoError(t, w.setup())
	w.tidy()
	require.Equal(t, "// mlx-c\n", w.read("install/include/mlx/c/mlx.h"))

	// A set-up works offline with the stored clone.
	require.NoError(t, os.RemoveAll(upstream))
	require.NoError(t, os.RemoveAll(filepath.Join(w.root, "install")))
	require.NoError(t, os.RemoveAll(filepath.Join(w.root, "src")))
	require.NoError(t, w.setup())
}

func TestMLXOfTheUsersOwn(t *testing.T) {
	w := newWorld(t)
	own := filepath.Join(t.TempDir(), "mlx")
	lib := (&toolchain{goos: runtime.GOOS}).library("mlx")
	for name, text := range map[string]string{
		"include/mlx/version.h": versionHeader(2), "include/mlx/mlx.h": "",
		"lib/" + lib: "own",
	} {
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
	w.fails("MLX 0.32.3 is not in the lock file: choose one of 0.32.2 with")
	w.addPair(3)
	require.NoError(t, w.setup())
	require.Contains(t, w.log.String(), "the project's tests do not run on mlx-c 0.7.0 with MLX 0.32.3")
	w.fails("--mlx 0.32.2 and --mlx-dir "+own+" are two choices of MLX", "--mlx", "0.32.2", "--mlx-dir", own)

	w.fails("holds no MLX (include/mlx/version.h is missing): set MLX_DIR to a folder", "--mlx-dir", w.root)
	require.NoError(t, os.Remove(filepath.Join(own, "lib", lib)))
	w.fails("holds no MLX (lib/" + lib + " is missing): set MLX_DIR to a folder")
	require.NoError(t, os.RemoveAll(own))
	w.fails("does not exist: correct MLX_DIR or MLX_C_SOURCE, or go back to the pinned ones with ./build.sh setup --backend")
}

func TestSourcesOfTheUsersOwn(t *testing.T) {
	w := newWorld(t)
	w.remove("cargo")
	crate := filepath.Join(filepath.Dir(w.bin), "mlx-sys-0.7.0.crate")
	require.NoError(t, w.setup("--mlx-c-source", crate))

	tree := filepath.Join(t.TempDir(), "mlx-c")
	require.NoError(t, untarGz(crate, w.pair.MLXC.Crate.Folder, tree))
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
	w.fails("mlx-c 0.6.0 does not work with MLX 0.32.2", "--mlx-c-source", tree)
}

// Only a damaged object is compiled again.
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
	w.fails("within CXX, quote a path that contains spaces")
	t.Setenv("CXX", `"`+tools+`/g++`)
	w.fails("the quote \" is not closed")
}

// Unexpected errors are also printed as one line with a remedy.
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

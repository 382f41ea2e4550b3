package setup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A world is a folder to set up with a small MLX and mlx-c, and a PATH that contains only fake versions of pip, cargo,
// git and the compiler. The fakes copy the archives, write the output files, and log each call.
type world struct {
	t    *testing.T
	root string // the folder to set up
	bin  string // the PATH
	lock *lockFile
	pair *pair        // the default of lock
	log  bytes.Buffer // output of the last run
}

// repository has the real files.
var repository = os.DirFS("../..")

const fakeIO = "#include <streambuf>\nstd::format(1) std::format(2) std::format(3) std::format(4) std::format(5)\n"

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{
		t: t, root: filepath.Join(dir, "it's a, \"checkout\":1", "third_party", "mlx-c"),
		bin: filepath.Join(dir, "bin"),
	}
	for _, d := range []string{w.root, w.bin, filepath.Join(w.root, "patches")} {
		require.NoError(t, os.MkdirAll(d, 0o755))
	}
	for _, name := range []string{"MLXGRAD_BACKEND", "MLXGRAD_MLX", "MLX_DIR", "MLX_C_SOURCE", "CXX", "CARGO_HOME", "RUSTUP_HOME"} {
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

	crateFile := filepath.Join(dir, "mlx-sys-0.7.0.crate")
	const tree = "mlx-sys-0.7.0/src/mlx-c/"
	makeTarGz(t, crateFile,
		entry{name: "mlx-sys-0.7.0/Cargo.toml", text: "[package]"},
		entry{name: tree + "CMakeLists.txt", text: "  set(MLX_C_VERSION 0.7.0)\n"},
		entry{name: tree + "LICENSE", text: "MIT"},
		entry{name: tree + "mlx/c/mlx.h", text: "// mlx-c\n"},
		entry{
			name: tree + "mlx/c/ops.cpp",
			text: "#include \"mlx/c/mlx.h\"\n" + strings.Repeat("mlx_error(e.what());\n", 652),
		},
		entry{name: tree + "mlx/c/io.cpp", text: "#include \"mlx/c/private/io.h\"\n"},
		entry{name: tree + "mlx/c/private/io.h", text: fakeIO})

	w.lock = &lockFile{Default: "0.32.2", Pairs: []pair{{Tested: true, Rules: []string{"rules.json"}}}}
	w.pair = &w.lock.Pairs[0]
	w.pair.MLX.Version, w.pair.MLXC.Version = "0.32.2", "0.7.0"
	w.pair.MLX.Wheels = []wheel{w.wheel("mlx.whl", 2)}
	c := &w.pair.MLXC.Crate
	c.Name, c.Version, c.File, c.Folder = "mlx-sys", "0.7.0", "mlx-sys-0.7.0.crate", strings.TrimSuffix(tree, "/")
	c.Size, c.SHA256 = sizeAndHash(t, crateFile)
	w.pair.MLXC.Archive.SHA256, w.pair.MLXC.Archive.Folder = strings.Repeat("0", 64), "mlx-c-0.7.0"
	g := &w.pair.MLXC.Git
	g.URL, g.Tag, g.Commit = "nowhere", "v0.7.0", strings.Repeat("a", 40)
	w.writeLock()

	w.fake("pip", `
[ "$1" = --version ] && exit 0
while [ $# -gt 0 ]; do [ "$1" = --dest ] && dest=$2; shift; done
/bin/cp "$FAKES"/*.whl "$dest"`)
	w.fake("cargo", `
/bin/mkdir -p "$CARGO_HOME/registry/cache/here"
/bin/cp "$FAKES/mlx-sys-0.7.0.crate" "$CARGO_HOME/registry/cache/here"`)
	// The program that loads the new libmlxc reads its version from MLX's headers.
	w.fake("loads", `
while read -r _ name value; do case $name in *PATCH) patch=$value;; esac; done <"${1%/lib/*}/mlx/include/mlx/version.h"
echo 0.7.0 0.32.$patch 0.32.$patch`)
	compiler := `
[ "$1" = --version ] && { echo "stand-in compiler 1"; exit 0; }
for arg; do case $arg in *.cpp) source=$arg;; esac; done
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
echo "$source" >>"$FAKES/compiled"
echo "made from $source" >"$out"
case $out in */probe)
  /bin/cp "$FAKES/bin/loads" "$out"; /bin/chmod +x "$out";;
esac`
	w.fake("g++", compiler)
	w.fake("clang++", compiler)
	return w
}

// wheel makes a package of MLX 0.32 with the given patch version, which the fake pip brings.
func (w *world) wheel(name string, patch int) wheel {
	w.t.Helper()
	lib, backend := "libmlx.so", "cpu"
	if runtime.GOOS == "darwin" {
		lib, backend = "libmlx.dylib", "metal"
	}
	file := filepath.Join(filepath.Dir(w.bin), name)
	makeZip(w.t, file,
		entry{name: "mlx/include/mlx/version.h", text: versionHeader(patch)},
		entry{name: "mlx/include/mlx/mlx.h", text: "// MLX\n"},
		entry{name: "mlx/lib/" + lib, text: "MLX's library"},
		entry{name: "mlx_cpu.libs/libblas.so", text: "BLAS"})
	out := wheel{
		Backend: backend, OS: runtime.GOOS, Arch: runtime.GOARCH, Package: "mlx-cpu",
		Version: fmt.Sprintf("0.32.%d", patch), Platform: "any", File: name, License: "MIT",
	}
	out.Size, out.SHA256 = sizeAndHash(w.t, file)
	return out
}

// addPair adds the same mlx-c with MLX 0.32.patch to the lock file. The rules of the pair change one more place.
func (w *world) addPair(patch int) {
	w.t.Helper()
	p := w.lock.Pairs[0]
	p.MLX.Version, p.Tested = fmt.Sprintf("0.32.%d", patch), false
	p.MLX.Wheels = []wheel{w.wheel(fmt.Sprintf("mlx-%d.whl", patch), patch)}
	p.Rules = []string{"rules.json", "more.json"}
	w.write("patches/more.json",
		`[{"name": "more", "files": "mlx/c/mlx.h", "find": "// mlx-c", "replace": "// mlx-c, patched", "count": 1}]`)
	w.lock.Pairs = append(w.lock.Pairs, p)
	w.pair = &w.lock.Pairs[0] // append may move it
	w.writeLock()
}

func versionHeader(patch int) string {
	return fmt.Sprintf("#define MLX_VERSION_MAJOR 0\n#define MLX_VERSION_MINOR 32\n#define MLX_VERSION_PATCH %d\n",
		patch)
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

// fails runs a set-up that must fail with an error of one line that contains the given text. It must leave no temporary
// folder.
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

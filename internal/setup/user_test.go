package setup

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// user sets up a folder of the user from the world's checkout.
func (w *world) user(dir string, o Options) error {
	w.t.Helper()
	w.log.Reset()
	o.Progress = newPrinter(&w.log, "setup").print
	return User(w.t.Context(), dir, os.DirFS(filepath.Join(w.root, "../..")), o)
}

// release gives the world a release: an archive with libmlxc and libmlxg, which the lock file names. It returns the
// folder of the archive.
func (w *world) release(url string) string {
	w.t.Helper()
	s, err := newSetup(w.root, os.DirFS(filepath.Join(w.root, "../..")), nil)
	require.NoError(w.t, err)
	hash, err := s.sourcesHash()
	require.NoError(w.t, err)
	dir := filepath.Join(filepath.Dir(w.bin), "release")
	require.NoError(w.t, os.MkdirAll(dir, 0o755))
	archive := filepath.Join(dir, "libs.tar.gz")
	makeTarGz(w.t, archive,
		entry{name: "mlxgrad/lib/libmlxc.so", text: "mlx-c"}, entry{name: "mlxgrad/lib/libmlxg.so", text: "prebuilt"},
		entry{name: "mlxgrad/include/mlx/c/mlx.h", text: "// mlx-c\n"})
	a := prebuiltArchive{OS: runtime.GOOS, Arch: runtime.GOARCH, File: "libs.tar.gz"}
	a.Size, a.SHA256 = sizeAndHash(w.t, archive)
	w.pair.Prebuilt = &lockPrebuilt{URL: url, Sources: hash, Archives: []prebuiltArchive{a}}
	w.writeLock()
	return dir
}

func TestUser(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(filepath.Dir(w.bin), "data", "mlxgrad", "1")
	require.NoError(t, w.user(dir, Options{}))
	require.FileExists(t, filepath.Join(dir, "install", "lib", (&toolchain{goos: runtime.GOOS}).library("mlxg")))
	require.Contains(t, w.log.String(), "compiling ")
	for _, name := range []string{"downloads", "src", "build/objects"} {
		require.NoDirExists(t, filepath.Join(dir, name), "a finished set-up keeps no intermediate files")
	}
	require.NoDirExists(t, filepath.Join(w.root, "install"), "the checkout stays as it was")

	// The second run does nothing, and takes the choice of the first.
	w.remove("pip", "cargo")
	require.NoError(t, w.user(dir, Options{}))
	require.Empty(t, w.log.String())
	require.ErrorContains(t, w.user(dir, Options{Backend: "tpu"}), `there is no backend "tpu"`)

	// Uninstall removes all versions, and waits for a set-up.
	other := &setup{root: filepath.Join(filepath.Dir(dir), "2")}
	unlock, _, err := other.exclusive(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, Uninstall(ctx, filepath.Dir(dir)), context.DeadlineExceeded)
	require.DirExists(t, other.root)
	unlock()
	require.NoError(t, Uninstall(t.Context(), filepath.Dir(dir)))
	require.NoDirExists(t, filepath.Dir(dir))
	require.NoError(t, Uninstall(t.Context(), filepath.Dir(dir)), "there is nothing to remove")
}

// An uninstallation may remove the folder that a set-up waits for.
func TestLockThatIsRemoved(t *testing.T) {
	root := t.TempDir()
	s := &setup{root: root}
	unlock, _, err := s.exclusive(t.Context())
	require.NoError(t, err)
	waiting := &setup{root: root, progress: func(Progress) {
		require.NoError(t, os.RemoveAll(filepath.Join(root, "build")))
		unlock()
	}}
	unlock2, _, err := waiting.exclusive(t.Context())
	require.NoError(t, err)
	defer unlock2()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, _, err = s.exclusive(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded, "the second holds the lock of the new file")
}

func TestPrebuilt(t *testing.T) {
	w := newWorld(t)
	files := http.NewServeMux()
	server := httptest.NewServer(files)
	defer server.Close()
	files.Handle("/", http.FileServer(http.Dir(w.release(server.URL))))
	dir := filepath.Join(filepath.Dir(w.bin), "data")
	library := filepath.Join(dir, "install", "lib", "libmlxg.so")

	// No compiler is needed, and the archive is not downloaded twice.
	w.remove("cargo", "g++", "clang++")
	require.NoError(t, w.user(dir, Options{}))
	data, err := os.ReadFile(library)
	require.NoError(t, err)
	require.Equal(t, "prebuilt", string(data))
	require.NoError(t, w.user(dir, Options{}))
	require.Empty(t, w.log.String())
	require.NoError(t, w.setup(), "the checkout uses it too")

	// An archive that differs is not used.
	require.NoError(t, os.RemoveAll(dir))
	size := w.pair.Prebuilt.Archives[0].Size
	w.pair.Prebuilt.Archives[0].Size++
	w.writeLock()
	require.ErrorContains(t, w.user(dir, Options{}), "libs.tar.gz has ")
	w.pair.Prebuilt.Archives[0].Size = size

	// An archive of other sources is not used either.
	w.write("patches/mlxgrad_format.h", "// changed")
	w.writeLock()
	require.ErrorContains(t, w.user(dir, Options{}), "there is no C++ compiler on the PATH")
}

// If the release cannot be reached, a compiler replaces it.
func TestPrebuiltThatCannotBeReached(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	w.release(server.URL)
	dir := filepath.Join(filepath.Dir(w.bin), "data")
	require.NoError(t, w.user(dir, Options{}))
	require.Contains(t, w.log.String(),
		"note: "+server.URL+"/libs.tar.gz cannot be downloaded (the server answers 404 Not Found); compiling instead")
	require.Contains(t, w.log.String(), "compiling ")
	require.NoError(t, w.user(dir, Options{}))
	require.Empty(t, w.log.String(), "what was compiled stays")

	require.NoError(t, os.RemoveAll(dir))
	w.remove("g++", "clang++")
	err := w.user(dir, Options{})
	require.ErrorContains(t, err, "cannot be downloaded (the server answers 404 Not Found): check the network")
}

func TestOffline(t *testing.T) {
	w := newWorld(t)
	world := filepath.Dir(w.bin)
	dir, offline := filepath.Join(world, "data"), filepath.Join(world, "offline")
	require.ErrorContains(t, w.user(dir, Options{Offline: offline}), "--offline: there is no folder "+offline)
	require.NoError(t, os.Mkdir(offline, 0o755))
	put := func(from, name string) {
		data, err := os.ReadFile(filepath.Join(world, from))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(offline, name), data, 0o644))
	}
	w.remove("pip")
	w.fails(offline+" lacks mlx-sys-0.7.0.crate: copy it there", "--offline", offline)
	put("mlx-sys-0.7.0.crate", "mlx-sys-0.7.0.crate")
	require.EqualError(t, w.user(dir, Options{Offline: offline}),
		offline+" lacks mlx.whl: download them where there is a network: "+
			"pip download --no-deps --only-binary=:all: --platform any mlx-cpu==0.32.2")
	put("mlx.whl", "mlx.whl")
	require.NoError(t, w.user(dir, Options{Offline: offline}))

	// With a release, the archive replaces mlx-c's sources.
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Remove(filepath.Join(offline, "mlx-sys-0.7.0.crate")))
	w.release("https://nowhere")
	w.remove("g++", "clang++", "cargo")
	require.EqualError(t, w.user(dir, Options{Offline: offline}),
		offline+" lacks libs.tar.gz: download it from https://nowhere")
	put("release/libs.tar.gz", "libs.tar.gz")
	require.NoError(t, w.user(dir, Options{Offline: offline}))

	// A damaged file is named, and stays.
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.WriteFile(filepath.Join(offline, "mlx.whl"), []byte("damaged"), 0o644))
	require.ErrorContains(t, w.user(dir, Options{Offline: offline}), "mlx.whl has 7 bytes where the lock file says")
	require.FileExists(t, filepath.Join(offline, "mlx.whl"))
}

package setup

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// An entry of an archive made for a test; link is a symbolic link's target.
type entry struct{ name, text, link string }

func makeZip(t *testing.T, file string, entries ...entry) {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(0o644)
		if e.link != "" {
			h.SetMode(fs.ModeSymlink | 0o777)
			e.text = e.link
		}
		w, err := z.CreateHeader(h)
		require.NoError(t, err)
		_, err = w.Write([]byte(e.text))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(file, buf.Bytes(), 0o644))
}

func makeTarGz(t *testing.T, file string, entries ...entry) {
	t.Helper()
	var buf bytes.Buffer
	gz := gzip.NewWriter(&buf)
	w := tar.NewWriter(gz)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.text)), Typeflag: tar.TypeReg}
		if e.link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		}
		require.NoError(t, w.WriteHeader(h))
		_, err := w.Write([]byte(e.text))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, gz.Close())
	require.NoError(t, os.WriteFile(file, buf.Bytes(), 0o644))
}

func TestUnzip(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "a.whl")
	makeZip(t, archive, entry{name: "mlx/lib/libmlx.so", text: "library"},
		entry{name: "mlx/include/x.h", text: "header"})
	require.NoError(t, unzip(archive, filepath.Join(dir, "out")))
	data, err := os.ReadFile(filepath.Join(dir, "out", "mlx", "lib", "libmlx.so"))
	require.NoError(t, err)
	require.Equal(t, "library", string(data))
}

func TestUntarTakesOneFolder(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "a.crate")
	makeTarGz(t, archive,
		entry{name: "crate/Cargo.toml", text: "not wanted"},
		entry{name: "crate/src/mlx-c/mlx/c/a.h", text: "wanted"},
		entry{name: "crate/src/mlx-c/mlx/c/b.h", link: "a.h"})
	out := filepath.Join(dir, "out")
	require.NoError(t, untarGz(archive, "crate/src/mlx-c", out))
	data, err := os.ReadFile(filepath.Join(out, "mlx", "c", "b.h"))
	require.NoError(t, err)
	require.Equal(t, "wanted", string(data))
	require.NoFileExists(t, filepath.Join(out, "Cargo.toml"))

	require.ErrorContains(t, untarGz(archive, "crate/elsewhere", filepath.Join(dir, "out2")), "nothing beneath")
}

// Entries outside the folder are refused, in both formats, also outside the unpacked part.
func TestUnsafeEntriesAreRefused(t *testing.T) {
	for name, entries := range map[string][]entry{
		"absolute":            {{name: "/evil", text: "x"}},
		"parent":              {{name: "../evil", text: "x"}},
		"parent within":       {{name: "a/../../evil", text: "x"}},
		"parent that returns": {{name: "a/../b", text: "x"}},
		"backslash":           {{name: `a\..\..\evil`, text: "x"}},
		"empty":               {{name: "", text: "x"}},
		"absolute link":       {{name: "l", link: "/"}},
		"climbing link":       {{name: "a/l", link: "../../elsewhere"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			out := filepath.Join(dir, "in", "out")
			archive := filepath.Join(dir, "a.tar.gz")
			makeTarGz(t, archive, entries...)
			require.ErrorIs(t, untarGz(archive, ".", out), errEntry)

			archive = filepath.Join(dir, "a.zip")
			makeZip(t, archive, entries...)
			err := unzip(archive, out)
			require.Error(t, err) // the zip reader reports some of them itself
			requireOnly(t, dir, "a.tar.gz", "a.zip", "in", "in/out")
		})
	}
}

// A link inside the folder is allowed. Later entries must not leave the folder through it or replace its target.
func TestNothingIsWrittenThroughALink(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "a.tar.gz")
	makeTarGz(t, archive,
		entry{name: "a/b/c/inside", text: "first"},
		entry{name: "l", link: "a/b/c"},
		entry{name: "l/inside", text: "second"})
	require.ErrorIs(t, untarGz(archive, ".", filepath.Join(dir, "out")), fs.ErrExist)

	// The kernel refuses a link that another process makes during the unpacking; names alone cannot show it.
	out := filepath.Join(dir, "out2")
	require.NoError(t, os.Mkdir(out, 0o755))
	require.NoError(t, os.Symlink(dir, filepath.Join(out, "l")))
	makeTarGz(t, archive, entry{name: "l/evil", text: "x"})
	require.Error(t, untarGz(archive, ".", out))
	require.NoFileExists(t, filepath.Join(dir, "evil"))
}

func TestZipWithLinkIsRefused(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "a.whl")
	makeZip(t, archive, entry{name: "mlx/l", link: "lib"})
	require.ErrorIs(t, unzip(archive, filepath.Join(dir, "out")), errEntry)
}

func TestVerifyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mlx.whl")
	require.NoError(t, os.WriteFile(file, []byte("content"), 0o644))
	const sum = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
	require.NoError(t, verifyFile(file, 7, sum))
	require.EqualError(t, verifyFile(file, 8, sum), "mlx.whl has 7 bytes where the lock file says 8: "+distrust)
	wrong := "0" + sum[1:]
	require.EqualError(t, verifyFile(file, 7, wrong),
		"mlx.whl has SHA-256 "+sum+" where the lock file says "+wrong+": "+distrust)
	require.ErrorIs(t, verifyFile(file+"x", 7, sum), fs.ErrNotExist)
}

// requireOnly checks that a folder holds the named entries and nothing else.
func requireOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	var got []string
	require.NoError(t, filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, p); rel != "." {
			got = append(got, filepath.ToSlash(rel))
		}
		return err
	}))
	require.Subset(t, names, got)
}

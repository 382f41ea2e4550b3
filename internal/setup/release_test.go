package setup

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

func TestReleaseRefuses(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.setup())
	for _, version := range []string{"0.1.0", "v0.1", "v0.1.0/x", "--help"} {
		w.fails(`release does not take "`+version+`": name one version such as v0.1.0, or none`, "release", version)
	}
	w.fails(`release does not take "v0.1.0 v0.2.0"`, "release", "v0.1.0", "v0.2.0")
	w.fails("the compiler x86_64-linux-gnu-g++ cannot be run", "release")
	require.NoDirExists(t, filepath.Join(w.root, "../../release"))
}

// The libraries' archive depends on names and contents alone, and a set-up unpacks it.
func TestWriteArchive(t *testing.T) {
	dir := t.TempDir()
	write := func(folder, name, text string, mode os.FileMode) {
		file := filepath.Join(dir, folder, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), mode))
	}
	for _, folder := range []string{"first", "second"} {
		write(folder, "lib/b", "b", 0o755)
		write(folder, "lib/a", "a", 0o600)
		write(folder, "other", "not in it", 0o644)
		write(folder, "LICENSE", "MIT", 0o644)
		require.NoError(t,
			writeArchive(filepath.Join(dir, folder+".tar.gz"), "mlxgrad", filepath.Join(dir, folder), "lib", "LICENSE"))
	}
	first, err := hashFile(filepath.Join(dir, "first.tar.gz"))
	require.NoError(t, err)
	second, err := hashFile(filepath.Join(dir, "second.tar.gz"))
	require.NoError(t, err)
	require.Equal(t, first, second)

	f, err := os.Open(filepath.Join(dir, "first.tar.gz"))
	require.NoError(t, err)
	defer f.Close()
	gz, err := gzip.NewReader(f)
	require.NoError(t, err)
	modes := map[string]int64{}
	for r := tar.NewReader(gz); ; {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		modes[header.Name] = header.Mode
	}
	require.Equal(t, map[string]int64{"mlxgrad/LICENSE": 0o644, "mlxgrad/lib/a": 0o644, "mlxgrad/lib/b": 0o755}, modes)
	unpacked := filepath.Join(dir, "unpacked")
	require.NoError(t, untarGz(filepath.Join(dir, "first.tar.gz"), "mlxgrad", unpacked))
	requireOnly(t, unpacked, "LICENSE", "lib", "lib/a", "lib/b")

	require.Error(t, writeArchive(filepath.Join(dir, "x.tar.gz"), "mlxgrad", filepath.Join(dir, "first"), "missing"))
}

func TestReleaseNotes(t *testing.T) {
	changelog := filepath.Join(t.TempDir(), "CHANGELOG.md")
	require.NoError(t,
		os.WriteFile(changelog,
			[]byte("# Changelog\n\n## Unreleased\n\n## [0.2.0] - 2026-12-01\n\n### Added\n- x\n\n## 0.1.0\n- y\n"), 0o644))
	for version, want := range map[string]string{"v0.2.0": "### Added\n- x\n", "v0.1.0": "- y\n"} {
		notes, err := releaseNotes(changelog, version)
		require.NoError(t, err)
		require.Equal(t, want, string(notes))
	}
	_, err := releaseNotes(changelog, "v0.3.0")
	require.EqualError(t, err, `CHANGELOG.md has no section "## 0.3.0": add it, as RELEASING.md says`)
	_, err = releaseNotes(changelog, "snapshot")
	require.ErrorContains(t, err, "Unreleased", "an empty section")
}

// The first run for a version writes the lock file and stops; the second finds nothing to change.
func TestLockRelease(t *testing.T) {
	w := newWorld(t)
	s, err := newSetup(w.root, os.DirFS(filepath.Join(w.root, "../..")), nil)
	require.NoError(t, err)
	hash, err := s.sourcesHash()
	require.NoError(t, err)
	release := *w.lock
	release.Pairs = slices.Clone(release.Pairs)
	release.Pairs[0].Prebuilt = &lockPrebuilt{URL: "https://x", Sources: hash, Archives: []prebuiltArchive{
		{OS: "linux", Arch: "amd64", File: "f", Size: 1, SHA256: hash},
	}}
	require.ErrorContains(t, s.lockRelease(release), "has the hashes of these libraries now: commit it, tag the commit")
	require.NoError(t, s.lockRelease(release))
	again, err := newSetup(w.root, s.sources, nil)
	require.NoError(t, err)
	require.Equal(t, &release, again.lock)
	after, err := again.sourcesHash()
	require.NoError(t, err)
	require.Equal(t, hash, after, "the release itself is not among its sources")
}

// The lock file of the repository is as lockRelease writes it, so that a release changes only its own part.
func TestLockFileIsWrittenAsItIs(t *testing.T) {
	s, err := newSetup(t.TempDir(), repository, nil)
	require.NoError(t, err)
	require.NoError(t, s.lockRelease(*s.lock))
}

func TestNeededVersions(t *testing.T) {
	libmlx := "../../third_party/mlx-c/install/mlx/lib/libmlx.so"
	if _, err := os.Stat(libmlx); err != nil {
		skip.Platform(t, "MLX's library for Linux is not installed here")
	}
	needed, err := neededVersions(libmlx)
	require.NoError(t, err)
	require.Equal(t, 2, needed["GLIBC"][0])
	require.Greater(t, needed["GLIBC"][1], 10)
	require.Equal(t, 3, needed["GLIBCXX"][0])
	// The libraries of a g++ later than MLX's need later versions.
	if err := compatible("../../third_party/mlx-c/install"); err != nil {
		require.Greater(t, skip.GXXVersion(t), 12, "%v", err)
		require.ErrorContains(t, err, "compile on an older system")
	}
	_, err = neededVersions("release.go")
	require.Error(t, err)
}

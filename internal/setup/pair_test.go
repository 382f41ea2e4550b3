package setup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A version of MLX is chosen by a flag or the environment, and stays until another is chosen.
func TestChoiceOfMLX(t *testing.T) {
	w := newWorld(t)
	w.addPair(4)
	version := func() string {
		m, err := readManifest(filepath.Join(w.root, "install"))
		require.NoError(t, err)
		require.Equal(t, versionHeader(int(m.MLX[5]-'0')), w.read("install/mlx/include/mlx/version.h"))
		return m.MLX
	}
	require.NoError(t, w.setup())
	require.Equal(t, "0.32.2", version())
	require.Equal(t, "// mlx-c\n", w.read("install/include/mlx/c/mlx.h"))

	require.NoError(t, w.setup("--mlx", "0.32.4"))
	require.Equal(t, "0.32.4", version())
	require.Contains(t, w.log.String(), "the project's tests do not run on mlx-c 0.7.0 with MLX 0.32.4")
	require.Equal(t, "// mlx-c, patched\n", w.read("install/include/mlx/c/mlx.h"), "by the rules of this pair only")
	w.compiled()
	require.NoError(t, w.setup())
	require.Equal(t, "0.32.4", version())
	require.Empty(t, w.log.String())

	// Objects and downloads of the other pair are kept.
	w.remove("pip", "cargo")
	t.Setenv("MLXGRAD_MLX", "0.32.2")
	require.NoError(t, w.setup())
	require.Equal(t, "0.32.2", version())
	require.Empty(t, w.compiled())
	t.Setenv("MLXGRAD_MLX", "")

	require.NoError(t, w.setup("--mlx", "0.32.4"))
	require.NoError(t, w.setup("--mlx", "default"))
	require.Equal(t, "0.32.2", version())
	m, err := readManifest(filepath.Join(w.root, "install"))
	require.NoError(t, err)
	require.Empty(t, m.Choice)
	require.NoError(t, w.setup("--mlx", "0.32.4"))

	w.fails("MLX 0.32.9 is not in the lock file: choose one of 0.32.2, 0.32.4 with --mlx or MLXGRAD_MLX", "--mlx", "0.32.9")
	require.Equal(t, "0.32.4", version())
}

// A choice of the version keeps the backend, and a choice of the backend the version.
func TestChoiceOverAnother(t *testing.T) {
	former := choice{Backend: "cuda13", MLX: "0.32.4", ASan: true}
	own := choice{Backend: "cpu", MLXDir: "/mlx", MLXCSource: "/mlx-c"}
	for _, c := range []struct{ made, former, want choice }{
		{choice{}, former, former},
		{choice{MLX: "0.32.2"}, former, choice{Backend: "cuda13", MLX: "0.32.2"}},
		{choice{Backend: "cpu"}, former, choice{Backend: "cpu", MLX: "0.32.4"}},
		{choice{MLXDir: "/mlx"}, former, choice{Backend: "cuda13", MLXDir: "/mlx"}},
		{choice{ASan: true}, own, choice{Backend: "cpu", MLXDir: "/mlx", MLXCSource: "/mlx-c", ASan: true}},
		{choice{Backend: "cpu"}, own, choice{Backend: "cpu"}},
		{choice{MLX: "0.32.4"}, own, choice{Backend: "cpu", MLX: "0.32.4"}},
	} {
		require.Equal(t, c.want, c.made.over(c.former), "%+v over %+v", c.made, c.former)
	}
}

// The sources of a pair are its own: a change of another pair makes no installation and no archive of a release stale.
func TestSourcesOfAPair(t *testing.T) {
	w := newWorld(t)
	w.addPair(4)
	hash := func(mlx string) string {
		s, err := newSetup(w.root, os.DirFS(filepath.Join(w.root, "../..")), nil)
		require.NoError(t, err)
		require.NoError(t, s.choose(choice{MLX: mlx}))
		hash, err := s.sourcesHash()
		require.NoError(t, err)
		return hash
	}
	first, second := hash("0.32.2"), hash("0.32.4")
	require.NotEqual(t, first, second)
	w.write("patches/more.json", "[]")
	require.Equal(t, first, hash("0.32.2"))
	require.NotEqual(t, second, hash("0.32.4"))
	w.write("patches/rules.json", "[]")
	require.NotEqual(t, first, hash("0.32.2"))
}

// The user's command installs a chosen version too, offline and from a release.
func TestUserChoosesMLX(t *testing.T) {
	w := newWorld(t)
	w.addPair(4)
	offline, dir := t.TempDir(), filepath.Join(t.TempDir(), "user")
	bring := func(files ...string) {
		for _, file := range files {
			require.NoError(t, copyTree(file, filepath.Join(offline, filepath.Base(file))))
		}
	}
	fakes := filepath.Dir(w.bin)
	bring(filepath.Join(fakes, "mlx-4.whl"), filepath.Join(fakes, "mlx-sys-0.7.0.crate"))
	w.remove("pip", "cargo")
	for _, o := range []Options{{MLX: "0.32.4", Offline: offline}, {Offline: offline}} {
		require.NoError(t, w.user(dir, o))
		m, err := readManifest(filepath.Join(dir, "install"))
		require.NoError(t, err)
		require.Equal(t, "0.32.4", m.MLX)
	}
	require.ErrorContains(t, w.user(dir, Options{MLX: "1"}), "MLX 1 is not in the lock file")
	require.ErrorContains(t, w.user(dir, Options{MLX: "0.32.2", Offline: offline}), "lacks mlx.whl")

	// The release has libraries for the other pair.
	bring(filepath.Join(w.release("https://nowhere"), "libs.tar.gz"), filepath.Join(fakes, "mlx.whl"))
	w.remove("g++", "clang++")
	require.ErrorContains(t, w.user(dir, Options{Offline: offline}), "no C++ compiler")
	require.NoError(t, w.user(dir, Options{MLX: "0.32.2", Offline: offline}))
}

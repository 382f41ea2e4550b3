package library

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlaces(t *testing.T) {
	t.Setenv(Variable, "")
	t.Setenv("HOME", "/home/someone")
	t.Setenv("XDG_DATA_HOME", "")
	data := "/home/someone/.local/share"
	if runtime.GOOS == "darwin" {
		data = "/home/someone/Library/Application Support"
	}
	installed := filepath.Join("mlxgrad", Interface, "install", "lib", name())
	exe, err := os.Executable()
	require.NoError(t, err)
	root, err := filepath.Abs(filepath.Join("..", ".."))
	require.NoError(t, err)
	require.Equal(t, []string{
		filepath.Join(filepath.Dir(exe), name()),
		filepath.Join(root, "third_party", "mlx-c", "install", "lib", name()),
		filepath.Join(data, installed),
	}, Places())
	if runtime.GOOS != "darwin" {
		t.Setenv("XDG_DATA_HOME", "/data")
		require.Equal(t, filepath.Join("/data", installed), Places()[2])
	}
	t.Setenv("XDG_DATA_HOME", "")
	t.Setenv("HOME", "")
	require.Len(t, Places(), 2)
	_, err = UserFolder()
	require.ErrorContains(t, err, "the user's data folder is not known")

	dir := t.TempDir()
	t.Setenv(Variable, dir)
	require.Equal(t, []string{filepath.Join(dir, name())}, Places(), "a folder")
	file := filepath.Join(dir, "another.so")
	t.Setenv(Variable, file)
	require.Equal(t, []string{file}, Places(), "a file, which need not exist")
}

func TestRemedy(t *testing.T) {
	const checkout = "run ./build.sh setup"
	command := func(version string) string {
		return "run go run github.com/mlxgrad/mlxgrad/cmd/mlxgrad@" + version + " setup"
	}
	main := func(version string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: module, Version: version}}
	}
	dependency := func(version string, replace *debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{
			Main: debug.Module{Path: "example.com/program", Version: "v7.0.0"},
			Deps: []*debug.Module{
				{Path: module + "/gomlx", Version: "v8.0.0"},
				{Path: module, Version: version, Replace: replace},
			},
		}
	}
	repository, worktree, plain := t.TempDir(), t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(repository, ".git"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(worktree, ".git"), []byte("gitdir: elsewhere\n"), 0o644))
	for name, c := range map[string]struct {
		root string
		info *debug.BuildInfo
		want string
	}{
		"a repository":    {repository, main("v1.2.3"), checkout},
		"a worktree":      {worktree, dependency("v1.2.3", nil), checkout},
		"an archive":      {plain, main("(devel)"), command("latest")},
		"no version":      {plain, main(""), command("latest")},
		"changed sources": {plain, main("v1.2.4-0.20260102030405-0123456789ab+dirty"), command("latest")},
		"go install":      {plain, main("v1.2.3"), command("v1.2.3")},
		"a dependency":    {plain, dependency("v1.2.3", nil), command("v1.2.3")},
		"a replaced version": {
			plain, dependency("v1.2.3", &debug.Module{Path: module, Version: "v1.2.4"}),
			command("v1.2.4"),
		},
		"a fork": {
			plain,
			dependency("v1.2.3", &debug.Module{Path: "example.com/fork", Version: "v9.0.0"}), command("latest"),
		},
		"a folder":     {plain, dependency("v1.2.3", &debug.Module{Path: "../mlxgrad"}), command("latest")},
		"not a module": {plain, nil, command("latest")},
		"-trimpath":    {"", dependency("v1.2.3", nil), command("v1.2.3")},
		"a program without it": {
			"", &debug.BuildInfo{Main: debug.Module{Path: "example.com/program"}},
			command("latest"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, remedy(c.root, c.info))
		})
	}
	require.Contains(t, []string{checkout, command("latest")}, Remedy(), "of this test")
}
